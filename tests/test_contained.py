"""Functions that fail end their job and nothing else: where they run by default, what is told of them, Ctrl-C, and many cores."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm
from conftest import Text
from test_functions import Make, failed, lines_of


def test_behind_a_verb_that_brings_together_functions_are_contained(tmp_path: Path) -> None:
    """They ran in this process if nobody said another thing, so that one which crashed or hung took the interpreter along."""
    lines_of(tmp_path, 100)

    def crashes(record: dict[str, Any]) -> dict[str, Any]:
        os._exit(5)

    def hangs(record: dict[str, Any]) -> dict[str, Any]:
        time.sleep(1000)
        return record

    def eats(record: dict[str, Any]) -> dict[str, Any]:
        return {"line": str(len(bytearray(os.urandom(1 << 20) * 300)))}

    def by_map(function: Any, **how: Any) -> Any:
        return lambda table: table.distinct().map(function, {"line": str}, **how)

    error = failed(tmp_path, by_map(crashes))
    assert isinstance(error, sm.FunctionError) and "ended with exit code 5" in error.cause
    error = failed(tmp_path, by_map(hangs, timeout=0.5))
    assert isinstance(error, sm.FunctionError) and "timeout of 0.5 s" in error.cause
    error = failed(tmp_path, by_map(eats), worker_memory="200 MiB")
    assert isinstance(error, sm.FunctionError) and "worker_memory is 200.0 MiB" in error.cause


@pytest.mark.parametrize("processes", [0, 2])
def test_ctrl_c_ends_a_function(tmp_path: Path, processes: int) -> None:
    """With none, one that never ends by itself: it hears of it at its next step in Python."""
    lines_of(tmp_path, 100)
    begun = tmp_path.with_name(tmp_path.name + "-begun")

    def never_ends(record: dict[str, Any]) -> dict[str, Any]:
        begun.touch()
        while True:
            time.sleep(0.01)

    def interrupts() -> None:
        while not begun.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    makes: list[Make] = [
        lambda table: table.map(never_ends, {"line": str}),
        lambda table: table.distinct().map(never_ends, {"line": str}),
        lambda table: table.group_by("line").apply(lambda key, records: [never_ends({})], columns={"line": str}),
    ]
    for make in makes:
        begun.unlink(missing_ok=True)
        threading.Thread(target=interrupts).start()
        job = sm.Pipeline()
        make(job.read_text(tmp_path / "in.txt")).write_text(tmp_path / "out")
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            job.run(memory="128 MiB", threads=2, processes=processes)
        assert time.monotonic() - began < 60
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt"]


@pytest.mark.parametrize("processes", [0, 2])
def test_the_cause_is_what_the_error_tells_of(tmp_path: Path, processes: int) -> None:
    """Of several workers that raised at about the same time, the error used to name one's record and another one's exception."""
    lines = [f"{'bad' if number % 9_000 == 8_999 else 'good'} {number}" for number in range(400_000)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")

    def raises(record: dict[str, Any]) -> dict[str, Any]:
        if record["line"].startswith("bad"):
            raise ValueError(record["line"])
        return record

    for _ in range(4):
        error = failed(tmp_path, lambda table: table.map(raises, {"line": str}), processes=processes)
        assert isinstance(error.__cause__, ValueError)
        assert error.cause == f"ValueError: {error.__cause__}, of the record {{'line': '{error.__cause__}'}}"


def test_little_memory_is_enough_on_many_cores(text: Text, tmp_path: Path) -> None:
    """It was shared by as many workers as there are cores, and then refused; fewer do the same."""
    outputs = set()
    for threads in (1, 2, 16, 64, 256):
        job = sm.Pipeline()
        words = job.read_text(text.pattern).flat_map(sm.words("line", lower=True))
        words.group_by("word").agg(n=sm.count()).sort("word").write_csv(tmp_path / "out.csv")
        job.run(memory="128 MiB", threads=threads, temp=tmp_path)
        outputs.add((tmp_path / "out.csv").read_bytes())
    assert len(outputs) == 1
    with pytest.raises(sm.MemoryLimitError) as raised:
        job.run(memory="1 MiB", threads=256, temp=tmp_path)
    needed = float(raised.value.cause.rsplit("at least ", 1)[1].split(" MiB")[0])
    job.run(memory=f"{needed} MiB", threads=256, temp=tmp_path)
    assert needed < 60
