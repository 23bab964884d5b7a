"""What people bring along from pandas, Polars, numpy and notebooks: it works, or it says what does."""

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
