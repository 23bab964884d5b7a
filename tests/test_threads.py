"""Functions in this process: one at a time where the interpreter has a lock (the GIL), in threads where it has none.

`make test-free-threaded PYTHON=python3.14t` runs this on an interpreter without one, with few other packages.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm

Record = dict[str, Any]

# Asked behind the import of everything: a module that needs the lock brings it back.
IS_FREE = not getattr(sys, "_is_gil_enabled", lambda: True)()


def words_of(tmp_path: Path, count: int) -> list[str]:
    words = [f"{number % 997:03}{'x' * (number % 40)}" for number in range(count)]
    (tmp_path / "in.txt").write_text("\n".join(words) + "\n")
    return words


def test_one_at_a_time_or_in_threads(tmp_path: Path) -> None:
    """Plan and report say which, and what comes out is the same."""
    words = words_of(tmp_path, 400_000)
    threads: set[int] = set()

    def length(record: Record) -> Record:
        threads.add(threading.get_ident())
        sm.counter("words").add()
        return {"head": record["line"][:3], "length": len(record["line"])}

    class Longest:
        """One of the longest of each worker's records."""

        def __init__(self) -> None:
            self.most = 0

        def __call__(self, record: Record) -> Record:
            self.most = max(self.most, record["length"])
            return record

        def finish(self) -> Iterable[Record]:
            sm.counter("workers").add()
            return [] if self.most == 42 else [{"head": "wrong", "length": self.most}]

    def total(head: str, records: Iterator[Record]) -> Iterable[Record]:
        yield {"head": head, "total": sum(record["length"] for record in records)}

    columns = {"head": str, "length": int}
    job = sm.Pipeline()
    lengths = job.read_text(tmp_path / "in.txt").map(length, columns=columns).map(Longest, columns=columns)
    totals = lengths.group_by("head").apply(total, columns={"head": str, "total": int})
    totals.map(lambda record: record, columns={"head": str, "total": int}).write_csv(tmp_path / "out", header=False)
    where = "in 2 threads of this process" if IS_FREE else "in this process, one at a time"
    assert f"functions        {where}" in job.explain(memory="128 MiB", threads=2, processes=0)
    report = job.run(memory="128 MiB", threads=2, processes=0)
    model: Counter[str] = Counter()
    for word in words:
        model[word[:3]] += len(word)
    found = [line.split(",") for line in (tmp_path / "out").read_text().splitlines()]
    assert sorted((head, int(sum_of)) for head, sum_of in found) == sorted(model.items())
    assert report.counters["words"] == len(words) and report.counters["workers"] >= 1
    assert (report.processes["count"], report.processes["threads"]) == (0, 2 if IS_FREE else 1)
    assert f"functions of Python, {where}" in str(report)
    assert threading.get_ident() not in threads and (len(threads) >= 2 or not IS_FREE)


@pytest.mark.skipif(not IS_FREE, reason="the interpreter has a lock")
def test_threads_are_what_is_taken_unasked(tmp_path: Path) -> None:
    """But for what only a process can be made to keep to."""
    words_of(tmp_path, 1000)

    def explained(timeout: float | None = None, **how: Any) -> str:
        job = sm.Pipeline()
        table = job.read_text(tmp_path / "in.txt").map(lambda record: record, columns={"line": str}, timeout=timeout)
        table.write_text(tmp_path / "out")
        return job.explain(memory="128 MiB", threads=3, **how)

    assert "in 3 threads of this process" in explained()
    assert "in 3 processes" in explained(timeout=5.0)
    assert "in 3 processes" in explained(worker_memory="1 GiB")
    assert "in 2 processes" in explained(processes=2)


@pytest.mark.skipif(not IS_FREE, reason="the interpreter has a lock")
def test_an_exception_in_one_thread_ends_the_others(tmp_path: Path) -> None:
    words_of(tmp_path, 400_000)

    def fails(record: Record) -> Record:
        if record["line"].startswith("996"):
            raise ValueError("no such word")
        return record

    (tmp_path / "out").write_text("old")
    job = sm.Pipeline()
    job.read_text(tmp_path / "in.txt").map(fails, columns={"line": str}).write_text(tmp_path / "out")
    with pytest.raises(sm.FunctionError) as raised:
        job.run(memory="128 MiB", threads=2)
    cause = raised.value.__cause__
    assert isinstance(cause, ValueError) and str(cause) == "no such word"
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out"]
