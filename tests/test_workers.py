"""Worker processes: how they begin, what functions keep of what they are given, and functions of groups in them."""

from __future__ import annotations

import importlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pyarrow as pa
import pytest

import sortmill as sm
from test_functions import children, failed, lines_of, made

Record = dict[str, Any]


def test_a_process_that_nobody_waits_for_any_more_ends_without_words() -> None:
    """One forked ahead, say, when the job had just ended: it used to print a traceback of a broken pipe."""
    ours, theirs = socket.socketpair()
    ours.close()
    words = [sys.executable, "-c", "from sortmill._worker import main; main([0, 0], False)"]
    ended = subprocess.run(words, stdin=theirs.fileno(), capture_output=True, timeout=60)
    theirs.close()
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_process_that_has_loaded_and_is_not_needed_ends_without_words(tmp_path: Path) -> None:
    """Whoever started it goes away without having read what it said, and the system calls that a reset."""
    for _ in range(20):
        ours, theirs = socket.socketpair()
        with (tmp_path / "memory").open("w+b") as memory:
            functions = cloudpickle.dumps([])
            memory.write(functions)
            memory.flush()
            words = "import sys; from sortmill._worker import main; main([int(sys.argv[1])] * 2, False)"
            worker = subprocess.Popen(
                [sys.executable, "-c", words, str(memory.fileno())],
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[memory.fileno()],
            )
            theirs.close()
            ours.sendall(len(functions).to_bytes(8, "little"))
            # Of two answers, which have the same length, it has said both, and one stays there.
            ours.recv(56)
            ours.recv(1, socket.MSG_PEEK)
            ours.close()
            said, _ = worker.communicate(timeout=60)
        assert said == b"" and worker.returncode in (0, -signal.SIGKILL)


def test_processes_are_forks_of_one_that_has_arrow(tmp_path: Path) -> None:
    """They draw random numbers of their own, and find nothing on standard input."""
    lines_of(tmp_path, 2000)

    def drawn(batch: pa.RecordBatch) -> dict[str, list[Any]]:
        assert sys.stdin.read() == ""
        values = [os.getpid(), os.getppid(), random.getrandbits(60), int(np.random.randint(2**60))]
        return {"line": [" ".join(map(str, values))]}

    found, report = made(tmp_path, lambda table: table.map_batches(drawn, {"line": str}, batch_size=100), processes=1)
    # Each output is made by processes of its own, forked from a server of its own.
    again, _ = made(tmp_path, lambda table: table.map_batches(drawn, {"line": str}, batch_size=100), processes=1)
    rows = [[int(word) for word in line.split()] for line in found + again]
    assert len({number for *_, number, other in rows for number in (number, other)}) == 2 * len(rows)
    assert os.getpid() not in {parent for _, parent, *_ in rows}
    assert (report.processes["started"], report.processes["forked"]) == (1, 1)

    def same_server(batch: pa.RecordBatch) -> dict[str, list[Any]]:
        if same_server.__dict__.setdefault("count", 0) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        same_server.__dict__["count"] += 1
        return {"line": [f"{os.getppid()} {int(np.random.randint(2**60))}"]}

    found, report = made(
        tmp_path, lambda table: table.map_batches(same_server, {"line": str}, batch_size=900, pure=True), processes=1
    )
    parents, numbers = zip(*(line.split() for line in found))
    assert report.processes["died"] > 0 and len(set(parents)) == 1 and len(set(numbers)) == len(numbers)


def test_one_that_is_forked_ahead_has_loaded_the_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that takes long to import used to be waited for after each death."""
    lines = lines_of(tmp_path, 1000)
    log = tmp_path.with_name(tmp_path.name + "-log")
    log.touch()
    folder = tmp_path.with_name(tmp_path.name + "-modules")
    folder.mkdir()
    (folder / "slow_to_import.py").write_text(f"""
import os, signal, time

def logged(word=""):
    with open({str(log)!r}, "a+") as file:
        file.write(word)
        file.seek(0)
        words = file.read()
    return words.count("i"), words.count("d")

def dies(batch):
    state = dies.__dict__
    state["calls"] = state.get("calls", 0) + 1
    imported, died = logged()
    if state["calls"] == 2 and died < 3:
        # From the second death on there is one more that has come so far, before anybody asks it.
        until = time.monotonic() + 60
        while died > 0 and imported < died + 2:
            assert time.monotonic() < until, "nothing was imported ahead"
            time.sleep(0.01)
            imported, died = logged()
        logged("d")
        os.kill(os.getpid(), signal.SIGKILL)
    return batch

logged("i")
""")
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("slow_to_import")
    log.write_text("")
    found, report = made(
        tmp_path, lambda table: table.map_batches(module.dies, {"line": str}, batch_size=100, pure=True), processes=1
    )
    assert found == lines and report.processes["died"] == 3


def test_where_threads_run_nothing_is_forked(tmp_path: Path) -> None:
    """A thread that whatever begins in each interpreter, as site packages may: its locks would be locked in a fork for ever."""
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
    )
    (tmp_path / "in.txt").write_text("a\nb\n")
    program = f"""
import sortmill as sm
job = sm.Pipeline()
table = job.read_text({str(tmp_path / "in.txt")!r}).map(lambda record: record["line"] * 2, columns={{"line": str}})
table.write_text({str(tmp_path / "out")!r})
report = job.run(memory="128 MiB", processes=1)
print(report.processes["started"], report.processes["forked"])
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1 0\n", "")
    assert (tmp_path / "out").read_text() == "aa\nbb\n"


def test_a_process_that_ends_before_it_is_asked_is_replaced(tmp_path: Path) -> None:
    """Nothing was called there, so that its function need not be pure."""
    lines = lines_of(tmp_path, 1000)
    tally = tmp_path.with_name(tmp_path.name + "-tally")

    class EndsItsProcess:
        def __init__(self, times: int) -> None:
            self.times = times

        def __setstate__(self, state: dict[str, Any]) -> None:
            self.__dict__.update(state)
            with tally.open("a") as file:
                file.write("x")
                file.flush()
                if file.tell() <= self.times:
                    os.kill(os.getpid(), signal.SIGKILL)

        def __call__(self, record: Record) -> str:
            return str(record["line"])

    def make(times: int) -> Any:
        return lambda table: table.map(EndsItsProcess(times), columns={"line": str})

    found, _ = made(tmp_path, make(2), processes=1)
    assert found == lines and len(tally.read_text()) == 3
    tally.unlink()
    error = failed(tmp_path, make(1000), processes=1)
    assert isinstance(error, sm.FunctionError) and "called nothing" in error.cause and "signal 9" in error.cause
    tally.unlink()


def test_a_server_that_dies_is_started_anew(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, 1000)
    tally = tmp_path.with_name(tmp_path.name + "-tally")

    def kills_both(record: Record) -> str:
        if record["line"].startswith("line 500 ") and not tally.exists():
            tally.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return str(record["line"])

    found, report = made(tmp_path, lambda table: table.map(kills_both, columns={"line": str}, pure=True), processes=1)
    assert found == lines
    assert (report.processes["started"], report.processes["died"]) == (2, 1)
    assert children() == []
    tally.unlink()


class Keeps:
    """Keeps all it is given, and looks at the end whether that is as it was."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.kept.append((batch, batch.to_pylist()))
        return batch.slice(0, 1)

    def finish(self) -> dict[str, list[Any]]:
        assert all(batch.to_pylist() == was for batch, was in self.kept)
        number = [record["number"] for batch, _ in self.kept for record in batch.to_pylist()]
        return {"number": [-sum(number)], "line": ["all"], "is_even": [True], "half": [0.5]}


def test_what_functions_keep_stays_as_it_was(tmp_path: Path) -> None:
    """Batches lie in memory that the next ones come to: whoever keeps one keeps what it was."""
    count = 5000
    rows = [{"number": number, "line": "x" * (number % 700), "is_even": number % 2 == 0, "half": number / 2} for number in range(count)]
    job = sm.Pipeline()
    table = job.from_arrow(pa.Table.from_pylist(rows))
    firsts = table.map_batches(Keeps, batch_size=300).collect(memory="128 MiB", threads=1, processes=1)
    assert [first["number"] for first in firsts if first["number"] < 0] == [-sum(range(count))]
    firsts = [first for first in firsts if first["number"] >= 0]
    assert all(first == rows[first["number"]] for first in firsts) and len(firsts) >= count / 300


def test_columns_as_they_lie_there(tmp_path: Path) -> None:
    """What is answered may be cut out of something larger, come in several batches, some of them empty, and in large pieces."""
    lines = lines_of(tmp_path, 3000)

    def cut(batch: pa.RecordBatch) -> pa.Table:
        number = pa.array([int(line.as_py().split()[1]) for line in batch["line"]])
        is_even = pa.array([value.as_py() % 2 == 0 for value in number])
        large = pa.record_batch({"line": batch["line"], "number": number, "is_even": is_even})
        parts = [large.slice(0, 0), large.slice(0, 7), large.slice(7, 0), large.slice(7, 90), large.slice(97), large.slice(5, 0)]
        return pa.Table.from_batches(parts)

    columns: Any = {"number": int, "line": str, "is_even": bool}
    found, _ = made(tmp_path, lambda table: table.map_batches(cut, columns, batch_size=1000), processes=1)
    assert found == [f"{number}\t{line}\t{str(number % 2 == 0).lower()}" for number, line in enumerate(lines)]

    def nothing(batch: pa.RecordBatch) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(batch.schema, [])

    found, _ = made(tmp_path, lambda table: table.map_batches(nothing), processes=1)
    assert found == []

    def longer(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"line": pa.array([line.as_py() * 300 for line in batch["line"]], pa.large_string())})

    found, _ = made(tmp_path, lambda table: table.map_batches(longer), processes=1)
    assert found == [line * 300 for line in lines]


def tails(table: sm.Table) -> sm.Table:
    """Of each line its number and its group, which is how many x it ends in."""

    def one(record: Record) -> Record:
        _, number, tail = record["line"].split(" ")
        return {"tail": len(tail), "number": int(number)}

    return table.map(one, columns={"tail": int, "number": int})


def test_functions_of_groups_in_processes(tmp_path: Path) -> None:
    """The same as in this process: outputs in their order, counts, and what the report says."""
    lines = lines_of(tmp_path, 3000)

    def first(tail: int, records: Iterator[Record]) -> Iterable[Record]:
        assert os.getpid() != parent or processes == 0
        sm.counter("groups").add()
        yield {"tail": tail, "n": sum(1 for _ in records)}

    def make(table: sm.Table) -> sm.Table:
        return tails(table).group_by("tail").apply(first, columns={"tail": int, "n": int}).filter(lambda one: one["n"] > 0)

    parent = os.getpid()
    model = Counter(len(line.split(" ")[2]) for line in lines)
    outputs = []
    for processes in (0, 2):
        found, report = made(tmp_path, make, processes=processes)
        assert sorted(tuple(map(int, line.split("\t"))) for line in found) == sorted(model.items())
        outputs.append(found)
        assert [one["verb"] for one in report.functions] == ["map", "apply", "filter"]
        did = report.functions[1]
        assert (did["name"], did["records_in"], did["records_out"]) == ("first", 3000, 50)
        assert report.counters == {"groups": 50}
    assert outputs[0] == outputs[1]
    assert children() == []
    # As many processes as threads if nothing is said, if there is no other function either.
    job = sm.Pipeline()
    fields = job.read_text(tmp_path / "in.txt").flat_map(sm.fields("line", " ", {"word": str, "number": int, "tail": str}))
    fields.group_by("tail").apply(lambda key, records: [key], columns={"tail": str}).write_text(tmp_path / "out")
    assert "functions        in 2 processes" in job.explain(memory="128 MiB", threads=2)


@pytest.mark.parametrize("processes", [0, 2])
def test_a_reduce_takes_one_after_the_other(tmp_path: Path, draw: random.Random, processes: int) -> None:
    """In the order of the input, which a function that is not associative shows."""
    numbers = [(draw.randrange(40), draw.randrange(1000)) for _ in range(4000)]
    (tmp_path / "in.txt").write_text("".join(f"{key} {value}\n" for key, value in numbers))

    def fold(left: Record, right: Record) -> Record:
        return {"key": left["key"], "value": (3 * left["value"] + right["value"]) % 1_000_003}

    def make(table: sm.Table) -> sm.Table:
        fields = table.flat_map(sm.fields("line", " ", {"key": int, "value": int}))
        return fields.group_by("key").reduce(fold, associative=False).sort("key")

    model: dict[int, int] = {}
    for key, value in numbers:
        model[key] = (3 * model[key] + value) % 1_000_003 if key in model else value
    found, report = made(tmp_path, make, processes=processes)
    assert found == [f"{key}\t{value}" for key, value in sorted(model.items())]
    [did] = report.functions
    assert (did["verb"], did["name"], did["records_in"], did["records_out"]) == ("reduce", "fold", 4000, len(model))


@pytest.mark.parametrize("processes", [0, 2])
def test_an_associative_reduce_is_combined(tmp_path: Path, draw: random.Random, processes: int) -> None:
    """What puts maps `x -> a x + b` behind one another shows who loses, doubles or turns two of a group around."""
    prime = 1_000_003
    numbers = [(draw.choice([7, draw.randrange(40)]), draw.randrange(prime), draw.randrange(prime)) for _ in range(40_000)]
    (tmp_path / "in.txt").write_text("".join(f"{key} {a} {b}\n" for key, a, b in numbers))

    def compose(left: Record, right: Record) -> Record:
        a = left["a"] * right["a"] % prime
        # Whatever becomes of the key, the record stays in its group.
        return {"key": -1, "a": a, "b": (left["b"] * right["a"] + right["b"]) % prime}

    def make(table: sm.Table) -> sm.Table:
        fields = table.flat_map(sm.fields("line", " ", {"key": int, "a": int, "b": int}))
        return fields.group_by("key").reduce(compose, pure=True).sort("key")

    model: dict[int, Record] = {}
    for key, a, b in numbers:
        record = {"key": key, "a": a, "b": b}
        model[key] = {**compose(model[key], record), "key": key} if key in model else record
    found, report = made(tmp_path, make, processes=processes)
    assert found == [f"{key}\t{one['a']}\t{one['b']}" for key, one in sorted(model.items())]
    assert report.phases[0]["report"]["fingerprints"]["distributed"]["records"] < len(numbers) / 20
    job = sm.Pipeline()
    make(job.read_text(tmp_path / "in.txt")).write_text(tmp_path / "out")
    assert "combine what is near by key" in job.explain(memory="128 MiB")


class Opens:
    """Numbers the groups that it is called with, from 1."""

    def __init__(self) -> None:
        self.groups = 0
        sm.counter("objects").add()

    def __call__(self, key: int, records: Iterator[Record]) -> Iterator[Record]:
        self.groups += 1
        yield {"key": key, "group": self.groups, "sum": sum(record["value"] for record in records)}


class Adds:
    """Adds up, by a table that is made once."""

    def __init__(self) -> None:
        self.values = ["value"]

    def __call__(self, left: Record, right: Record) -> Record:
        return {**left, **{name: left[name] + right[name] for name in self.values}}


@pytest.mark.parametrize("processes", [0, 2])
def test_a_class_has_an_object_for_the_groups_of_a_partition(tmp_path: Path, draw: random.Random, processes: int) -> None:
    """It was called as a function is: an object of a group each, made of its key and its records."""
    numbers = [(draw.randrange(300), draw.randrange(1000)) for _ in range(20_000)]
    sums: dict[int, int] = defaultdict(int)
    for key, value in numbers:
        sums[key] += value
    table = sm.Pipeline().from_iter(numbers, {"key": int, "value": int})
    applied = table.group_by("key").apply(Opens, columns={"key": int, "group": int, "sum": int})
    found = applied.collect(memory="128 MiB", processes=processes)
    assert {one["key"]: one["sum"] for one in found} == sums
    # Each object counts its own groups, without a gap.
    times = Counter(one["group"] for one in found)
    assert list(times.values()) == sorted(times.values(), reverse=True) and sorted(times) == list(range(1, len(times) + 1))
    report = applied.report
    assert report is not None and report.counters["objects"] == times[1] < len(sums)
    [did] = report.functions
    assert (did["name"], did["records_in"], did["records_out"]) == ("Opens", 20_000, len(sums))
    for associative in (True, False):
        reduced = table.group_by("key").reduce(Adds, associative=associative)
        assert {one["key"]: one["value"] for one in reduced.collect(memory="128 MiB", processes=processes)} == sums

    class Refuses(Adds):
        def __init__(self) -> None:
            raise ZeroDivisionError("nothing is made")

    for refused in (table.group_by("key").reduce(Refuses), table.group_by("key").apply(Refuses, columns={"key": int})):
        with pytest.raises(sm.FunctionError, match="nothing is made") as raised:
            refused.collect(memory="128 MiB", processes=processes)
        assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_what_an_object_of_groups_kept_is_not_made_again(tmp_path: Path) -> None:
    class Dies(Opens):
        def __call__(self, key: int, records: Iterator[Record]) -> Iterator[Record]:
            if key == 7:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(key, records)

    table = sm.Pipeline().from_iter([(key, 1) for key in range(10)], {"key": int, "value": int})
    dies = table.group_by("key").apply(Dies, columns={"key": int, "group": int, "sum": int}, pure=True)
    with pytest.raises(sm.FunctionError, match="what its object kept is lost"):
        dies.collect(memory="128 MiB", processes=1)


def test_a_reduce_of_one_column(tmp_path: Path) -> None:
    """What it makes is a value and stays in its group, which it left."""

    def five(left: Record, right: Record) -> Any:
        return 5

    table = sm.Pipeline().from_iter([3, 1, 3, 2, 1], {"n": int})
    assert table.group_by("n").reduce(five).sort("n").collect(memory="128 MiB") == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("processes", [0, 2])
def test_what_fails_while_it_is_combined_has_a_place(tmp_path: Path, processes: int) -> None:
    lines = [f"{number % 5} {number}\n" for number in range(3000)]
    (tmp_path / "in.txt").write_text("".join(lines))

    def fails(left: Record, right: Record) -> Record:
        return {**left, "number": left["number"] // (right["number"] - 1500)}

    job = sm.Pipeline()
    fields = job.read_text(tmp_path / "in.txt").flat_map(sm.fields("line", " ", {"key": int, "number": int}))
    fields.group_by("key").reduce(fails).write_text(tmp_path / "out")
    with pytest.raises(sm.FunctionError, match="by zero, in the group 0, in the 3000 records from there on") as raised:
        job.run(memory="128 MiB", processes=processes)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert (raised.value.file, raised.value.offset) == (str(tmp_path / "in.txt"), 0)


def test_groups_of_dead_processes_are_worked_through_again(tmp_path: Path) -> None:
    """Some small, two of several batches; what came of a group before its process died comes once, and counts once."""
    tally = tmp_path.with_name(tmp_path.name + "-tally")
    tally.mkdir()
    model: dict[str, list[int]] = defaultdict(list)
    with (tmp_path / "in.txt").open("w") as file:
        for number in range(9000):
            key = f"k{number % 500}" if number % 3 == 0 else f"large {number % 2}"
            model[key].append(number)
            file.write(f"{key};{number};{'y' * 100}\n")

    def echo(key: str, records: Iterator[Record]) -> Iterator[Record]:
        sm.counter("groups").add()
        for record in records:
            # Two of one group, far apart, and one of another, once each.
            died = tally / str(record["number"])
            if record["number"] in (100, 8000, 8003) and not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            sm.counter("records").add()
            yield {"key": key, "number": record["number"], "rest": record["rest"] * 2}

    def make(table: sm.Table) -> sm.Table:
        fields = table.flat_map(sm.fields("line", ";", {"key": str, "number": int, "rest": str}))
        columns: Any = {"key": str, "number": int, "rest": str}
        return fields.group_by("key").apply(echo, sort="number", columns=columns, pure=True)

    found, report = made(tmp_path, make, processes=2)
    rows = [line.split("\t") for line in found]
    assert all(rest == "y" * 200 for *_, rest in rows)
    groups: dict[str, list[int]] = defaultdict(list)
    for key, value, _ in rows:
        groups[key].append(int(value))
    assert groups == model
    assert report.processes["died"] == 3
    assert report.counters == {"groups": len(model), "records": 9000}
    [did] = report.functions
    assert (did["records_in"], did["records_out"]) == (9000, 9000)
    shutil.rmtree(tally)


def test_functions_of_groups_whose_process_dies_or_hangs(tmp_path: Path) -> None:
    lines_of(tmp_path, 300)

    def dies(tail: int, records: Iterator[Record]) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def applied(function: Any, **how: Any) -> sm.Error:
        def make(table: sm.Table) -> sm.Table:
            return tails(table).group_by("tail").apply(function, columns={"n": int}, **how)

        return failed(tmp_path, make, processes=1)

    error = applied(dies)
    assert isinstance(error, sm.FunctionError) and "killed by signal 9" in error.cause
    assert "pure=True" in (error.hint or "")
    error = applied(dies, pure=True)
    assert isinstance(error, sm.FunctionError) and "3 times" in error.cause

    def hangs(tail: int, records: Iterator[Record]) -> Any:
        time.sleep(1000)

    error = applied(hangs, timeout=0.2)
    assert isinstance(error, sm.FunctionError) and "timeout of 0.2 s" in error.cause


def test_a_dead_process_is_noticed_though_one_that_it_forked_lives(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """That one has the socket, too, so nothing said that the other end was closed: the job waited for ever."""
    lines_of(tmp_path, 300)
    forked = tmp_path_factory.mktemp("forked")

    def leaves_one_behind(record: Record) -> Any:
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        (forked / str(child)).touch()
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        error = failed(tmp_path, lambda table: table.map(leaves_one_behind, columns={"line": str}), processes=1)
        assert isinstance(error, sm.FunctionError) and "killed by signal 9" in error.cause
    finally:
        for child in forked.iterdir():
            os.kill(int(child.name), signal.SIGKILL)


def test_a_group_that_is_too_long_to_be_kept(tmp_path: Path) -> None:
    """A pure function, too, cannot be given a group again of which nobody has the beginning any more."""
    (tmp_path / "in.txt").write_text("".join(f"hot {number} {'x' * 90}\n" for number in range(20_000)))

    def dies_late(key: str, records: Iterator[Record]) -> Iterator[int]:
        for record in records:
            if record["number"] == 19_000:
                os.kill(os.getpid(), signal.SIGKILL)
            yield record["number"]

    def make(table: sm.Table) -> sm.Table:
        fields = table.flat_map(sm.fields("line", " ", {"key": str, "number": int, "rest": str}))
        return fields.group_by("key").apply(dies_late, sort="number", columns={"n": int}, pure=True)

    error = failed(tmp_path, make, processes=1)
    assert isinstance(error, sm.FunctionError) and "more came of its group before than is kept" in error.cause


def test_a_path_on_the_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python passes over what is no text there; the words that start a worker process named its class."""
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    table = sm.Pipeline().from_iter(range(10), {"n": int}).map(lambda record: record["n"] + 1, columns={"n": int})
    assert table.collect(memory="128 MiB", processes=1) == [{"n": n + 1} for n in range(10)]
