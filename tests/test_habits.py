"""What people bring along from pandas, Polars, numpy and notebooks: it works, or it says what does."""

import bz2
import functools
import io
import operator
import os
import random
import signal
import time
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm

CSV = "user,n,at\nann,3,2026-11-23\nbob,,2026-11-24\nann,10,2026-11-24\n"


@pytest.fixture
def table(tmp_path: Path) -> sm.Table:
    (tmp_path / "in.csv").write_text(CSV)
    return sm.Pipeline().read_csv(tmp_path / "in.csv", {"user": str, "n": str, "at": str})


def test_functions_are_expressions(table: sm.Table, tmp_path: Path) -> None:
    hashed = {record["h"]: record["user"] for record in table.with_columns(h=sm.hash("user", seed=7)).collect()}
    made = table.with_columns(
        part=sm.hash("user", seed=7) % 4,
        more=sm.parse("n", int | None) + 1,
        day=sm.micros(sm.timestamp("at")) // 86_400_000_000,
        same=sm.hash("user") == sm.hash(sm.col("user")),
        is_big=sm.matches("n", "^[0-9]{2,}$") & (sm.col("user") == "ann"),
    ).select("user", "part", "more", "day", "same", "is_big")
    parts = {user: number % 4 for number, user in hashed.items()}
    assert made.collect() == [
        {"user": "ann", "part": parts["ann"], "more": 4, "day": 20780, "same": True, "is_big": False},
        {"user": "bob", "part": parts["bob"], "more": None, "day": 20781, "same": True, "is_big": False},
        {"user": "ann", "part": parts["ann"], "more": 11, "day": 20781, "same": True, "is_big": True},
    ]
    assert [record["n"] for record in table.filter(sm.parse("n", int | None) > 3).collect()] == ["10"]
    assert [record["user"] for record in table.filter(~sm.matches("user", "^a")).collect()] == ["bob"]
    assert [record["user"] for record in table.filter(sm.matches("user", "^a", invert=True)).collect()] == ["bob"]
    # A partition function of one's own, in one expression.
    keyed = table.with_columns(p=sm.hash("user") % 3)
    keyed.write_csv(tmp_path / "parts", files=3, partition="p", header=False)
    keyed._pipeline.run()
    lines = [set(line.split(",")[0] for line in path.read_text().splitlines()) for path in sorted((tmp_path / "parts").glob("*.csv"))]
    assert len(lines) == 3 and sorted(user for users in lines for user in users) == ["ann", "bob"]
    with pytest.raises(sm.UsageError, match="what parse takes is of type u64, and no text"):
        table.with_columns(x=sm.parse(sm.hash("user"), int))
    with pytest.raises(sm.InputError, match="is no value of type i64"):
        table.with_columns(x=sm.parse("user", int) + 1).collect()


def test_numbers_of_numpy(table: sm.Table) -> None:
    np = pytest.importorskip("numpy")
    numbers = table.with_columns(n=sm.parse("n", int | None))
    assert len(numbers.filter(sm.col("n") > np.int64(3)).collect()) == 1
    assert len(numbers.filter(sm.col("n") > np.float32(2.5)).collect()) == 2


def test_batches_may_be_changed_in_place(table: sm.Table) -> None:
    pytest.importorskip("numpy")
    numbers = table.with_columns(n=sm.parse("n", int | None).fill_null(0)).select("n")

    def double(batch: dict[str, Any]) -> dict[str, Any]:
        batch["n"] *= 2
        return batch

    assert [record["n"] for record in numbers.map_batches(double, batch_format="numpy").collect(processes=0)] == [6, 0, 20]

    def halved(batch: dict[str, Any]) -> dict[str, Any]:
        return {"x": batch["n"]}

    # Whole numbers are floats where a column asks for these, as of functions of records.
    made = numbers.map_batches(halved, {"x": float}, batch_format="numpy").collect(processes=0)
    assert [(record["x"], type(record["x"])) for record in made] == [(3.0, float), (0.0, float), (10.0, float)]


def test_a_cell_that_runs_again(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    job = sm.Pipeline()
    table = job.read_csv(tmp_path / "in.csv", {"user": str})
    for count in (1, 2):
        table.group_by("user", order="sorted").agg(n=sm.count()).observe(groups=sm.count()).write_csv(tmp_path / "out.csv")
        report = job.run()
        assert (tmp_path / "out.csv").read_text() == "user,n\nann,2\nbob,1\n"
        assert report.observed == {"groups": 2}, count
    table.write_text(tmp_path / "other")
    with pytest.raises(sm.UsageError, match="two outputs have the name"):
        table.write_text(tmp_path / "other")


def test_a_cell_that_is_mended(tmp_path: Path) -> None:
    """What had failed was made again first by every run, and could not be said anew."""
    (tmp_path / "in.csv").write_text(CSV)
    job = sm.Pipeline()
    table = job.read_csv(tmp_path / "in.csv", {"user": str})
    table.map(lambda record: 1 / 0, {"n": int}).write_csv(tmp_path / "out.csv")
    with pytest.raises(sm.FunctionError):
        job.run(processes=0)
    table.map(lambda record: {"n": len(record["user"])}, {"n": int}).write_csv(tmp_path / "out.csv")
    job.run(processes=0)
    assert (tmp_path / "out.csv").read_text() == "n\n3\n3\n3\n"


def test_a_cell_behind_one_that_failed(tmp_path: Path) -> None:
    """What had failed was tried first by every run behind it, so that nothing else was made any more."""
    (tmp_path / "in.csv").write_text(CSV)
    job = sm.Pipeline()
    table = job.read_csv(tmp_path / "in.csv", {"user": str})
    bad = table.map(lambda record: 1 / 0, {"n": int})
    table.write_csv(tmp_path / "first.csv")
    bad.observe(n=sm.count()).write_csv(tmp_path / "a.csv")
    table.write_csv(tmp_path / "behind.csv")
    # Nothing new is asked for: it is tried again.
    for _ in range(2):
        with pytest.raises(sm.FunctionError):
            job.run(processes=0)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["first.csv", "in.csv"]
        job.explain(processes=0)
    made = (tmp_path / "first.csv").stat().st_mtime_ns
    table.observe(n=sm.count()).write_csv(tmp_path / "b.csv")
    with pytest.warns(UserWarning, match="a.csv could not be made and is not tried again"):
        report = job.run(processes=0)
    # What it was in front of had not been tried.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.csv", "behind.csv", "first.csv", "in.csv"]
    assert (tmp_path / "first.csv").stat().st_mtime_ns == made and report.observed == {"n": 3}
    # What cannot begin is no different; and a cell that runs again as a whole loses nothing.
    for _ in range(2):
        table.write_csv(tmp_path / "c.csv")
        table.write_csv(tmp_path / "b.csv", mode="error")
        with pytest.raises(sm.UsageError, match="has this name already"):
            job.run(processes=0)
    table.write_csv(tmp_path / "d.csv")
    with pytest.warns(UserWarning, match="b.csv could not be made"):
        job.run(processes=0)
    assert (tmp_path / "c.csv").exists() and (tmp_path / "d.csv").exists()


def test_a_cell_behind_one_that_was_ended(tmp_path: Path) -> None:
    """Who ends a run wants what it was about still."""
    (tmp_path / "in.csv").write_text(CSV)
    job = sm.Pipeline()
    table = job.read_csv(tmp_path / "in.csv", {"user": str})
    has_ended: list[bool] = []

    def ends(record: dict[str, Any]) -> dict[str, Any]:
        if not has_ended:
            has_ended.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                time.sleep(0.01)
        return record

    table.map(ends, {"user": str}).write_csv(tmp_path / "a.csv")
    with pytest.raises(KeyboardInterrupt):
        job.run(processes=0)
    table.write_csv(tmp_path / "b.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        job.run(processes=0)
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text() == "user\nann\nbob\nann\n"


def test_a_cell_behind_another(tmp_path: Path) -> None:
    """A run made all outputs of earlier ones again, which those that must be new refused, and none could read another."""
    (tmp_path / "in.csv").write_text(CSV)
    job = sm.Pipeline()
    job.read_csv(tmp_path / "in.csv", {"user": str}).write_csv(tmp_path / "a.csv", mode="error")
    job.run()
    made = (tmp_path / "a.csv").stat().st_mtime_ns
    job.read_csv(tmp_path / "a.csv").distinct().write_csv(tmp_path / "b.csv")
    assert "output 1 of 2" not in job.explain()
    job.run()
    assert (tmp_path / "a.csv").stat().st_mtime_ns == made
    assert sorted((tmp_path / "b.csv").read_text().split()) == ["ann", "bob", "user"]
    # Nothing is new: all of it.
    with pytest.raises(sm.UsageError, match="has this name already"):
        job.run()
    (tmp_path / "a.csv").unlink()
    with pytest.raises(sm.UsageError, match="is read for the outputs behind it"):
        job.run()


def test_a_write_can_be_run_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    report = sm.Pipeline().read_csv(tmp_path / "in.csv").sort("user").write_text(tmp_path / "out").run()
    assert report.records_out == 3 and (tmp_path / "out").read_text().startswith("ann\t3\t")


def test_an_end_of_ones_own(table: sm.Table) -> None:
    class Bar:
        end = 100

        def __call__(self, now: Any) -> None:
            assert now["phase"]

    assert len(table.collect(progress=Bar())) == 3


def test_open_files_are_no_paths(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    with (tmp_path / "in.csv").open() as file:
        for given in [file, io.StringIO(CSV), io.BytesIO()]:
            with pytest.raises(sm.UsageError, match="is an open file and no path"):
                sm.Pipeline().read_csv(given)  # type: ignore[arg-type]
    assert len(sm.Pipeline().read_csv(tmp_path.glob("*.csv")).collect()) == 3


def test_one_of_many_values(table: sm.Table) -> None:
    ids = ["bob", *map(str, range(20_000))]
    assert [record["user"] for record in table.filter(sm.col("user").is_in(ids)).collect()] == ["bob"]
    numbers = table.with_columns(n=sm.parse("n", int | None))
    assert [record["n"] for record in numbers.filter(sm.col("n").is_in({3, 4.0})).collect()] == [3]
    assert [record["n"] for record in numbers.filter(~sm.col("n").is_in([3])).collect()] == [10]
    at = table.with_columns(at=sm.timestamp("at"))
    day = datetime(2026, 11, 24, tzinfo=timezone.utc)
    assert len(at.filter(sm.col("at").is_in([day])).collect()) == 2
    for values, why in [("bob", "is_in takes a list"), (3, "is_in takes a list"), ([3], "3 is not of type string")]:
        with pytest.raises(sm.UsageError, match=why):
            table.filter(sm.col("user").is_in(values))  # type: ignore[arg-type]
    # One term more each time copied all of them, which in the end took more than the stack that there is.
    with pytest.raises(sm.UsageError, match="at most 500 others in each other.*is_in"):
        functools.reduce(operator.or_, [sm.col("user") == one for one in ids])


def test_what_says_what_to_do(table: sm.Table, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    typed = sm.Pipeline().read_csv(tmp_path / "in.csv", types={"n": int})
    with pytest.raises(sm.InputError, match=r"line 3: column n: (?s:.*)int \| None"):
        typed.collect()
    with pytest.raises(sm.FunctionError, match=r"int \| None"):
        table.map(lambda record: {"n": None}, {"n": int}).collect(processes=0)
    with pytest.raises(sm.UsageError, match="n is of type string, and no number(?s:.*)parse"):
        table.group_by("user").agg(s=sm.sum("n"))
    with pytest.raises(sm.FunctionError, match="made a tuple, and a record of several columns is a dictionary of a, n"):
        table.map(lambda record: ("x", 1), {"a": str, "n": int}).collect(processes=0)
    with pytest.raises(sm.UsageError, match="one of dict cannot be called"):
        table.map(dict, {"a": str})
    with pytest.raises(AttributeError, match="is_in"):
        sm.col("user").isin(["a"])  # type: ignore[attr-defined]
    (tmp_path / "in.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert sm.Pipeline().read_jsonl(tmp_path / "in.jsonl").collect() == [{"a": 1}]
    (tmp_path / "in.jsonl").write_bytes(b'{"a": 1}\n{"a": }\n')
    with pytest.raises(sm.InputError, match="line 2: expected value at byte 7"):
        sm.Pipeline().read_jsonl(tmp_path / "in.jsonl")


def test_columns_of_objects_in_large_blocks(tmp_path: Path, draw: random.Random) -> None:
    """Blocks of bzip2 that were longer than what was looked at were cut off within a line, or there was nothing of them."""
    lines = "".join(f'{{"a": "{draw.randbytes(60).hex()}"}}\n' for _ in range(20_000))
    (tmp_path / "in.bz2").write_bytes(bz2.compress(lines.encode()))
    table = sm.Pipeline().read_jsonl(tmp_path / "in.bz2")
    assert table.columns == {"a": "string?"}
    assert len(table.collect()) == 20_000
    (tmp_path / "twice").write_text('{"a": "x", "a": 1}\n')
    assert sm.Pipeline().read_jsonl(tmp_path / "twice", {"a": int}).collect() == [{"a": 1}]


def test_a_timeout_needs_a_process(table: sm.Table) -> None:
    slow = table.map(lambda record: record, {"user": str, "n": str, "at": str}, timeout=5)
    with pytest.raises(sm.UsageError, match="processes=0 has none"):
        slow.collect(processes=0)


def test_sort_by_several(table: sm.Table) -> None:
    assert [record["n"] for record in table.sort("user", "n").collect()] == ["10", "3", ""]
    assert table.sort("user", "n", descending=[True, False]).collect() == table.sort(["user", "n"], descending=[True, False]).collect()
    assert len(table.top(n=1, by="user").collect()) == 1 and len(table.head(n=2)) == 2


def test_what_others_call_it(table: sm.Table) -> None:
    assert repr(table) == "<a table still to be made, of user: string, n: string, at: string>"
    assert repr(table.group_by("user", "n")) == "<groups of records by user, n>"
    assert repr(sm.Pipeline()) == "<a pipeline of 0 outputs>"
    others: list[tuple[Any, str, str]] = [
        (table, "limit", "head"), (table, "rename", "with_columns"), (table, "join", "no joins yet"),
        (table, "to_pandas", "to_pandas"), (table.group_by("n"), "count", "agg"), (sm.Pipeline(), "read_parquet", "from_arrow"),
    ]
    for of, name, instead in others:
        assert not hasattr(of, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}': .*{instead}"):
            getattr(of, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        getattr(table, "nonsense")


def test_a_function_that_catches_what_its_records_raise(tmp_path: Path) -> None:
    """What it had caught was told as what ended the job, and its own exception was lost."""
    (tmp_path / "in").write_bytes(b"a\tb\na\tb\xff\nc\td\n")
    job = sm.Pipeline()
    table = job.read_text(tmp_path / "in").flat_map(sm.fields("line", "\t", {"k": str, "v": str}))

    def wrapped(key: str, records: Any) -> list[str]:
        try:
            return [record["v"] for record in records]
        except sm.InputError as error:
            raise LookupError(f"group {key}") from error

    with pytest.raises(sm.FunctionError) as caught:
        table.group_by("k").apply(wrapped, columns={"v": str}).collect(processes=0)
    assert isinstance(caught.value.__cause__, LookupError)
