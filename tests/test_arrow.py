"""Arrow streams into pipelines and out of them, held against the libraries that make and take them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sortmill as sm


def table_of(draw: random.Random, count: int) -> pa.Table:
    return pa.table(
        {
            "name": [f"näme {draw.randrange(300)}" for _ in range(count)],
            "raw": [draw.randbytes(draw.randrange(6)) for _ in range(count)],
            "whole": pa.array([draw.randrange(-(10**6), 10**6) for _ in range(count)], pa.int64()),
            "small": pa.array([draw.randrange(-100, 100) for _ in range(count)], pa.int8()),
            "big": pa.array([draw.randrange(2**64) for _ in range(count)], pa.uint64()),
            "real": [draw.uniform(-1, 1) for _ in range(count)],
            "is_so": [draw.random() < 0.5 for _ in range(count)],
        }
    )


def test_what_goes_in_comes_out(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 20_000)
    wanted = whole.set_column(3, "small", whole["small"].cast(pa.int64()))
    sources: list[Any] = [
        whole,
        whole.to_reader(max_chunksize=777),
        pl.from_arrow(whole),
        duckdb.sql("FROM whole"),
        whole.slice(0),
    ]
    for source in sources:
        job = sm.Pipeline()
        table = job.from_arrow(source)
        # Fields of Arrow may have nulls unless they say that they have none.
        kinds = ["string?", "binary?", "i64?", "i64?", "u64?", "f64?", "bool?"]
        assert table.columns == dict(zip(whole.column_names, kinds))
        result = table.collect_arrow(memory="128 MiB", temp=tmp_path)
        # Twice: each stream begins at the first record.
        for _ in range(2):
            assert pa.table(result).equals(wanted)
        assert result.report.records_in == result.report.records_out == len(whole)
    assert pl.DataFrame(result).equals(pl.DataFrame(pl.from_arrow(wanted)))
    relation = duckdb.sql("SELECT count(*), sum(whole) FROM result")
    assert relation is not None
    [sums] = relation.fetchall()
    assert sums == (len(whole), sum(whole["whole"].to_pylist()))
    assert list(tmp_path.iterdir()) == []


def test_sorted_and_grouped(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 20_000)
    job = sm.Pipeline()
    table = job.from_arrow(whole.slice(5000))
    grouped = table.group_by("name").agg(n=sm.count(), most=sm.max("big"), sum=sm.sum("whole")).sort("name")
    found = pa.table(grouped)
    rest = whole.slice(5000)  # DuckDB finds it by its name.
    wanted = duckdb.sql("SELECT name, count(*), max(big), sum(whole) FROM rest GROUP BY name ORDER BY name")
    assert wanted is not None
    assert [tuple(row.values()) for row in found.to_pylist()] == wanted.fetchall()
    assert found.column_names == ["name", "n", "most", "sum"]
    in_order = table.sort(["small", "real"], descending=[True, False]).select("small", "real")
    rows = pa.table(in_order).to_pylist()
    both = zip(rest["small"].to_pylist(), rest["real"].to_pylist())
    assert [(row["small"], row["real"]) for row in rows] == sorted(both, key=lambda row: (-row[0], row[1]))
    # The same input again, into a file this time, through a function.
    table.map_batches(lambda batch: batch.select(["small"]), {"small": int}).write_text(tmp_path / "out")
    job.run(memory="128 MiB", processes=1)
    assert (tmp_path / "out").read_text().split() == [str(small) for small in rest["small"].to_pylist()]


def test_long_and_no_records(tmp_path: Path) -> None:
    long = pa.table({"line": ["x" * 3_000_000, "", "y"]})
    result = sm.Pipeline().from_arrow(long).collect_arrow(memory="128 MiB")
    assert pa.table(result).equals(long)
    none = pa.table(sm.Pipeline().from_arrow(long.slice(3)).collect_arrow(memory="128 MiB"))
    assert none.num_rows == 0 and none.column_names == ["line"]


def test_a_stream_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(sm.UsageError, match="__arrow_c_stream__"):
        sm.Pipeline().from_arrow([1, 2])
    with pytest.raises(ValueError, match="column a is of type"):
        sm.Pipeline().from_arrow(pa.table({"a": [[1]]}))
    sure = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    nulls = pa.table({"a": [1, 2, None]}, schema=sure)
    with pytest.raises(sm.InputError, match="non-nullable but contains null"):
        sm.Pipeline().from_arrow(nulls).collect_arrow(memory="128 MiB", temp=tmp_path)

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1, 2]})
        raise RuntimeError("no more")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    job = sm.Pipeline()
    job.from_arrow(reader).sort("a").write_text(tmp_path / "out")
    with pytest.raises(sm.InputError, match="no more"):
        job.run(memory="128 MiB", temp=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_is_read_once(tmp_path: Path) -> None:
    whole = pa.table({"a": [2, 1, 3]})
    wanted = [{"a": 1}, {"a": 2}, {"a": 3}]
    again = sm.Pipeline().from_arrow(whole).sort("a")
    for _ in range(2):
        assert again.collect(memory="128 MiB", temp=tmp_path) == wanted
    once = sm.Pipeline().from_arrow(whole.to_reader()).sort("a")
    assert once.head(2, memory="128 MiB", temp=tmp_path) == wanted[:2]
    # Nothing instead of what is gone would be a wrong answer.
    with pytest.raises(sm.UsageError, match="can be read once"):
        once.collect(memory="128 MiB", temp=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_arrow_has_besides_is_taken_where_it_is_exact() -> None:
    """Dictionaries, decimals without a fraction, halves, nulls: held against Arrow's own casts."""
    words = ["red", None, "", "red", "blue", "grün"]
    pool = pa.array(["red", None, "", "blue", "grün"])
    columns = {
        "word": pa.array(words).dictionary_encode(),
        # A null may be a key's or a value's.
        "wide": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 3, 4, 2], pa.int8()), pool),
        "raw": pa.array([b"a", b"b", b"a", None, b"", b"a"]).dictionary_encode(),
        "whole": pa.array([7, None, -7, 7, 2**40, 0], pa.int64()).dictionary_encode(),
        "dec": pa.array([10**17, None, -1, 0, 2**63 - 1, -(2**63)], pa.decimal128(38, 0)),
        "half": pa.array([0.5, None, -2.0, 65504.0, 0.1, 1.0], pa.float32()).cast(pa.float16()),
        "none": pa.nulls(6),
        "day": pa.array([0, 1, None, 1, 0, 1], pa.date32()).dictionary_encode(),
        "no_values": pa.DictionaryArray.from_arrays(pa.array([None] * 6, pa.int32()), pa.array([], pa.string())),
    }
    given = pa.table(columns)
    casts = {
        "word": pa.string(), "wide": pa.string(), "raw": pa.binary(), "whole": pa.int64(), "dec": pa.int64(),
        "half": pa.float64(), "none": pa.string(), "day": pa.timestamp("us", "UTC"), "no_values": pa.string(),
    }
    floats = given["half"].cast(pa.float32()).cast(pa.float64())
    wanted = pa.table({name: floats if name == "half" else given[name].cast(kind) for name, kind in casts.items()})
    for some in [given, given.slice(1, 4), pa.Table.from_batches(given.to_batches(max_chunksize=2))]:
        found = pa.table(sm.Pipeline().from_arrow(some))
        assert found.schema.names == list(columns)
        if some.num_rows == 6:
            assert found.to_pylist() == wanted.to_pylist()
        else:
            assert found.to_pylist() == wanted.to_pylist()[1:5]
    assert sm.Pipeline().from_arrow(given).columns["none"] == "string?"
    large = pa.table({"n": pa.array([1, 2**64], pa.decimal128(38, 0))})
    with pytest.raises(sm.InputError, match="column n has 18446744073709551616, in row 1 of the batch, which is no i64"):
        sm.Pipeline().from_arrow(large).collect(memory="128 MiB")
    with pytest.raises(sm.UsageError, match="column n is of type Decimal128"):
        sm.Pipeline().from_arrow(pa.table({"n": pa.array([1], pa.decimal128(5, 2))}))


def test_frames_with_categories_and_sums_of_duckdb_are_taken() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["b", "a", None, "b"]), "n": [1, 2, 3, 4]})
    found = sm.Pipeline().from_arrow(frame).sort("n").collect(memory="128 MiB")
    assert [record["c"] for record in found] == ["b", "a", None, "b"]
    # A sum of whole numbers is a HUGEINT, which is a decimal in Arrow.
    sums: Any = duckdb.sql("SELECT c, sum(n) AS s FROM frame GROUP BY c")
    taken = sm.Pipeline().from_arrow(sums.to_arrow_table()).sort("s").collect(memory="128 MiB")
    assert taken == [{"c": "a", "s": 2}, {"c": None, "s": 3}, {"c": "b", "s": 5}]


def test_a_frame_is_taken_without_its_index() -> None:
    """A frame that was filtered has an index that is no range: it came as a column, and no two records were equal."""
    frame = pd.DataFrame({"n": [1, 2, 2, 3], "c": ["a", "b", "b", "c"]})
    table = sm.Pipeline().from_arrow(frame[frame.n > 1])
    assert list(table.columns) == ["n", "c"]
    named = sm.Pipeline().from_arrow(frame.set_index("c"))
    assert sorted(named.columns) == ["c", "n"]
    assert table.distinct().sort("n").collect(memory="128 MiB") == [{"n": 2, "c": "b"}, {"n": 3, "c": "c"}]


def test_two_columns_of_one_name_are_refused() -> None:
    """The second was left out without a word."""
    def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([batch["n"], batch["n"]], names=["n", "n"])

    table = sm.Pipeline().from_iter([1, 2], {"n": int}).map_batches(doubled, {"n": int})
    with pytest.raises(sm.FunctionError, match="two columns n"):
        table.collect(memory="128 MiB", processes=0)


@pytest.mark.parametrize("processes", [0, 2])
def test_functions_may_answer_dictionaries(processes: int) -> None:
    records = [{"c": "b"}, {"c": "a"}, {"c": None}, {"c": "b"}]
    table = sm.Pipeline().from_iter(records, {"c": str | None})

    def run(function: Any, batch_format: str) -> Any:
        kinds: dict[str, sm.ColumnType] = {"c": str | None}
        return table.map_batches(function, kinds, batch_format=batch_format).collect(memory="128 MiB", processes=processes)

    assert run(lambda batch: {"c": batch["c"].dictionary_encode()}, "pyarrow") == records
    assert run(lambda frame: frame.assign(c=frame["c"].astype("category")), "pandas") == records


def test_who_only_looks_at_the_schema(tmp_path: Path) -> None:
    """DuckDB asks for a stream three times for each query, and each time the pipeline ran."""
    runs = []

    class Numbers:
        def __iter__(self) -> Iterator[tuple[int]]:
            runs.append(1)
            return iter([(number,) for number in range(5)])

    made = sm.Pipeline().from_iter(Numbers(), {"a": int})
    wanted = [(number,) for number in range(5)]
    assert duckdb.execute("from made order by a").fetchall() == wanted and len(runs) == 1
    # Whoever reads has what is there now, and what was read does not stay.
    assert pa.table(made).num_rows == 5 and len(runs) == 2
    assert pl.DataFrame(made).shape == (5, 1) and len(runs) == 3
    stream = pa.RecordBatchReader.from_stream(made)
    assert stream.schema.names == ["a"] and len(runs) == 4
    assert stream.read_all().num_rows == 5 and pa.table(made).num_rows == 5 and len(runs) == 5
