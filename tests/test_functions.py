"""Functions of Python in batches and in worker processes, held against plain Python over what is in memory."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sortmill as sm
from conftest import Text

Make = Callable[[sm.Table], sm.Table]


def lines_of(tmp_path: Path, count: int) -> list[str]:
    lines = [f"line {number} {'x' * (number % 50)}" for number in range(count)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    return lines


def made(tmp_path: Path, make: Make, **how: Any) -> tuple[list[str], sm.Report]:
    job = sm.Pipeline()
    make(job.read_text(tmp_path / "in.txt")).write_text(tmp_path / "out")
    report = job.run(memory="128 MiB", threads=2, **how)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out"]
    return (tmp_path / "out").read_text().splitlines(), report


def failed(tmp_path: Path, make: Make, **how: Any) -> sm.Error:
    (tmp_path / "out").write_text("old")
    job = sm.Pipeline()
    make(job.read_text(tmp_path / "in.txt")).write_text(tmp_path / "out")
    with pytest.raises(sm.Error) as raised:
        job.run(memory="128 MiB", threads=2, **how)
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out"]
    assert children() == []
    return raised.value


def children() -> list[int]:
    """The processes that this one has started and not yet seen end."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == os.getpid():
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("processes", [0, 2])
def test_batches_in_each_format(tmp_path: Path, processes: int) -> None:
    lines = lines_of(tmp_path, 20_000)
    columns: dict[str, Any] = {"line": str, "length": int, "half": float, "is_even": bool, "raw": bytes, "big": "u64"}
    sizes = []

    def arrow(batch: pa.RecordBatch) -> pa.RecordBatch:
        sizes.append(batch.num_rows)
        assert batch.schema == pa.schema([pa.field("line", pa.string())])
        length = pc.utf8_length(batch["line"])
        half = pc.divide(pc.cast(length, pa.float64()), 2.0)
        is_even = pc.equal(pc.bit_wise_and(length, 1), 0)
        raw = pc.cast(batch["line"], pa.binary())
        big = pc.add(pc.cast(length, pa.uint64()), pa.scalar(2**63, pa.uint64()))
        # In another order, and of narrower types that lose nothing.
        return pa.record_batch({"big": big, "raw": raw, "half": half, "is_even": is_even, "length": length, "line": batch["line"]})

    def of_numpy(batch: dict[str, Any]) -> dict[str, Any]:
        length = np.array([len(line) for line in batch["line"]], dtype=np.int32)
        return {
            "line": batch["line"], "length": length, "half": length / 2, "is_even": length % 2 == 0,
            "raw": [line.encode() for line in batch["line"]], "big": length.astype(np.uint64) + np.uint64(2**63),
        }

    def of_pandas(frame: pd.DataFrame) -> pd.DataFrame:
        length = frame["line"].str.len()
        return frame.assign(
            length=length, half=length / 2, is_even=length % 2 == 0, raw=[line.encode() for line in frame["line"]],
            big=length.astype("uint64") + 2**63,
        )

    def of_polars(batch: pa.RecordBatch) -> pl.DataFrame:
        frame = pl.DataFrame(pl.from_arrow(batch))
        length = pl.col("line").str.len_chars().cast(pl.Int64)
        return frame.with_columns(
            length=length, half=length / 2, is_even=length % 2 == 0, raw=pl.col("line").cast(pl.Binary),
            big=length.cast(pl.UInt64) + 2**63,
        )

    wanted = [
        f"{line}\t{len(line)}\t{len(line) / 2}\t{str(len(line) % 2 == 0).lower()}\t{line}\t{2**63 + len(line)}"
        for line in lines
    ]
    functions: list[tuple[Any, str]] = [(arrow, "pyarrow"), (of_polars, "pyarrow"), (of_numpy, "numpy"), (of_pandas, "pandas")]
    # In worker processes, which take their time to begin, two of them.
    for function, form in functions[:: 1 + processes]:
        def make(table: sm.Table) -> sm.Table:
            return table.map_batches(function, columns, batch_format=form, batch_size=3000)

        found, report = made(tmp_path, make, processes=processes)
        assert found == wanted
        [did] = report.functions
        assert (did["verb"], did["name"]) == ("map_batches", function.__name__)
        assert (did["records_in"], did["records_out"]) == (len(lines), len(lines))
        assert did["calls"] >= len(lines) / 3000
        assert report.processes["count"] == processes
    if processes == 0:
        assert max(sizes) == 3000
    assert children() == []


def test_functions_of_records_in_processes(text: Text, tmp_path: Path) -> None:
    def words(record: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"word": word, "length": len(word)} for word in record["line"].split()]

    job = sm.Pipeline()
    table = job.read_text(text.pattern).flat_map(words, columns={"word": str, "length": int})
    table = table.filter(lambda record: record["length"] > 3)
    table = table.map(lambda record: None if record["length"] > 9 else record["length"] * 0.5, columns={"half": float})
    # Behind the verb too.
    counts = table.group_by("half").agg(n=sm.count()).map(
        lambda record: {"half": record["half"], "n": record["n"] + 1}, columns={"half": float, "n": int}
    )
    counts.sort("half").write_csv(tmp_path / "out", header=False)
    assert "in 2 processes" in job.explain(memory="128 MiB", threads=2)
    assert "in this process" in job.explain(memory="128 MiB", processes=0)
    report = job.run(memory="128 MiB", threads=2)
    lengths = (len(word) for line in text.lines for word in line.split())
    model = Counter(length * 0.5 for length in lengths if 3 < length <= 9)
    with (tmp_path / "out").open() as file:
        assert list(csv.reader(file)) == [[str(half), str(n + 1)] for half, n in sorted(model.items())]
    assert [one["verb"] for one in report.functions] == ["flat_map", "filter", "map", "map"]
    assert "functions of Python, in 2 processes" in str(report)
    assert report.processes["resident_bytes_peak"] > 1_000_000
    assert children() == []


class Summed:
    """Passes numbers on, and at its end their sum, which it has counted too."""

    def __init__(self) -> None:
        self.sum = 0

    def __call__(self, record: dict[str, Any]) -> int:
        self.sum += record["n"]
        sm.counter("seen").add()
        return int(record["n"])

    def finish(self) -> list[int]:
        sm.counter("sum").add(self.sum)
        return [-self.sum]


class Sizes:
    """The numbers of records of its batches, all at the end."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.count += batch.num_rows
        return pa.record_batch({"n": pa.array([], pa.int64())})

    def finish(self) -> dict[str, list[int]]:
        return {"n": [self.count]}


@pytest.mark.parametrize("processes", [0, 2])
def test_state_and_counters(tmp_path: Path, processes: int) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{number}\n" for number in range(10_000)))
    total = sum(range(10_000))

    def make(table: sm.Table) -> sm.Table:
        return table.flat_map(sm.fields("line", ";", {"n": int})).map(Summed, columns={"n": int})

    found, report = made(tmp_path, make, processes=processes)
    numbers = [int(line) for line in found]
    assert sorted(number for number in numbers if number >= 0) == list(range(10_000))
    assert -sum(number for number in numbers if number < 0) == total
    assert report.counters == {"seen": 10_000, "sum": total}
    assert f"counted sum: {total}" in str(report)

    def sizes(table: sm.Table) -> sm.Table:
        return table.map_batches(Sizes, {"n": int}, batch_size=100)

    found, _ = made(tmp_path, sizes, processes=processes // 2)
    assert sum(int(line) for line in found) == 10_000


class Added:
    """As `Summed`, of a state that it is made with."""

    def __init__(self, by: int) -> None:
        self.by, self.sums = by, [0]

    def __call__(self, given: Any) -> Any:
        if isinstance(given, pa.RecordBatch):
            numbers = [number + self.by for number in given["n"].to_pylist()]
            self.sums[0] += sum(numbers)
            return {"n": numbers}
        self.sums[0] += given["n"] + self.by
        return [given["n"] + self.by]

    def finish(self) -> Any:
        return {"n": self.sums} if self.by == 3 else self.sums


@pytest.mark.parametrize("processes", [0, 2])
def test_an_object_with_a_finish_is_state_too(tmp_path: Path, processes: int) -> None:
    # Its finish was never called, and nothing said so.
    for by in [2, 3]:
        added = Added(by)

        def make(table: sm.Table) -> sm.Table:
            numbers = table.flat_map(sm.fields("line", ";", {"n": int}))
            of_batches = numbers.map_batches(added, {"n": int}, batch_size=100)
            return of_batches if by == 3 else numbers.flat_map(added, columns={"n": int})

        (tmp_path / "in.txt").write_text("".join(f"{number}\n" for number in range(3000)))
        for _ in range(2):
            found, _ = made(tmp_path, make, processes=processes)
            numbers = sorted(int(line) for line in found)
            assert numbers[: 3000] == list(range(by, 3000 + by))
            assert sum(numbers[3000:]) == sum(range(by, 3000 + by))
        # Each worker had a copy.
        assert added.sums == [0]


@pytest.mark.parametrize("processes", [0, 1])
def test_what_is_made_at_the_end_comes_behind_all_records(processes: int) -> None:
    """It had the place of the last batch's first record, so it came first in groups that begin later."""

    class Last:
        def __call__(self, record: Any) -> Any:
            return record

        def finish(self) -> list[Any]:
            return [{"k": k, "v": "made at the end"} for k in "xyz"]

    columns = {"k": str, "v": str}
    given = sm.Pipeline().from_iter([("x", "1"), ("y", "2"), ("x", "3")], columns).map(Last, columns=columns)
    firsts = given.group_by("k", order="sorted").agg(v=sm.first("v"), n=sm.count())
    found = firsts.collect(memory="128 MiB", threads=1, processes=processes)
    assert [tuple(record.values()) for record in found] == [("x", "1", 3), ("y", "2", 2), ("z", "made at the end", 1)]


@pytest.mark.parametrize("processes", [0, 1])
def test_what_is_no_list_of_records_is_refused(processes: int) -> None:
    table = sm.Pipeline().from_iter([{"a": 1, "b": "x"}], {"a": int, "b": str})

    def refused(table: sm.Table) -> str:
        with pytest.raises(sm.FunctionError) as failed:
            table.collect(memory="128 MiB", processes=processes)
        return failed.value.cause

    # A dictionary was iterated over by its keys, and a text by its letters.
    cause = refused(table.flat_map(lambda record: {"b": "y"}, columns={"b": str}))
    assert "made a dict, and any number of records is expected: a list of dictionaries or values of column b" in cause
    assert "made a str" in refused(table.flat_map(lambda record: "xyz", columns={"b": str}))
    number: Any = lambda record: 3
    assert "made a int" in refused(table.flat_map(number, columns={"a": int, "b": str}))
    cause = refused(table.group_by("a").apply(lambda key, records: {"b": "y"}, columns={"b": str}))
    assert "made a dict" in cause
    # What is too much was dropped.
    cause = refused(table.map(lambda record: {**record, "c": 1}, columns={"a": int, "b": str}))
    assert "a column c too many: those that come out are a, b" in cause
    cause = refused(table.flat_map(lambda record: [{"a": 1, "b": "x", "d": 0}], columns={"a": int, "b": str}))
    assert "a column d too many" in cause
    # A wrong type names its column.
    cause = refused(table.map(lambda record: {"a": "x", "b": "y"}, columns={"a": int, "b": str}))
    assert "column a is of type i64" in cause and "str" in cause
    assert "column b is of type string" in refused(table.map(lambda record: 5, columns={"b": str}))

    def letters(record: Any) -> Any:
        yield from record["b"] + "z"

    assert table.flat_map(letters, columns={"b": str}).collect(memory="128 MiB") == [{"b": "x"}, {"b": "z"}]


@pytest.mark.parametrize("processes", [0, 1])
def test_what_a_function_makes_is_looked_at(tmp_path: Path, processes: int) -> None:
    lines_of(tmp_path, 300)
    at = sum(len(f"line {number} {'x' * (number % 50)}\n") for number in range(200))

    def case(batch: Any, number: int) -> Any:
        if not any(line.as_py().startswith("line 200 ") for line in batch["line"]):
            return batch
        count = batch.num_rows
        return [
            None,
            3,
            pa.record_batch({"line": pa.array(["x"]), "more": pa.array([1])}),
            pa.record_batch({"other": pa.array(["x"])}),
            pa.record_batch({"line": pa.array([1] * count)}),
            pa.record_batch({"line": pa.array(["x", None])}),
        ][number]

    causes = ["None", "no Arrow data", "column more too many", "too many|no column line", "no string", "null, in row 1"]
    # The same code looks at it in a worker process, which takes its time to begin.
    for number, cause in list(enumerate(causes))[processes * 4 :]:
        def make(table: sm.Table) -> sm.Table:
            return table.map_batches(lambda batch: case(batch, number), {"line": str}, batch_size=100)

        error = failed(tmp_path, make, processes=processes)
        assert isinstance(error, sm.FunctionError)
        # Of the batch's first record.
        assert (error.file, error.offset) == (str(tmp_path / "in.txt"), at)
        assert any(word in error.cause for word in cause.split("|")), error.cause

    def uneven(batch: dict[str, Any]) -> dict[str, Any]:
        return {"line": ["x"], "n": [1, 2]}

    error = failed(
        tmp_path, lambda table: table.map_batches(uneven, {"line": str, "n": int}, batch_format="numpy"), processes=0
    )
    assert isinstance(error, sm.FunctionError) and error.offset == 0
    with pytest.raises(sm.UsageError, match="batch_format='arrow'"):
        sm.Pipeline().read_text(tmp_path / "in.txt").map_batches(len, batch_format="arrow")


def test_text_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"good\nbad \xff\nb\xc3\n\xa4\n")
    for processes in (0, 1):
        error = failed(tmp_path, lambda table: table.map_batches(lambda batch: batch), processes=processes)
        assert isinstance(error, sm.InputError) and error.offset == 5
        error = failed(tmp_path, lambda table: table.filter(lambda record: True), processes=processes)
        assert isinstance(error, sm.InputError) and error.offset == 5


class Odd(Exception):
    """One that wants to be made of two things, and so cannot be unpickled."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def test_an_exception_of_a_worker_process(tmp_path: Path) -> None:
    lines_of(tmp_path, 300)
    at = sum(len(f"line {number} {'x' * (number % 50)}\n") for number in range(150))

    def deep(record: dict[str, Any]) -> Any:
        if record["line"].startswith("line 150 "):
            raise KeyError("deep down")
        return record["line"]

    error = failed(tmp_path, lambda table: table.map(deep, columns={"line": str}), processes=2)
    assert isinstance(error, sm.FunctionError) and isinstance(error.__cause__, KeyError)
    assert (error.file, error.offset) == (str(tmp_path / "in.txt"), at)
    assert "in deep" in "".join(traceback.format_exception(error))
    assert error.cause.endswith(", of the record {'line': 'line 150 '}")

    def odd(record: dict[str, Any]) -> Any:
        raise Odd("strange", "thing")

    error = failed(tmp_path, lambda table: table.map(odd, columns={"line": str}), processes=1)
    assert isinstance(error, sm.FunctionError) and "strange thing" in error.cause
    assert "in odd" in "".join(traceback.format_exception(error))

    # What cannot be pickled does not leave.
    lock = __import__("threading").Lock()

    def locked(record: dict[str, Any]) -> Any:
        with lock:
            return record["line"]

    error = failed(tmp_path, lambda table: table.map(locked, columns={"line": str}), processes=1)
    assert isinstance(error, sm.UsageError) and "processes=0" in str(error)
    found, _ = made(tmp_path, lambda table: table.map(locked, columns={"line": str}), processes=0)
    assert len(found) == 300


def test_a_process_that_dies_hangs_or_eats_memory(tmp_path: Path) -> None:
    lines_of(tmp_path, 300)

    def dies(record: dict[str, Any]) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    error = failed(tmp_path, lambda table: table.map(dies, columns={"line": str}), processes=1)
    assert isinstance(error, sm.FunctionError) and "killed by signal 9" in error.cause
    assert "pure=True" in (error.hint or "")
    error = failed(tmp_path, lambda table: table.map(dies, columns={"line": str}, pure=True), processes=1)
    assert isinstance(error, sm.FunctionError) and "3 times" in error.cause
    error = failed(tmp_path, lambda table: table.map(lambda record: os._exit(7), columns={"line": str}), processes=1)
    assert isinstance(error, sm.FunctionError) and "exit code 7" in error.cause

    def hangs(batch: Any) -> Any:
        time.sleep(1000)

    error = failed(tmp_path, lambda table: table.map_batches(hangs, timeout=0.2), processes=1)
    assert isinstance(error, sm.FunctionError) and "timeout of 0.2 s" in error.cause

    def eats(batch: Any) -> Any:
        kept = bytearray(os.urandom(1 << 20) * 400)
        time.sleep(1000 if kept else 0)

    error = failed(tmp_path, lambda table: table.map_batches(eats), processes=1, worker_memory="300 MiB")
    assert isinstance(error, sm.FunctionError) and "worker_memory is 300.0 MiB" in error.cause


def test_batches_of_dead_processes_are_called_with_again(tmp_path: Path, draw: random.Random) -> None:
    lines = lines_of(tmp_path, 1000)
    tally = str(tmp_path.with_name(tmp_path.name + "-tally"))

    def sometimes_dies(batch: Any) -> Any:
        # Each process once, in the midst of its work: at its fifth batch, as long as fewer than three have died.
        sometimes_dies.__dict__["calls"] = sometimes_dies.__dict__.get("calls", 0) + 1
        if sometimes_dies.__dict__["calls"] == 5:
            with open(tally, "a") as file:
                file.write("x")
                died = file.tell()
            if died <= 3:
                os.kill(os.getpid(), signal.SIGKILL)
        # More than one piece for each.
        return pa.record_batch({"line": pa.array([line.as_py() * 800 for line in batch["line"]])})

    def make(table: sm.Table) -> sm.Table:
        return table.map_batches(sometimes_dies, {"line": str}, batch_size=50, pure=True)

    found, report = made(tmp_path, make, processes=2)
    assert [line[: len(line) // 800] for line in found] == lines
    assert report.processes["died"] == 3 and report.processes["forked"] == report.processes["started"] > 3
    assert report.processes["server_bytes_peak"] > 1_000_000
    os.unlink(tally)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_no_process_outlives_its_parent(tmp_path: Path, how: str) -> None:
    lines_of(tmp_path, 300)
    program = f"""
import os, sys, time
import sortmill as sm

def hangs(record):
    with open({str(tmp_path)!r} + "/pids", "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    while True:
        time.sleep(1000)

job = sm.Pipeline()
job.read_text({str(tmp_path / "in.txt")!r}).map(hangs, columns={{"line": str}}).write_text({str(tmp_path / "out")!r})
job.run(memory="128 MiB", temp={str(tmp_path)!r}, processes=2)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    pids = tmp_path / "pids"
    while not (pids.exists() and pids.read_text().endswith("\n")):
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(getattr(signal, how))
    _, errors = child.communicate()
    if how == "SIGINT":
        assert b"KeyboardInterrupt" in errors
    for pid in pids.read_text().split():
        while is_running(int(pid)):
            time.sleep(0.02)
    assert not (tmp_path / "out").exists()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_several_outputs_and_looks(tmp_path: Path) -> None:
    """One report of all outputs; and a look at a table calls functions in this process, of no more records than it must."""
    lines = lines_of(tmp_path, 3000)
    seen: list[str] = []

    def shout(record: dict[str, Any]) -> str:
        seen.append(record["line"])
        sm.counter("shouted").add()
        return str(record["line"]).upper()

    job = sm.Pipeline()
    shouted = job.read_text(tmp_path / "in.txt").map(shout, columns={"line": str})
    wanted = [{"line": line.upper()} for line in lines]
    assert shouted.head(2) == wanted[:2] and seen == lines[:2]
    assert shouted.head(5000) == wanted
    seen.clear()
    assert shouted.collect(memory="128 MiB", processes=1) == wanted
    assert seen == []
    assert shouted.collect(memory="128 MiB", processes=0) == wanted
    assert len(seen) >= len(lines)
    shouted.write_text(tmp_path / "all")
    shouted.filter(lambda record: record["line"].endswith("9 ")).write_text(tmp_path / "some", files=2)
    for processes in (0, 1):
        report = job.run(memory="128 MiB", processes=processes)
        assert (tmp_path / "all").read_text().splitlines() == [line.upper() for line in lines]
        parts = [(tmp_path / "some" / f"part-0000{number}.txt").read_text() for number in range(2)]
        assert "".join(parts).splitlines() == [line.upper() for line in lines if line.endswith("9 ")]
        # It was twice that: a count of bad records in front of two outputs was twice as many as there are.
        assert report.counters == {"shouted": len(lines)}
        assert [one["counters"] for one in report.functions] == [{"shouted": len(lines)}, {"shouted": len(lines)}, {}]
        assert len({one["id"] for one in report.functions}) == 2
        verbs = [(one["verb"], one["records_in"]) for one in report.functions]
        assert verbs == [("map", 3000), ("map", 3000), ("filter", 3000)]
        assert report.processes["count"] == processes
        assert report.processes.get("started", 0) == 2 * processes
    assert children() == []


@pytest.mark.parametrize("processes", [0, 2])
def test_counters_of_several_outputs(tmp_path: Path, processes: int) -> None:
    """Each function counts once, however many outputs it is in front of; and those of one name are added up."""
    count = len(lines_of(tmp_path, 700))

    def seen(record: dict[str, Any]) -> str:
        sm.counter("seen").add()
        sm.counter("first").add()
        return str(record["line"])

    def again(record: dict[str, Any]) -> bool:
        sm.counter("seen").add()
        return len(record["line"]) % 2 == 0

    job = sm.Pipeline()
    table = job.read_text(tmp_path / "in.txt").map(seen, columns={"line": str})
    # The same function twice is two functions.
    even = table.filter(again)
    even.filter(again).write_text(tmp_path / "a")
    even.sort("line").write_text(tmp_path / "b")
    table.group_by("line").apply(lambda line, records: [len(list(records))], columns={"n": int}).write_text(tmp_path / "c")
    job.read_text(tmp_path / "in.txt").map(seen, columns={"line": str}).write_text(tmp_path / "d")
    report = job.run(memory="128 MiB", processes=processes)
    half = len((tmp_path / "b").read_text().splitlines())
    # Of the first table, of the filters, and of the table that is read for itself.
    assert report.counters == {"seen": count + count + half + count, "first": 2 * count}
    assert f"counted seen: {3 * count + half}" in str(report)
    assert [one["counters"].get("seen", 0) for one in report.functions] == [count, count, half, count, count, count, 0, count]
    # Outputs that are made in a run of their own are counted there.
    table.write_text(tmp_path / "e")
    assert job.run(memory="128 MiB", processes=processes).counters == {"seen": count, "first": count}


def test_parts_beside_columns_that_stay(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a;The sea, the sea!\nb;\nc;one\n")
    lines = sm.Pipeline().read_text(tmp_path / "in.txt", line_number="n")
    cut = lines.flat_map(sm.fields("line", ";", {"name": str, "text": str}, keep="n"))
    assert cut.columns == {"n": "u64", "name": "string", "text": "string"}
    words = cut.flat_map(sm.words("text", lower=True, keep=["name", "n"]))
    assert words.columns == {"name": "string", "n": "u64", "word": "string"}
    found = [tuple(record.values()) for record in words.collect(memory="128 MiB")]
    assert found == [("a", 1, "the"), ("a", 1, "sea"), ("a", 1, "the"), ("a", 1, "sea"), ("c", 3, "one")]
    pairs = cut.flat_map(sm.ngrams("text", 2, keep="text")).group_by("text").agg(n=sm.count())
    assert pairs.collect(memory="128 MiB") == [{"text": "The sea, the sea!", "n": 3}]
    letters = cut.flat_map(sm.extract("text", "(.)h", {"letter": str | None}, keep="name"))
    assert letters.collect(memory="128 MiB") == [{"name": "a", "letter": "T"}]
    parts = cut.flat_map(sm.split("text", " ", name="name2", keep=("name",))).select("name", "name2")
    assert len(parts.collect(memory="128 MiB")) == 6
    wrong: Any = [3]
    refusals: list[tuple[Callable[[], Any], str]] = [
        (lambda: cut.flat_map(sm.words("text", keep="other")), "no column other"),
        (lambda: cut.flat_map(sm.split("text", " ", name="n", keep="n")), "two columns are called n"),
        (lambda: cut.flat_map(sm.words("text", keep=wrong)), "keep names columns that stay"),
    ]
    for refused, cause in refusals:
        with pytest.raises(sm.UsageError, match=cause):
            refused()
