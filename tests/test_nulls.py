"""Values that are missing, and quantiles, held against DuckDB, numpy and Arrow's own."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Optional

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sortmill as sm


def table_of(draw: random.Random, count: int) -> pa.Table:
    """Records of which a quarter of the values are missing."""

    def some(value: Any) -> Any:
        return value if draw.random() < 0.75 else None

    return pa.table(
        {
            "name": pa.array([some(draw.choice(["", "ä", "b c", "d"])) for _ in range(count)], pa.string()),
            "whole": pa.array([some(draw.randrange(-50, 50)) for _ in range(count)], pa.int64()),
            "real": pa.array([some(draw.uniform(-1, 1)) for _ in range(count)], pa.float64()),
            "raw": pa.array([some(draw.randbytes(draw.randrange(3))) for _ in range(count)], pa.binary()),
            "is_so": pa.array([some(draw.random() < 0.5) for _ in range(count)], pa.bool_()),
        }
    )


def asked(query: str, **tables: Any) -> list[tuple[Any, ...]]:
    """What DuckDB answers about tables."""
    with duckdb.connect() as base:
        for name, table in tables.items():
            base.register(name, table)
        return base.execute(query).fetchall()


def rows(records: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(record.values()) for record in records]


def near(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        for a, b in zip(one, other, strict=True):
            assert a == (pytest.approx(b, rel=1e-9, abs=1e-9) if isinstance(b, float) else b), (one, other)


def test_arrow_in_and_out(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 20_000)
    for source in [whole, pl.from_arrow(whole), duckdb.sql("FROM whole"), whole.slice(7, 9000)]:
        table = sm.Pipeline().from_arrow(source)
        assert table.columns == dict(
            zip(whole.column_names, ["string?", "i64?", "f64?", "binary?", "bool?"], strict=True)
        )
        found = pa.table(table.collect_arrow(memory="128 MiB", temp=tmp_path))
        assert found.equals(whole.slice(7, 9000) if found.num_rows == 9000 else whole)
    # A column of nothing but nulls has no type of its own.
    job = sm.Pipeline()
    nothing = job.from_arrow(whole).map_batches(lambda batch: {"a": pa.nulls(len(batch))}, {"a": "u64?"})
    assert pa.table(nothing.collect_arrow(memory="128 MiB", processes=0))["a"].null_count == 20_000


def test_groups_as_sql_has_them(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 20_000)
    table = sm.Pipeline().from_arrow(whole)
    found = table.group_by("name", "is_so").agg(
        n=sm.count(), there=sm.count("whole"), total=sm.sum("whole"), real=sm.sum("real"), least=sm.min("raw"),
        most=sm.max("real"), mean=sm.mean("whole"), different=sm.count_distinct("whole"),
    )
    assert found.columns["there"] == "u64" and found.columns["total"] == "i64?" and found.columns["mean"] == "f64?"
    found = found.sort(["name", "is_so"], nulls_last=True)
    wanted = asked(
        """SELECT name, is_so, count(*), count(whole), sum(whole), sum(real), min(raw), max(real), avg(whole),
        count(DISTINCT whole) FROM t GROUP BY ALL ORDER BY name NULLS LAST, is_so NULLS LAST""",
        t=whole,
    )
    near(rows(found.collect(memory="128 MiB", temp=tmp_path)), wanted)
    distinct = table.select("name", "whole").distinct().collect(memory="128 MiB", temp=tmp_path)
    assert len(distinct) == asked("SELECT count(*) FROM (SELECT DISTINCT name, whole FROM t)", t=whole)[0][0]
    # Of nothing there is nothing but counts.
    job = sm.Pipeline()
    nothing = job.from_iter([None, None], {"a": int | None}).with_columns(b=sm.hash("a")).group_by("b")
    assert nothing.agg(n=sm.count(), a=sm.count("a"), s=sm.sum("a"), m=sm.median("a")).collect(memory="128 MiB") == [
        {"b": None, "n": 2, "a": 0, "s": None, "m": None}
    ]


def test_quantiles(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 10_000)
    fractions = [0.0, 0.1, 0.5, 0.99, 1.0]
    groups = sm.Pipeline().from_arrow(whole).group_by("name")
    found = groups.agg(
        p0=sm.quantile("real", 0.0), p10=sm.quantile("real", 0.1), p50=sm.median("real"), p99=sm.quantile("real", 0.99),
        p100=sm.quantile("real", 1.0), different=sm.count_distinct("real"),
    )
    result = rows(found.sort("name", nulls_last=True).collect(memory="128 MiB", temp=tmp_path))
    words = ", ".join(f"quantile_cont(real, {fraction})" for fraction in fractions)
    query = f"SELECT name, {words}, count(DISTINCT real) FROM t GROUP BY name ORDER BY name NULLS LAST"
    near(result, asked(query, t=whole))
    [(none, *values)] = [one for one in result if one[0] is None]
    of_none = whole.filter(pc.is_null(whole["name"]))["real"].drop_null().to_numpy()
    assert none is None and values[:5] == pytest.approx(list(np.quantile(of_none, fractions)), rel=1e-12)
    about = groups.agg(p10=sm.approx_quantile("real", 0.1), p99=sm.approx_quantile("real", 0.99)).sort("name", nulls_last=True)
    for one, other in zip(about.collect(memory="128 MiB", temp=tmp_path), result):
        # Of both signs, each of some 12 octaves.
        assert [one["p10"], one["p99"]] == pytest.approx([other[2], other[4]], rel=0.02)
    with pytest.raises(sm.UsageError, match="no number"):
        groups.agg(a=sm.median("name"))


def test_sort_and_top(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 3000)
    numbered = whole.append_column("number", pa.array(range(len(whole))))
    table = sm.Pipeline().from_arrow(numbered)
    directions = [False, True]
    for descending in directions:
        for nulls_last in directions:
            in_order = table.sort(["whole", "name"], descending=[descending, False], nulls_last=[nulls_last, not nulls_last])
            words = [["ASC", "DESC"][descending], ["FIRST", "LAST"][nulls_last], ["LAST", "FIRST"][nulls_last]]
            query = "SELECT number FROM t ORDER BY whole {} NULLS {}, name NULLS {}, number".format(*words)
            found = [record["number"] for record in in_order.select("number").collect(memory="128 MiB", temp=tmp_path)]
            assert found == [number for (number,) in asked(query, t=numbered)]
    first = table.sort("whole").select("whole").head(1, memory="128 MiB", temp=tmp_path)
    assert first == [{"whole": None}]
    best = table.top(5, by="real").select("real").collect(memory="128 MiB", temp=tmp_path)
    assert rows(best) == asked("SELECT real FROM t ORDER BY real DESC NULLS LAST LIMIT 5", t=whole)
    with pytest.raises(sm.UsageError, match="1 columns and 2 places"):
        table.sort("whole", nulls_last=[True, False])


def test_csv_and_json(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('id,name,price,paid\n1,,,\n2,NA,NA,true\n3,"NA",2.5,\n4,"", ,false\n')
    types: dict[str, Any] = {"id": int, "name": str | None, "price": Optional[float], "paid": "bool?"}
    plain = sm.Pipeline().read_csv(path, types={**types, "price": str})
    assert [record["name"] for record in plain.collect(memory="128 MiB")] == ["", "NA", "NA", ""]
    table = sm.Pipeline().read_csv(path, types=types, nulls=["NA", ""])
    assert table.columns == {"id": "i64", "name": "string?", "price": "f64?", "paid": "bool?"}
    wanted: list[dict[str, Any]] = [
        {"id": 1, "name": None, "price": None, "paid": None},
        {"id": 2, "name": None, "price": None, "paid": True},
        {"id": 3, "name": "NA", "price": 2.5, "paid": None},
        {"id": 4, "name": "", "price": None, "paid": False},
    ]
    assert table.head(4) == table.collect(memory="128 MiB") == wanted
    strict = sm.Pipeline().read_csv(path, types={"price": float})
    with pytest.raises(sm.InputError, match='line 2: column price: "" is no value of type f64'):
        strict.collect(memory="128 MiB", threads=1)
    with pytest.raises(sm.UsageError, match=r"(?s)no column may lack values.*types=\{'km': int \| None\}"):
        sm.Pipeline().read_csv(path, nulls="NA")

    # What is written is read as it was, by this and by DuckDB.
    table.write_csv(tmp_path / "out.csv")
    table.write_jsonl(tmp_path / "out.jsonl")
    table.write_text(tmp_path / "out.txt")
    table._pipeline.run(memory="128 MiB")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines == ["id,name,price,paid", "1,,,", "2,,,true", "3,NA,2.5,", '4,"",,false']
    assert sm.Pipeline().read_csv(tmp_path / "out.csv", types=types, nulls="").collect(memory="128 MiB") == wanted
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == wanted
    again = sm.Pipeline().read_jsonl(tmp_path / "out.jsonl", types)
    assert again.collect(memory="128 MiB") == wanted
    assert (tmp_path / "out.txt").read_text() == "1\t\t\t\n2\t\t\ttrue\n3\tNA\t2.5\t\n4\t\t\tfalse\n"
    read = f"SELECT * FROM read_csv('{tmp_path}/out.csv', allow_quoted_nulls=false)"
    assert asked(read) == rows(wanted)

    # Computed of text: of none there is none.
    texts: dict[str, Any] = {"price": str | None, "id": str}
    table = sm.Pipeline().read_csv(path, texts, nulls="NA").with_columns(
        price=sm.parse("price", float), number=sm.parse("id", int | None), hash=sm.hash("price")
    )
    assert table.columns == {"price": "f64?", "id": "string", "number": "i64?", "hash": "u64?"}
    found = table.collect(memory="128 MiB")
    assert [record["price"] for record in found] == [None, None, 2.5, None]
    assert [record["hash"] is None for record in found] == [False, True, False, False]
    assert [record["number"] for record in found] == [1, 2, 3, 4]


@pytest.mark.parametrize("processes", [0, 2])
def test_functions(tmp_path: Path, draw: random.Random, processes: int) -> None:
    whole = table_of(draw, 5000)
    records = whole.to_pylist()

    def run(table: sm.Table) -> list[dict[str, Any]]:
        return table.collect(memory="256 MiB", temp=tmp_path, processes=processes)

    table = sm.Pipeline().from_iter(records, {"name": str | None, "whole": int | None, "real": "f64?", "raw": "binary?", "is_so": bool | None})
    assert run(table.map(lambda record: record, columns=dict(table.columns))) == records
    assert run(table.filter(lambda record: record["whole"] is None)) == [one for one in records if one["whole"] is None]
    lists = table.select("whole").flat_map(lambda record: [record["whole"], None], columns={"n": int | None})
    assert run(lists) == [{"n": n} for one in records for n in (one["whole"], None)]

    # Arrow has nulls of its own, numpy masked arrays, pandas types that have such values.
    kinds: dict[str, Any] = {"name": str | None, "whole": int | None, "is_so": bool | None}
    some = table.select("name", "whole", "is_so")
    wanted = [{name: one[name] for name in kinds} for one in records]
    doubled = [{**one, "whole": None if one["whole"] is None else 2 * one["whole"]} for one in wanted]

    def double(batch: Any) -> Any:
        return batch.set_column(1, "whole", pc.multiply(batch["whole"], 2))

    assert run(some.map_batches(double, kinds)) == doubled
    for batch_format in ["numpy", "pandas"]:

        def same(batch: Any) -> Any:
            batch["whole"] = batch["whole"] * 2
            return batch

        assert run(some.map_batches(same, kinds, batch_format=batch_format)) == doubled

    with pytest.raises(sm.FunctionError, match="null, in row"):
        run(some.map_batches(lambda batch: batch, {**kinds, "whole": int}))
    with pytest.raises(sm.FunctionError):
        run(some.map(lambda record: record, columns={**kinds, "whole": int}))

    def count(key: Any, given: Any) -> Any:
        wholes = [record["whole"] for record in given]
        yield {"name": key, "least": wholes[0], "n": len(wholes)}

    made: dict[str, Any] = {"name": str | None, "least": int | None, "n": int}
    found = run(some.group_by("name").apply(count, sort="whole", nulls_last=True, columns=made).sort("name"))
    query = "SELECT name, min(whole), count(*) FROM t GROUP BY name ORDER BY name NULLS FIRST"
    assert rows(found) == asked(query, t=whole)
    found = run(some.group_by("name").reduce(lambda a, b: a if b["whole"] is None else b).sort("name"))
    last: dict[Any, Any] = {}
    for one in wanted:
        last[one["name"]] = one if one["name"] not in last or one["whole"] is not None else last[one["name"]]
    assert found == sorted(last.values(), key=lambda one: (one["name"] is not None, (one["name"] or "").encode()))


def test_shown_and_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = sm.Pipeline()
    table = job.from_iter([("a", 1), (None, None)], {"name": str | None, "n": int | None})
    table.show(memory="128 MiB")
    assert capsys.readouterr().out == "name     n\n----  ----\na        1\nNone  None\n"
    with pytest.raises(sm.UsageError, match="is no type"):
        job.from_iter([], {"a": int | str})
    with pytest.raises(sm.UsageError, match="is no type"):
        job.from_iter([], {"a": "i64??"})
    strict = job.from_iter([1, None], {"a": int})
    with pytest.raises(sm.FunctionError, match="record 2: TypeError: column a is of type i64"):
        strict.collect(memory="128 MiB")
    missing = job.from_iter([{"a": 1}, {}], {"a": int | None})
    with pytest.raises(sm.FunctionError, match="it has no"):
        missing.collect(memory="128 MiB")
    pairs = sm.Pipeline()
    pairs.from_iter([(b"a", None)], {"key": bytes, "value": bytes | None}).write_kv(tmp_path / "out")
    with pytest.raises(sm.InputError, match="column value is null, and pairs hold bytes"):
        pairs.run(memory="128 MiB")
    assert list(tmp_path.iterdir()) == []


def test_groups_in_order(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 5000)
    table = sm.Pipeline().from_arrow(whole)
    in_order = table.group_by("whole", "name", order="sorted")
    result = in_order.agg(n=sm.count()).collect_arrow(memory="128 MiB", temp=tmp_path)
    query = "SELECT whole, name, count(*) FROM t GROUP BY ALL ORDER BY whole NULLS LAST, name NULLS LAST"
    wanted = asked(query, t=whole)
    assert [tuple(record.values()) for record in pa.table(result).to_pylist()] == wanted
    assert len(result.report.phases) == 1
    pairs = table.select("whole", "name").distinct(order="sorted").collect(memory="128 MiB", temp=tmp_path)
    assert rows(pairs) == [one[:2] for one in wanted]

    def counted(key: Any, given: Any) -> Any:
        yield {"whole": key[0], "name": key[1], "n": len(list(given))}

    counts = in_order.apply(counted, columns={"whole": int | None, "name": str | None, "n": int})
    assert rows(counts.collect(memory="128 MiB", temp=tmp_path)) == wanted
    with pytest.raises(sm.UsageError, match="order is"):
        table.group_by("whole", order="up")  # type: ignore[arg-type]
    # So do those whose records have an order, in one job as well.
    def texts(key: Any, given: Any) -> Any:
        found = [record["name"] for record in given]
        assert found == sorted(found, key=lambda name: (name is not None, name or ""))
        yield {"whole": key, "n": len(found)}

    by_whole = table.group_by("whole", order="sorted").apply(texts, columns={"whole": int | None, "n": int}, sort="name")
    made = by_whole.collect(memory="128 MiB", temp=tmp_path)
    query = "SELECT whole, count(*) FROM t GROUP BY ALL ORDER BY whole NULLS LAST"
    assert rows(made) == asked(query, t=whole)
    assert by_whole.report is not None and len(by_whole.report.phases) == 1


def test_texts_are_joined_as_duckdb_does(draw: random.Random, tmp_path: Path) -> None:
    records = [
        {"k": draw.choice(["a", "b", "", "c d"]), "t": draw.choice([None, "", "x", "ß", "x\0y", "z" * draw.randrange(50)]), "n": at}
        for at in range(3000)
    ]
    records += [{"k": "none", "t": None, "n": 0}]
    table = sm.Pipeline().from_iter(records, {"k": str, "t": str | None, "n": int})
    whole = pa.Table.from_pylist(records)
    query = (
        "SELECT k, string_agg(t, '; ' ORDER BY t), string_agg(DISTINCT t, '' ORDER BY t), count(*), first(n ORDER BY n)"
        " FROM t GROUP BY k ORDER BY k"
    )
    wanted = asked(query, t=whole)
    made = table.group_by("k", order="sorted").agg(
        all=sm.string_agg("t", "; "), each=sm.string_agg("t", "", distinct=True), count=sm.count(), first=sm.first("n")
    )
    assert made.schema == {"k": "string", "all": "string?", "each": "string?", "count": "u64", "first": "i64"}
    assert [tuple(record.values()) for record in made.collect(memory="128 MiB", temp=tmp_path)] == wanted
    assert made.report is not None and len(made.report.phases) == 1
    with pytest.raises(sm.UsageError, match=r"(?s)n is of type i64, and no text.*cast"):
        table.group_by("k").agg(x=sm.string_agg("n"))
    with pytest.raises(sm.UsageError, match="what stands between texts is a text"):
        sm.string_agg("t", 1)  # type: ignore[arg-type]
    with pytest.raises(sm.UsageError, match="distinct is True or False"):
        sm.string_agg("t", distinct="yes")  # type: ignore[arg-type]
    with pytest.raises(sm.UsageError, match="order"):
        table.observe(x=sm.string_agg("t"))
    with pytest.raises(sm.MemoryLimitError, match=r"(?s)column t have more than \d+ bytes together, in the group \"many\".*apply"):
        many = sm.Pipeline().from_iter(({"k": "many", "t": f"{at:09}"} for at in range(400_000)), {"k": str, "t": str})
        many.group_by("k").agg(x=sm.string_agg("t")).collect(memory="64 MiB", temp=tmp_path, threads=2)


@pytest.mark.parametrize("processes", [0, 2])
def test_whole_numbers_stay_exact_in_numpy_and_pandas(processes: int) -> None:
    # With a null among them both made floats of whole numbers: 2**53 + 1 became 2**53.
    odd = 2**53 + 1
    records: list[dict[str, Any]] = [
        {"n": odd, "u": 2**64 - 1, "is_so": True, "real": 0.5, "text": "a"},
        {"n": None, "u": None, "is_so": None, "real": None, "text": None},
        {"n": -odd, "u": 1, "is_so": False, "real": 1.5, "text": ""},
    ]
    kinds: dict[str, Any] = {"n": "i64?", "u": "u64?", "is_so": "bool?", "real": "f64?", "text": "string?"}

    def run(of: list[dict[str, Any]], function: Any, batch_format: str, columns: dict[str, Any] = kinds) -> list[dict[str, Any]]:
        table = sm.Pipeline().from_iter(of, kinds).select(*columns)
        return table.map_batches(function, columns, batch_format=batch_format).collect(memory="128 MiB", processes=processes)

    def of_pandas(frame: Any) -> Any:
        # Whether or not one is missing in this batch.
        assert [str(frame[name].dtype) for name in ["n", "u", "is_so", "real"]] == ["Int64", "UInt64", "boolean", "float64"]
        assert list(frame.columns) == ["n", "u", "is_so", "real", "text"]
        return frame

    def of_numpy(arrays: Any) -> Any:
        assert [str(arrays[name].dtype) for name in ["n", "u", "is_so", "real"]] == ["int64", "uint64", "bool", "float64"]
        assert all(np.ma.isMaskedArray(arrays[name]) for name in ["n", "u", "is_so"])
        return arrays

    for some in [records, records[:1], records[1:2]]:
        assert run(some, of_pandas, "pandas") == some
        assert run(some, of_numpy, "numpy") == some

    def more(batch: Any) -> Any:
        batch["n"] = batch["n"] + 1
        return batch

    only = {"n": kinds["n"]}
    for batch_format in ["numpy", "pandas"]:
        assert run(records, more, batch_format, only) == [{"n": odd + 1}, {"n": None}, {"n": 1 - odd}]

    def objects(batch: Any) -> Any:
        return {"n": np.array([odd, None, -odd], object)}

    assert run(records, objects, "numpy", only) == [{"n": odd}, {"n": None}, {"n": -odd}]
