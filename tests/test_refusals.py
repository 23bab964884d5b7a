"""What is asked wrongly is a `UsageError` that says what was wrong, whatever it was wrong in, and at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sortmill as sm


COLUMN: Any = sm.col("a")


def table() -> Any:
    """A table whose verbs take anything, as far as types go."""
    return sm.Pipeline().from_iter([{"a": 3, "b": "x"}, {"a": 1, "b": "y"}], {"a": int, "b": str})


def same(record: Any) -> Any:
    return record


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        ({"memory": -1}, "memory is a number of bytes, or words as '4 GiB', not -1"),
        ({"memory": 1e8}, "memory is a number of bytes, or words as '4 GiB', not 100000000.0"),
        ({"memory": "abc"}, "memory is a number of bytes, or words as '4 GiB', not 'abc'"),
        ({"memory": 2**70}, "memory is a number of bytes"),
        ({"memory": True}, "memory is a number of bytes"),
        ({"worker_memory": -5}, "worker_memory is a number of bytes"),
        ({"threads": -1}, "threads is -1, and 1 to"),
        ({"threads": 0}, "threads is 0, and 1 to"),
        ({"threads": 1.5}, "threads is a whole number, not 1.5"),
        ({"processes": -1}, "processes is -1, and 0 to"),
        ({"processes": "2"}, "processes is a whole number, not '2'"),
    ],
)
def test_what_a_job_may_use(asked: dict[str, Any], cause: str, tmp_path: Path) -> None:
    job = sm.Pipeline()
    job.from_iter([1], {"n": int}).write_text(tmp_path / "out")
    for run in [job.run, job.explain, table().collect, table().head]:
        with pytest.raises(sm.UsageError) as refused:
            run(**asked)
        assert cause in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("timeout", [-1, 0, -0.5, float("nan"), "3", True, []])
def test_timeouts(timeout: Any) -> None:
    # Those below 0 were a panic.
    made: dict[str, Any] = {"a": int, "b": str}
    asks: list[Callable[[], Any]] = [
        lambda: table().map(same, made, timeout=timeout),
        lambda: table().flat_map(same, made, timeout=timeout),
        lambda: table().filter(same, timeout=timeout),
        lambda: table().map_batches(same, timeout=timeout),
        lambda: table().map_command(["cat"], column="b", timeout=timeout),
        lambda: table().group_by("a").reduce(same, timeout=timeout),
        lambda: table().group_by("a").apply(same, columns=made, timeout=timeout),
    ]
    for ask in asks:
        with pytest.raises(sm.UsageError, match="timeout is a number of seconds, more than 0, not"):
            ask()


def test_a_timeout_may_be_long() -> None:
    for timeout in [1e300, float("inf"), 1e9, 3]:
        found = table().map(same, {"a": int, "b": str}, timeout=timeout).collect(memory="128 MiB", processes=1)
        assert [record["a"] for record in found] == [3, 1]


class Finishing:
    """A function of groups that would never be told that there are no more."""

    def __call__(self, key: Any, records: Any) -> Any:
        return []

    def finish(self) -> Any:
        return []


class Stream:
    """Nothing that has a stream."""


@pytest.mark.parametrize(
    ("ask", "cause"),
    [
        (lambda: table().write_csv("x", files=-1), "files is -1, and 1 to"),
        (lambda: table().write_csv("x", files=1.5), "files is a whole number"),
        (lambda: table().write_csv("x", delimiter=";;"), 'a delimiter is one byte, and ";;" is not'),
        (lambda: table().write_csv("x", delimiter=""), "a delimiter is one byte"),
        (lambda: table().write_csv("x", quote="é"), "a quote is one byte"),
        (lambda: table().write_csv("x", delimiter="\n"), "what ends lines can neither part values nor quote them"),
        (lambda: table().write_csv("x", delimiter="'", quote="'"), "one byte cannot both part values and quote them"),
        (lambda: table().write_csv("x", compression="zstd", level=-1), "level is -1"),
        (lambda: table().top(-1, by="a"), "top is -1"),
        (lambda: table().head(-1), "head is -1"),
        (lambda: table().head("5"), "head is a whole number"),
        (lambda: table().show(-1), "show is -1"),
        (lambda: table().iter_batches(0), "size is 0"),
        (lambda: table().sort("a", descending=1), "directions are True or False"),
        (lambda: table().agg(sm.count()), "what agg makes has names: agg(n=sm.count())"),
        (lambda: table().group_by("b").agg(sm.count()), "what agg makes has names"),
        (lambda: table().observe(sm.count()), "what observe makes has names"),
        (lambda: table().with_columns(sm.col("a") * 2), "what with_columns makes has names"),
        (lambda: list(table()), "by iter_batches() or collect()"),
        (lambda: table()["a"], "sm.col('a')"),
        (lambda: sm.Pipeline().read_text(3),  # type: ignore[arg-type]
         "a path is text or one of pathlib"),
        (lambda: sm.Pipeline().from_arrow(table()), "collect_arrow(memory=...)"),
        (lambda: table().filter(sm.hash(3) == 1),  # type: ignore[arg-type]
         "of a column's name or an expression, not of 3"),
        (lambda: table().shuffle(seed=-1), "seed is -1"),
        (lambda: table().shuffle(epoch=2**64), "epoch is 18446744073709551616"),
        (lambda: table().sample(0.5, seed=-1), "seed is -1"),
        (lambda: table().with_columns(h=sm.hash("b", seed=-1)), "seed is -1"),
        (lambda: table().map_batches(same, batch_size=0), "batch_size is 0"),
        (lambda: table().flat_map(sm.ngrams("b", -1)), "count is -1"),
        (lambda: table().group_by("a").sessions("a", -1), "gap is -1"),
        (lambda: table().group_by("b").agg(n="count"), "n='count' is no aggregate"),
        (lambda: table().observe(n=3), "n=3 is no aggregate"),
        (lambda: table().agg(n=3), "n=3 is no aggregate"),
        (lambda: table().agg(), "no aggregate is named"),
        (lambda: table().group_by("b").agg(n=sm.sum(COLUMN)), "n: an aggregate is of a column's name"),
        (lambda: table().with_columns(c=[1]), "[1] is neither an expression nor"),
        (lambda: table().filter(True), "filter takes a condition, as sm.col('n') > 3, or a function, not True"),
        (lambda: table().map("upper", {"b": str}), "map takes a function, not 'upper'"),
        (lambda: table().map_batches(None), "map_batches takes a function, not None"),
        (lambda: table().group_by("a").reduce(3), "reduce takes a function, not 3"),
        (lambda: table().group_by("a").reduce(same, associative="no"), "associative is True or False, not 'no'"),
        (lambda: table().map(same, {"a": int}, pure=1), "pure is True or False, not 1"),
        (lambda: table().group_by("a").apply(3, columns={"a": int}), "apply takes a function, not 3"),
        (lambda: table().group_by("a").apply(Finishing(), columns={"a": int}), "and apply takes a function"),
        (lambda: table().group_by("a").reduce(Finishing()), "and reduce takes a function"),
        (lambda: table().group_by("a").apply(Finishing, columns={"a": int}), "and apply takes a function"),
        (lambda: table().group_by("a").reduce(Finishing), "and reduce takes a function"),
        (lambda: table().group_by("a").apply(Stream, columns={"a": int}), "one of Stream cannot be called"),
        (lambda: table().map_command("cat"), "a list of words, the program and its arguments: ['cat']"),
        (lambda: table().map_command(["cat", 3]), "a list of words, and 3 is none"),
        (lambda: table().group_by(1), "group_by takes names of columns, not 1"),
        (lambda: table().select(sm.col("a")), "select takes names of columns"),
        (lambda: table().sort(3), "by takes names of columns, not 3"),
        (lambda: sm.Pipeline().read_text("x", skip_header=-1), "skip_header is -1"),
        (lambda: sm.Pipeline().read_fixed("x", -1), "record_bytes is -1"),
        (lambda: sm.Pipeline().read_fixed("x", 10, key=(-1, 3)), "the key's offset is -1"),
        (lambda: sm.Pipeline().read_csv("x", {"a": int}, delimiter="::"), "a delimiter is one byte"),
        (lambda: sm.Pipeline().from_arrow(Stream()), "Stream is no Arrow data"),
        (lambda: sm.Pipeline().from_arrow(pa.table({"a": [[1]]})), "column a is of type List"),
        (lambda: sm.sort("x"), "say where to"),
        (lambda: table().collect(processes=0, worker_memory="1 GiB"), "limits processes"),
        (lambda: sm.sort("x", "y", memory=-1), "memory is a number of bytes"),
    ],
)
def test_verbs(ask: Callable[[], Any], cause: str) -> None:
    with pytest.raises(sm.UsageError) as refused:
        ask()
    assert cause in str(refused.value)


def test_names_may_be_lists() -> None:
    found = table().group_by(["a", "b"]).agg(n=sm.count()).select(["b", "n"]).sort(["b"]).collect(memory="128 MiB")
    assert found == [{"b": "x", "n": 1}, {"b": "y", "n": 1}]
    assert table().select(["a"], "b").columns == {"a": "i64", "b": "string"}
    assert table().group_by("a", ["b"]).agg(n=sm.count()).columns == {"a": "i64", "b": "string", "n": "u64"}


def test_values_are_columns_too() -> None:
    made = table().with_columns(c=1, t="t", f=0.5, d=sm.col("a") + 1)
    assert made.head(1) == [{"a": 3, "b": "x", "c": 1, "t": "t", "f": 0.5, "d": 4}]


def test_counters_count_whole_numbers() -> None:
    def count(record: Any, by: Any) -> Any:
        sm.counter("c").add(by)
        return record

    with pytest.raises(sm.FunctionError, match="counter c counts whole numbers, not 1.5") as refused:
        table().map(lambda record: count(record, 1.5), {"a": int, "b": str}).collect(memory="128 MiB", processes=0)
    assert isinstance(refused.value.__cause__, sm.UsageError)
    report = table().map(lambda record: count(record, 2), {"a": int, "b": str}).collect_arrow(memory="128 MiB").report
    assert report.counters == {"c": 4}
    with pytest.raises(sm.UsageError, match=r"a counter has a name, and \('a', 1\) is none"):
        sm.counter(("a", 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("processes", [0, 1])
def test_large_counts_stay_at_the_largest(processes: int) -> None:
    """All counters of a batch were lost where one of them was too large."""

    def count(record: Any) -> Any:
        sm.counter("large").add(2**62)
        sm.counter("small").add(-(2**62))
        sm.counter("one").add()
        return record

    table = sm.Pipeline().from_iter(range(7), {"n": int}).map(count, {"n": int})
    report = table.collect_arrow(memory="128 MiB", processes=processes).report
    assert report.counters == {"large": 2**63 - 1, "small": -(2**63), "one": 7}


def test_sort_into_parts(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("b\na\nd\nc\n")
    report = sm.sort(tmp_path / "in", parts=tmp_path / "parts", part_count=2, memory="64 MiB")
    assert report.records_out == 4
    assert sorted(path.name for path in (tmp_path / "parts").iterdir() if path.name != "manifest.json") == ["part-00000", "part-00001"]
    with pytest.raises(sm.UsageError, match="parts"):
        sm.sort(tmp_path / "in", tmp_path / "out", parts=tmp_path / "more")


def test_what_needs_pyarrow_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function itself was blamed, as if it had raised a ModuleNotFoundError."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(sm.UsageError, match=r"functions of batches need pyarrow: pip install 'sortmill\[arrow\]'"):
        table().map_batches(same)
