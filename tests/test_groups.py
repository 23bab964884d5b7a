"""Groups, order and chance: held against plain Python over what is in memory."""

from __future__ import annotations

import datetime
import os
import random
import re
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sortmill as sm

Record = dict[str, Any]
MEMORY = "128 MiB"


def clicks(path: Path, draw: random.Random, count: int) -> list[tuple[str, int, str]]:
    made = [(f"user {draw.randrange(1 << draw.randrange(9))}", draw.randrange(-9000, 9000), f"/{draw.randrange(99)}") for _ in range(count)]
    path.write_text("".join(f"{user}\t{time}\t{page}\n" for user, time, page in made))
    return made


def table(job: sm.Pipeline, path: Path) -> sm.Table:
    return job.read_text(path).flat_map(sm.fields("line", "\t", {"user": str, "time": int, "page": str}))


@pytest.mark.parametrize("processes", [0, 2])
def test_a_function_of_groups_in_order(tmp_path: Path, draw: random.Random, processes: int) -> None:
    model = clicks(tmp_path / "in", draw, 20_000)

    def first_and_steps(user: str, records: Iterator[Record]) -> Iterator[Record]:
        first = next(records)
        yield {"user": user, "time": first["time"], "step": -1}
        before = first["time"]
        for record in records:
            assert record["user"] == user
            yield {"user": user, "time": record["time"], "step": before - record["time"]}
            before = record["time"]

    job = sm.Pipeline()
    groups = table(job, tmp_path / "in").group_by("user")
    steps = groups.apply(first_and_steps, sort="time", descending=True, columns={"user": str, "time": int, "step": int})
    steps.write_text(tmp_path / "out")
    report = job.run(memory=MEMORY, processes=processes)
    [did] = report.functions
    assert (did["verb"], did["name"], did["records_in"], did["records_out"]) == ("apply", "first_and_steps", 20_000, 20_000)
    by_user: dict[str, list[int]] = defaultdict(list)
    for user, time, _ in model:
        by_user[user].append(time)
    wanted = []
    for user, times in by_user.items():
        times.sort(reverse=True)
        wanted.append((user, times[0], -1))
        wanted += [(user, time, before - time) for before, time in zip(times, times[1:])]
    found = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    # Each group in one piece, in its order.
    order = list(dict.fromkeys(user for user, _, _ in found))
    assert len(order) == len(by_user)
    wanted.sort(key=lambda one: order.index(one[0]))
    assert [(user, int(time), int(step)) for user, time, step in found] == wanted


def test_functions_need_not_ask_for_all(tmp_path: Path, draw: random.Random) -> None:
    """Some ask for no record, some for a few, some answer nothing; keys of two columns are tuples, and one column needs no names."""
    model = clicks(tmp_path / "in", draw, 8000)
    kept: list[Any] = []

    def some(key: tuple[str, str], records: Iterator[Record]) -> list[str] | None:
        assert isinstance(key, tuple)
        kept.append(records)
        match len(key[0] + key[1]) % 3:
            case 0:
                return None
            case 1:
                return [f"{key[0]} {key[1]}", str(next(records)["time"])]
            case _:
                return []

    job = sm.Pipeline()
    groups = table(job, tmp_path / "in").group_by("user", "page")
    groups.apply(some, sort="time", columns={"text": str}).write_text(tmp_path / "out")
    job.run(memory=MEMORY, processes=0)
    least: dict[tuple[str, str], int] = {}
    for user, time, page in model:
        least[user, page] = min(time, least.get((user, page), time))
    wanted = {f"{user} {page}": str(time) for (user, page), time in least.items() if len(user + page) % 3 == 1}
    lines = (tmp_path / "out").read_text().splitlines()
    assert dict(zip(lines[::2], lines[1::2])) == wanted and len(lines) == 2 * len(wanted)
    # What was kept of a group that has passed has no more records.
    assert [list(records) for records in kept[:50]] == [[]] * 50


@pytest.mark.parametrize("processes", [0, 1])
def test_one_group_larger_than_what_is_handed_over(tmp_path: Path, processes: int) -> None:
    """What is made and asked for goes over in pieces; far more comes out of one group than goes over at once."""
    (tmp_path / "in").write_text("".join(f"hot {number} {'x' * 90}\n" for number in range(20_000)))

    def echo(key: str, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            yield {"number": record["number"], "rest": record["rest"] * 2}

    job = sm.Pipeline()
    lines = job.read_text(tmp_path / "in").flat_map(sm.fields("line", " ", {"key": str, "number": int, "rest": str}))
    made = lines.group_by("key").apply(echo, sort="number", descending=True, columns={"number": int, "rest": str})
    made.write_text(tmp_path / "out")
    report = job.run(memory="96 MiB", processes=processes)
    assert report.records_out == 20_000
    found = (tmp_path / "out").read_text().splitlines()
    assert found == [f"{number}\t{'x' * 180}" for number in reversed(range(20_000))]


@pytest.mark.parametrize("processes", [0, 1])
def test_a_function_of_groups_that_fails(tmp_path: Path, processes: int) -> None:
    (tmp_path / "in").write_text("".join(f"{number % 7} {number}\n" for number in range(5000)))

    def run(function: Any) -> sm.Error:
        job = sm.Pipeline()
        lines = job.read_text(tmp_path / "in").flat_map(sm.fields("line", " ", {"key": int, "number": int}))
        lines.group_by("key").apply(function, columns={"n": int}).write_text(tmp_path / "out")
        with pytest.raises(sm.Error) as raised:
            job.run(memory=MEMORY, processes=processes)
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
        return raised.value

    def in_the_middle(key: int, records: Iterator[Record]) -> Iterator[int]:
        yield key
        for record in records:
            if record["number"] == 4321:
                raise ArithmeticError("not this one")

    for function, cause in [
        (in_the_middle, ArithmeticError),
        (lambda key, records: ["text"], TypeError),
        (lambda key, records: 5, TypeError),
        (lambda key: [], TypeError),
    ]:
        error = run(function)
        assert isinstance(error, sm.FunctionError)
        assert isinstance(error.__cause__, cause)
        # Which of them comes first is nobody's business.
        told = re.search("in the group ([0-6])$", str(error).splitlines()[0])
        assert told is not None and (function is not in_the_middle or int(told[1]) == 4321 % 7)

    def adds(one: Record, other: Record) -> Record:
        return {**one, "number": one["number"] + 1 // (other["number"] - 4321)}

    job = sm.Pipeline()
    lines = job.read_text(tmp_path / "in").flat_map(sm.fields("line", " ", {"key": int, "number": int}))
    lines.with_columns(name=sm.col("key") * 10).group_by("key", "name").reduce(adds).write_text(tmp_path / "out")
    with pytest.raises(sm.FunctionError, match=r"zero, in the group \(2, 20\)"):
        job.run(memory=MEMORY, processes=processes)
    (tmp_path / "in").write_bytes(b"1 2\n\xff 3\n")
    job = sm.Pipeline()
    lines = job.read_text(tmp_path / "in").flat_map(sm.fields("line", " ", {"key": str, "number": int}))
    lines.group_by("number").apply(lambda key, records: [len(list(records))], columns={"n": int}).write_text(tmp_path / "out")
    with pytest.raises(sm.InputError, match="key is not UTF-8"):
        job.run(memory=MEMORY, processes=processes)


def test_ctrl_c_ends_a_function_of_groups(tmp_path: Path) -> None:
    """In the midst of records that were handed over: the next one that it asks for is an exception."""
    (tmp_path / "in").write_text("".join(f"{number}\n" for number in range(5000)))
    asked = 0

    def interrupted(key: int, records: Iterator[Record]) -> Iterator[int]:
        nonlocal asked
        for _ in records:
            if asked == 0:
                os.kill(os.getpid(), signal.SIGINT)
            asked += 1
            # The signal is seen by the main thread, 20 times a second.
            time.sleep(0.01)
            yield key

    job = sm.Pipeline()
    table = job.read_text(tmp_path / "in").flat_map(sm.fields("line", " ", {"n": int})).map(lambda one: {"k": 1}, columns={"k": int})
    table.group_by("k").apply(interrupted, columns={"k": int}).write_text(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        job.run(memory=MEMORY, processes=0)
    assert 0 < asked < 5000
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("columns", [("b",), ("n", "a"), ("f",), ("a", "b", "n", "f"), (["s"], "b")])
def test_the_first_of_those_that_are_equal_in_some_columns(tmp_path: Path, draw: random.Random, columns: Any) -> None:
    types: dict[str, sm.ColumnType] = {"n": int, "a": str | None, "b": int | None, "f": float | None, "s": str}
    rows = [
        {
            "n": draw.randrange(30), "a": draw.choice([None, "", "x", "y"]), "b": draw.choice([None, *range(50)]),
            "f": draw.choice([None, 0.0, -0.5, 1e300]), "s": f"{draw.randrange(100)}" * draw.randrange(1, 200),
        }
        for _ in range(5000)
    ]
    names = [name for part in columns for name in ([part] if isinstance(part, str) else part)]
    wanted: dict[Any, Record] = {}
    for row in rows:
        wanted.setdefault(tuple(row[name] for name in names), row)
    given = sm.Pipeline().from_iter(rows, types)
    kept = given.distinct(*columns)
    assert list(kept.columns.items()) == list(given.columns.items())
    for threads in (1, 2):
        found = kept.collect(memory="64 MiB", threads=threads)
        assert len(found) == len(wanted)
        assert all(wanted[tuple(row[name] for name in names)] == row for row in found)
    in_order = given.distinct(*columns, order="sorted").collect(memory=MEMORY)
    least = {"n": 0, "a": "", "b": 0, "f": 0.0, "s": ""}
    keys = [tuple((row[name] is None, least[name] if row[name] is None else row[name]) for name in names) for row in in_order]
    assert keys == sorted(keys) and len(in_order) == len(wanted)
    # As other libraries have it, of a sort as well: the first of that.
    frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in types})
    assert len(frame.drop_duplicates(names)) == len(wanted)
    best: dict[Any, Record] = {}
    for row in sorted(rows, key=lambda row: -row["n"]):
        best.setdefault(tuple(row[name] for name in names), row)
    found = given.sort("n", descending=True).distinct(*columns).collect(memory=MEMORY)
    assert len(found) == len(best) and all(best[tuple(row[name] for name in names)] == row for row in found)


def test_distinct_asks_for_columns(tmp_path: Path) -> None:
    given = sm.Pipeline().from_iter([(0.0, 1), (-0.0, 2)], {"f": float, "n": int})
    assert repr(given.distinct("f").collect(memory=MEMORY)) == "[{'f': 0.0, 'n': 1}]"
    with pytest.raises(sm.UsageError, match="there is no column user, only f, n"):
        given.distinct("user")
    with pytest.raises(sm.UsageError, match="distinct takes names of columns, not 3"):
        given.distinct(3)  # type: ignore[arg-type]
    with pytest.raises(sm.UsageError, match="no column is named"):
        given.distinct([])


def test_distinct_counts_and_sessions(tmp_path: Path, draw: random.Random) -> None:
    model = clicks(tmp_path / "in", draw, 10_000)
    job = sm.Pipeline()
    groups = table(job, tmp_path / "in").group_by("user")
    counted = groups.agg(pages=sm.count_distinct("page"), times=sm.approx_count_distinct("time"), n=sm.count())
    counted.sort("user").write_text(tmp_path / "out")
    job.run(memory=MEMORY)
    by_user: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for user, time, page in model:
        by_user[user].append((time, page))
    found = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    assert [user for user, *_ in found] == sorted(by_user)
    for user, pages, about, n in found:
        group = by_user[user]
        assert (int(pages), int(n)) == (len({page for _, page in group}), len(group))
        times = len({time for time, _ in group})
        # Six standard errors, and of few values two that share a register.
        assert abs(int(about) - times) <= 0.1 * times + 2.5

    at_all = [time for _, time, _ in model]
    of = {"n": sm.count(), "mean": sm.mean("time"), "pages": sm.count_distinct("page"), "least": sm.quantile("time", 0)}
    all_of = table(sm.Pipeline(), tmp_path / "in").agg(**of)
    assert all_of.columns == {"n": "u64", "mean": "f64", "pages": "u64", "least": "f64"}
    wanted = {"n": 10_000, "mean": sum(at_all) / 10_000, "pages": len({page for _, _, page in model}), "least": min(at_all)}
    assert all_of.collect(memory=MEMORY) == [wanted]

    job = sm.Pipeline()
    numbered = table(job, tmp_path / "in").group_by("user").sessions("time", 100)
    numbered.group_by("user", "session").agg(n=sm.count(), begins=sm.min("time")).sort(["user", "begins"]).write_text(tmp_path / "out")
    job.run(memory=MEMORY)
    sizes: list[int] = []
    begins = []
    for user, group in sorted(by_user.items()):
        session, before = -1, None
        for time, _ in sorted(group):
            if before is None or time - before > 100:
                session += 1
                begins.append((user, session, time))
                sizes.append(0)
            sizes[-1] += 1
            before = time
    found = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    assert found == [[user, str(session), str(n), str(time)] for (user, session, time), n in zip(begins, sizes)]


def test_functions_of_sessions(tmp_path: Path, draw: random.Random) -> None:
    """They are called where sessions are numbered, for each session once, with its clicks in the order of time."""
    model = clicks(tmp_path / "in", draw, 10_000)

    def path(key: tuple[str, int], records: Iterator[Record]) -> list[Record]:
        return [{"user": key[0], "session": key[1], "path": " ".join(record["page"] for record in records)}]

    numbered = table(sm.Pipeline(), tmp_path / "in").group_by("user").sessions("time", 100)
    columns = {"user": str, "session": int, "path": str}
    paths = numbered.group_by("user", "session").apply(path, sort="time", columns=columns)
    found = {(one["user"], one["session"]): one["path"] for one in paths.collect(memory=MEMORY)}
    assert paths.report is not None and len(paths.report.phases) == 1
    wanted: dict[tuple[str, int], list[str]] = defaultdict(list)
    last: dict[str, tuple[int, int]] = {}
    for user, time, page in sorted(model, key=lambda click: click[:2]):
        before, session = last.get(user, (time, 0))
        last[user] = (time, session + (time - before > 100))
        wanted[user, last[user][1]].append(page)
    assert found == {key: " ".join(pages) for key, pages in wanted.items()}


def test_shuffle_and_sample(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(5000)]
    (tmp_path / "in").write_text("\n".join(lines))

    def made(build: Any, threads: int = 2) -> list[str]:
        job = sm.Pipeline()
        build(job.read_text(tmp_path / "in")).write_text(tmp_path / "out")
        job.run(memory=MEMORY, threads=threads)
        return (tmp_path / "out").read_text().splitlines()

    orders = [made(lambda lines: lines.shuffle(seed=seed, epoch=epoch)) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == sorted(lines) for order in orders)
    assert len({tuple(order) for order in [lines, *orders]}) == 5
    assert made(lambda lines: lines.shuffle(seed=1, epoch=1), threads=1) == orders[3]
    sample = made(lambda lines: lines.sample(0.1, seed=3))
    assert set(sample) < set(lines) and 300 < len(sample) < 700
    assert sample == sorted(sample, key=lines.index)
    assert made(lambda lines: lines.sample(0.1, seed=3), threads=1) == sample != made(lambda lines: lines.sample(0.1, seed=4))
    with pytest.raises(sm.UsageError, match="from 0 to 1"):
        made(lambda lines: lines.sample(2))
    # Behind what brings records together they have no place; what the hint says draws there.
    groups = sm.Pipeline().read_text(tmp_path / "in").group_by("line").agg(n=sm.count())
    for fraction, seed in [(0.1, 0), (0.25, 9), (0, 0), (1, 0)]:
        with pytest.raises(sm.UsageError, match="in front of the verbs that bring records together") as refused:
            groups.sample(fraction, seed=seed)
        assert refused.value.hint is not None
        call = re.search(r"filter\(.*\)(?=, in Rust)", refused.value.hint)
        assert call is not None
        kept = [one["line"] for one in eval(f"groups.{call[0]}", {"groups": groups, "sm": sm}).collect(memory=MEMORY)]
        # Five standard deviations.
        assert abs(len(kept) - 5000 * fraction) <= 5 * (5000 * fraction * (1 - fraction)) ** 0.5
        assert len(set(kept)) == len(kept) and set(kept) <= set(lines)


def test_patterns_and_formulas(tmp_path: Path) -> None:
    log = [f"2026-01-{1 + n % 28:02} 10:00:{n % 60:02} [{['info', 'warn'][n % 2]}] user=u{n} took={n * 0.5}" for n in range(500)]
    (tmp_path / "in").write_text("\n".join([*log, "something else"]))
    job = sm.Pipeline()
    pattern = r"^(\S+ \S+) \[(\w+)\] user=(\w+) took=(\S+)$"
    table = job.read_text(tmp_path / "in").filter(sm.matches("line", "WARN|(?i:warn)"))
    table = table.flat_map(sm.extract("line", pattern, {"time": str, "level": str, "user": str, "took": str}))
    table = table.filter(sm.matches("user", "9$", invert=True))
    table = table.with_columns(time=sm.timestamp("time"), took=sm.parse("took", float), h=sm.hash("user", seed=1))
    assert table.columns == {"time": "timestamp", "level": "string", "user": "string", "took": "f64", "h": "u64"}
    table.sort("took").select("time", "user", "took", "h").write_text(tmp_path / "out")
    job.run(memory=MEMORY)
    wanted = []
    for line in log:
        found = re.match(pattern, line)
        assert found is not None
        time, level, user, took = found.groups()
        if level == "warn" and not user.endswith("9"):
            wanted.append((float(took), datetime.datetime.fromisoformat(time).isoformat() + "Z", user))
    lines = [line.split("\t") for line in (tmp_path / "out").read_text().splitlines()]
    assert [(float(took), time, user) for time, user, took, _ in lines] == sorted(wanted)
    assert len({h for *_, h in lines}) == len(lines)
    with pytest.raises(sm.UsageError, match="unclosed"):
        table.filter(sm.matches("user", "("))
    with pytest.raises(sm.UsageError, match="1 parts in parentheses and 2 columns"):
        table.flat_map(sm.extract("user", "(a)", {"a": str, "b": str}))
