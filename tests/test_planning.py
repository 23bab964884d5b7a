"""What functions are given before a job begins, to plan it: some records of the input, and nothing comes of that."""

from __future__ import annotations

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sortmill as sm

Record = dict[str, Any]


@pytest.mark.parametrize("processes", [0, 1])
def test_a_header_is_no_record(tmp_path: Path, processes: int) -> None:
    """Functions were called with it to plan the job, and in this process what they raised then ended a good one."""
    (tmp_path / "in.csv").write_text("name,age\nann,3\n")
    prices = sm.Pipeline().read_csv(tmp_path / "in.csv").map(lambda record: int(record["age"]), columns={"age": int})
    assert prices.collect(memory="128 MiB", processes=processes) == [{"age": 3}]
    (tmp_path / "in.txt").write_text("n\n" * 2 + "".join(f"{number}\n" for number in range(200_000)))
    seen: list[str] = []

    def number(record: Record) -> int:
        seen.append(record["line"])
        return int(record["line"])

    numbers = sm.Pipeline().read_text(tmp_path / "in.txt", skip_header=2).map(number, columns={"n": int})
    made = numbers.sort("n", descending=True).collect(memory="48 MiB", processes=processes, temp=tmp_path)
    assert [record["n"] for record in made] == list(range(199_999, -1, -1))
    assert "n" not in seen


@pytest.mark.parametrize("processes", [0, 1])
def test_what_is_raised_over_what_is_no_record_is_passed_by(tmp_path: Path, processes: int) -> None:
    """Places that are sampled may lie between quotes, where lines look like records."""
    texts = ["x" * 200] * 19 + ["\n".join(["no number"] * 20)]
    rows = "".join(f'"{texts[number % 20]}",{number}\n' for number in range(100_000))
    (tmp_path / "in.csv").write_text("text,n\n" + rows)
    columns: dict[str, sm.ColumnType] = {"n": int, "text": str}
    table = sm.Pipeline().read_csv(tmp_path / "in.csv")
    numbers = table.map(lambda record: {"n": int(record["n"]), "text": record["text"]}, columns=columns)
    result = numbers.sort("n", descending=True).collect_arrow(memory="48 MiB", processes=processes, temp=tmp_path)
    assert pa.table(result)["n"].to_pylist() == list(range(99_999, -1, -1))
    # What was right at other places is in the sample.
    (phase,) = json.loads(result.report.to_json())["phases"]
    partitions = phase["report"]["partitions"]
    assert partitions["count"] > 4 and partitions["bytes_max"] < 6 * partitions["bytes_median"], partitions


class Counted:
    """Counts how often it was made, in this process."""

    made = 0

    def __init__(self) -> None:
        Counted.made += 1

    def __call__(self, record: Record) -> int:
        return int(record["line"])


def test_a_class_is_made_a_few_times_for_a_plan(tmp_path: Path) -> None:
    """One that takes long to begin was made for each of up to a thousand places that were sampled."""
    (tmp_path / "in.txt").write_text("".join(f"{number:09}\n" for number in range(2_000_000)))
    Counted.made = 0
    table = sm.Pipeline().read_text(tmp_path / "in.txt").map(Counted, columns={"n": int}).sort("n")
    report = table.collect_arrow(memory="48 MiB", processes=0, threads=2, temp=tmp_path).report
    assert report.records_out == 2_000_000
    # For how much it makes of what, for the sample, and for each thread.
    assert Counted.made <= 4


def test_runs_at_the_same_time_know_nothing_of_each_other(tmp_path: Path) -> None:
    """Tables that came of one had their runs in common: a function of one was called for another."""
    (tmp_path / "in.txt").write_text("".join(f"{number}\n" for number in range(20_000)))
    read = sm.Pipeline().read_text(tmp_path / "in.txt")
    together = threading.Barrier(4)

    def run(name: str) -> None:
        def named(record: Record) -> str:
            sm.counter(name).add()
            return f"{name}{record['line']}"

        table = read.map(named, columns={"line": str})
        together.wait(60)
        result = table.collect_arrow(memory="64 MiB", threads=1, processes=processes)
        lines = [record["line"] for record in table.head(3)]
        assert pa.table(result)["line"].to_pylist() == [f"{name}{number}" for number in range(20_000)]
        assert result.report.counters == {name: 20_000}
        assert lines == [f"{name}{number}" for number in range(3)]

    for processes in (1, 0):
        with ThreadPoolExecutor(4) as threads:
            for ran in [threads.submit(run, name) for name in "abcd"]:
                ran.result(300)


def test_ctrl_c_ends_a_look(tmp_path: Path) -> None:
    """It was noticed only where a function was at work, and then the whole job began."""
    (tmp_path / "0.txt").write_text("no such line as that\n" * 200_000)
    for number in range(1, 400):
        (tmp_path / f"{number}.txt").hardlink_to(tmp_path / "0.txt")
    table = sm.Pipeline().read_text(tmp_path / "*.txt").filter(sm.matches("line", "rare|seldom"))
    began = time.monotonic()
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        table.show()
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("processes", [0, 1])
def test_ctrl_c_ends_a_look_with_functions_of_batches(tmp_path: Path, processes: int) -> None:
    """They were called for each batch that planning looks at, and what they raised was thrown away."""
    (tmp_path / "in.txt").write_text("".join(f"{number} x\n" for number in range(60_000)))

    def slow(batch: Any) -> Any:
        with open(tmp_path / "calls", "a") as calls:
            calls.write("x")
        for _ in range(30):
            time.sleep(0.01)
        return batch

    table = sm.Pipeline().read_text(tmp_path / "in.txt").map_batches(slow, {"line": str}, batch_size=500)

    def interrupts() -> None:
        while not (tmp_path / "calls").exists():
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupts).start()
    with pytest.raises(KeyboardInterrupt):
        table.collect(memory="128 MiB", threads=2, processes=processes)
    assert (tmp_path / "calls").stat().st_size <= 8


def test_a_function_that_hangs_is_not_waited_for_at_each_place(tmp_path: Path) -> None:
    """Planning called it for each batch that it looks at: thirty timeouts, and the job's own."""
    (tmp_path / "in.txt").write_text("".join(f"{number} abc\n" for number in range(4_000)))

    def hangs(batch: Any) -> Any:
        with open(tmp_path / "calls", "a") as calls:
            calls.write("x")
        time.sleep(1000)
        return batch

    table = sm.Pipeline().read_text(tmp_path / "in.txt").map_batches(hangs, {"line": str}, batch_size=100, timeout=2)
    with pytest.raises(sm.FunctionError, match="its timeout of 2 s"):
        table.sort("line").collect(memory="128 MiB", threads=1, processes=1)
    assert (tmp_path / "calls").stat().st_size <= 10


@pytest.mark.parametrize("verb", ["sort", "shuffle"])
def test_columns_that_nobody_asks_for_do_not_go_through_a_sort(tmp_path: Path, verb: str) -> None:
    rows = [{"a": number % 7, "b": f"b{number % 5}", "c": None if number % 3 else number, "d": "d" * 100} for number in range(5_000)]
    columns: dict[str, sm.ColumnType] = {"a": int, "b": str, "c": int | None, "d": str}
    job = sm.Pipeline()
    table = job.from_iter(rows, columns)
    brought = table.sort(["b"], descending=True) if verb == "sort" else table.shuffle(seed=3)
    picked = brought.select("c", "a")
    whole = sm.Pipeline().from_iter(rows, columns)
    whole = whole.sort(["b"], descending=True) if verb == "sort" else whole.shuffle(seed=3)
    wanted = [{"c": row["c"], "a": row["a"]} for row in whole.collect()]
    if verb == "sort":
        # Equal ones stay in the order that they had.
        by_b = {f"b{number}": [row for row in rows if row["b"] == f"b{number}"] for number in range(5)}
        model = [{"c": row["c"], "a": row["a"]} for name in sorted(by_b, reverse=True) for row in by_b[name]]
        assert wanted == model
    picked.write_jsonl(tmp_path / "out.jsonl")
    assert ("select a, b, c" if verb == "sort" else "select a, c") in job.explain()
    made = picked.collect_arrow(memory="64 MiB")
    assert pa.table(made).to_pylist() == wanted
    (phase,) = json.loads(made.report.to_json())["phases"]
    # None of the hundred bytes of d.
    assert phase["report"]["fingerprints"]["distributed"]["bytes"] < 60 * len(rows)
