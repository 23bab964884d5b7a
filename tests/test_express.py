"""Columns by arithmetic, what passes by observed, lists, and files side by side, held against plain Python."""

from __future__ import annotations

import csv
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm

RECORD: dict[str, sm.ColumnType] = {"i": int, "u": "u64", "f": float, "s": str, "b": bool, "none": int | None}


def records(draw: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "i": draw.randrange(-50, 50), "u": draw.randrange(1000), "f": draw.uniform(-3, 3), "s": draw.choice("abä"),
            "b": draw.random() < 0.5, "none": draw.choice([None, 3, -4]),
        }
        for _ in range(count)
    ]


def test_expressions_are_those_of_python(draw: random.Random) -> None:
    given = records(draw, 2000)
    i, u, f, s, b, none = (sm.col(name) for name in RECORD)
    made = sm.Pipeline().from_iter(given, RECORD).with_columns(
        sums=i + u * 2 - 7, parts=f / 3 + 1 / (u + 1), floor=i // 7, rest=i % -7, wrapped=f % 2, minus=-i, size=abs(f),
        ahead=100 - i, twice=2 * f, is_more=i + 1 > u, is_same=(s == "ä") | ~b & (s != "a"), whole=(f * 10).cast(int),
        real=u.cast("f64"), bit=b.cast(int), both=none + i, known=none.fill_null(0) * 2, lacks=none.is_null(),
        root=u.sqrt(), root_of_none=abs(none).sqrt(), chosen=sm.if_else(i < 0, -1, u.cast(int)), text=sm.if_else(b, s, "no"), odd=sm.if_else(i % 2 == 1, i, None),
        even=sm.if_else(i % 2 == 1, None, s), three=sm.lit(3), at_most=sm.if_else(b & (i <= 3), i, 3),
    )
    types = made.columns
    assert [types[name] for name in ("sums", "parts", "is_more", "both", "known", "lacks", "text", "three", "odd", "even")] == [
        "i64", "f64", "bool", "i64?", "i64", "bool", "string", "i64", "i64?", "string?"
    ]

    def wanted(one: dict[str, Any]) -> dict[str, Any]:
        i, u, f, s, b, none = (one[name] for name in RECORD)
        return one | {
            "sums": i + u * 2 - 7, "parts": f / 3 + 1 / (u + 1), "floor": i // 7, "rest": i % -7, "wrapped": f % 2, "minus": -i,
            "size": abs(f), "ahead": 100 - i, "twice": 2 * f, "is_more": i + 1 > u, "is_same": s == "ä" or not b and s != "a",
            "whole": int(f * 10), "real": float(u), "bit": int(b), "both": None if none is None else none + i,
            "known": (none or 0) * 2, "lacks": none is None,
            "root": math.sqrt(u), "root_of_none": None if none is None else math.sqrt(abs(none)), "chosen": -1 if i < 0 else u, "text": s if b else "no", "three": 3,
            "at_most": i if b and i <= 3 else 3, "odd": i if i % 2 else None, "even": None if i % 2 else s,
        }

    assert made.collect(memory="128 MiB") == [wanted(one) for one in given]


def test_values_as_the_text_that_csv_has(draw: random.Random, tmp_path: Path) -> None:
    """Only text could be cast to text."""
    at = datetime(1969, 12, 31, 23, 59, 59, 250000, timezone.utc)
    columns: dict[str, sm.ColumnType] = {"i": int, "u": "u64", "f": float, "b": bool, "none": int | None, "at": datetime, "s": str}
    floats = [0.1, -0.0, 2.0, 1e300, 5e-324, math.inf, -math.inf, math.nan]
    floats += [draw.uniform(-1, 1) * 10 ** draw.randrange(-20, 20) for _ in range(300)]
    given: list[dict[str, Any]] = [
        {
            "i": draw.randrange(-(2**63), 2**63), "u": draw.randrange(2**64), "f": value, "b": draw.random() < 0.5,
            "none": draw.choice([None, -3]), "at": at + draw.randrange(10**6) * timedelta(seconds=1.5), "s": "plain",
        }
        for value in floats
    ]
    job = sm.Pipeline()
    table = job.from_iter(given, columns)
    texts = table.with_columns(**{name: sm.col(name).cast(str) for name in columns})
    assert texts.columns == {name: "string?" if name == "none" else "string" for name in columns}
    table.write_csv(tmp_path / "plain")
    texts.select("i", "u", "f", "b", "at", "s").write_csv(tmp_path / "texts")
    job.run(memory="128 MiB")
    with (tmp_path / "plain").open(newline="") as file:
        wanted = [one | {"none": one["none"] or None} for one in csv.DictReader(file)]
    assert texts.collect(memory="128 MiB") == wanted
    assert [float(one["f"]) for one in wanted if one["f"] != "NaN"] == [one["f"] for one in given if one["f"] == one["f"]]
    with (tmp_path / "texts").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{name: one[name] for name in ("i", "u", "f", "b", "at", "s")} for one in wanted]
    # As any text: compared, looked at, read again, a group.
    even = table.filter(sm.matches(sm.col("u").cast(str), "[02468]$")).with_columns(n=sm.parse(sm.col("u").cast(str), "u64"))
    assert [one["n"] for one in even.collect(memory="128 MiB")] == [one["u"] for one in given if one["u"] % 2 == 0]
    flags = table.with_columns(b=sm.if_else(sm.col("none").is_null(), "none", sm.col("b").cast(str)))
    model = Counter("none" if one["none"] is None else str(one["b"]).lower() for one in given)
    assert {one["b"]: one["n"] for one in flags.group_by("b").agg(n=sm.count()).collect(memory="128 MiB")} == model
    with pytest.raises(sm.UsageError, match="micros makes a number of a time"):
        table.with_columns(x=sm.col("at").cast(int))
    # Where values may be missing the type may say so: it was a ValueError.
    assert table.with_columns(x=sm.col("none").cast(float | None)).columns["x"] == "f64?"
    with pytest.raises(sm.UsageError, match="a condition, as x != 0, makes one"):
        table.with_columns(x=sm.col("i").cast(bool))


def test_bools_are_added_up_as_numbers(draw: random.Random) -> None:
    """What is to be done was not said."""
    given = [(draw.choice("ab"), draw.choice([None, True, False])) for _ in range(500)]
    table = sm.Pipeline().from_iter(given, {"k": str, "flag": bool | None})
    for aggregate in (sm.sum, sm.mean, sm.median):
        with pytest.raises(sm.UsageError, match=r"(?s)flag is of type bool, and no number.*sm.col\('x'\).cast\(int\)"):
            table.agg(n=aggregate("flag"))
    sums = table.with_columns(flag=sm.col("flag").cast(int)).group_by("k").agg(n=sm.sum("flag")).sort("k").collect(memory="128 MiB")
    assert sums == [{"k": k, "n": sum(flag or 0 for key, flag in given if key == k)} for k in "ab"]


def test_conditions_and_observations(draw: random.Random, tmp_path: Path) -> None:
    given = records(draw, 3000)
    job = sm.Pipeline()
    table = job.from_iter(given, RECORD).observe(all=sm.count(), total=sm.sum("f"), known=sm.count("none"))
    few = table.filter((sm.col("none") > 0) & sm.col("b")).observe(least=sm.min("i"), mean=sm.mean("u"))
    few.group_by("s").agg(n=sm.count()).observe(texts=sm.count()).sort("s").write_csv(tmp_path / "out.csv")
    report = job.run(memory="128 MiB")
    kept = [one for one in given if one["none"] == 3 and one["b"]]
    assert report.observed == {
        "all": 3000, "total": math.fsum(one["f"] for one in given), "known": sum(one["none"] is not None for one in given),
        "least": min(one["i"] for one in kept), "mean": sum(one["u"] for one in kept) / len(kept),
        "texts": len({one["s"] for one in kept}),
    }
    assert f"observed least: {report.observed['least']}\n" in report.summary
    assert report.records_out == report.observed["texts"]


def test_a_table_tells_what_was_done_when_it_was_computed(draw: random.Random) -> None:
    given = records(draw, 500)
    table = sm.Pipeline().from_iter(given, RECORD).observe(all=sm.count(), total=sm.sum("i"))
    observed = {"all": 500, "total": sum(one["i"] for one in given)}
    batches = table.iter_batches(memory="128 MiB")
    reports = [table.report]
    assert reports == [None], "nothing has been asked for"
    assert sum(len(batch) for batch in batches) == 500
    reports = [table.report]
    table.collect(memory="128 MiB")
    reports.append(table.report)
    result = table.collect_arrow(memory="128 MiB")
    reports.append(table.report)
    assert table.report is result.report
    few = table.filter(sm.col("b"))
    few.collect(memory="128 MiB")
    assert few.report is not None and few.report.records_out == sum(one["b"] for one in given)
    assert all(report is not None and report.observed == observed and report.records_out == 500 for report in reports)


def test_what_is_no_expression(tmp_path: Path) -> None:
    table = sm.Pipeline().from_iter([{"i": 1, "s": "x"}], {"i": int, "s": str})
    with pytest.raises(sm.UsageError, match="None stands in if_else alone"):
        sm.col("i") + None  # type: ignore[operator]
    with pytest.raises(sm.UsageError, match="a missing value has no type of its own"):
        table.with_columns(x=sm.if_else(sm.col("i") > 0, None, None))
    with pytest.raises(sm.UsageError, match="neither an expression nor"):
        sm.col("i") + object()  # type: ignore[operator]
    with pytest.raises(sm.UsageError, match="no number of 64 bits"):
        sm.col("i") + 2**64
    with pytest.raises(sm.UsageError, match="true or false of each record"):
        if sm.col("i") == 1 and sm.col("i") < 3:
            pass
    with pytest.raises(sm.UsageError, match="is no type"):
        sm.col("i").cast("text")
    with pytest.raises(sm.UsageError, match="what text says tells parse"):
        table.with_columns(x=sm.col("s").cast(int))
    with pytest.raises(sm.UsageError, match="there is no column j"):
        table.filter(sm.col("j") > 1)
    with pytest.raises(sm.UsageError, match="no condition"):
        table.filter(sm.col("i") + 1)
    with pytest.raises(sm.UsageError, match="needs records in order"):
        table.observe(x=sm.first("i"))
    with pytest.raises(sm.UsageError, match="x is text, and of least and greatest values only numbers"):
        table.observe(x=sm.max("s"))
    job = sm.Pipeline()
    one, other = (job.from_iter([number], {"n": int}).observe(n=sm.sum("n")) for number in (1, 2))
    one.write_csv("one")
    one.sort("n").write_csv("sorted")
    with pytest.raises(sm.UsageError, match="two things observed are called n"):
        other.write_csv("other")
    with pytest.raises(sm.UsageError, match="two things observed are called n"):
        job.from_iter([3], {"n": int}).observe(m=sm.sum("n"), n=sm.count()).write_csv("refused")
    job.from_iter([4], {"n": int}).observe(m=sm.sum("n")).write_csv("another")
    (tmp_path / "in.csv").write_text("i\n5\n0\n")
    job = sm.Pipeline()
    job.read_csv(tmp_path / "in.csv", {"i": int}).with_columns(part=7 // sm.col("i")).write_csv(tmp_path / "out.csv")
    with pytest.raises(sm.InputError, match="column part: 7 // 0 is no value of type i64") as caught:
        job.run(memory="128 MiB")
    assert (caught.value.file, caught.value.offset) == (str(tmp_path / "in.csv"), 4)
    assert not (tmp_path / "out.csv").exists()


def test_floats_are_divided_as_pythons_are(draw: random.Random) -> None:
    """1.0 // 0.1 was 10.0, since 1.0 / 0.1 is rounded up to that, and the rest was that of 9.0."""
    values = [0.0, -0.0, 0.1, 1.0, 7.5, 1e300, 5e-324, math.inf]
    pairs = [(one * sign, other) for one in values for other in values for sign in (1, -1) if other != 0]
    pairs += [(draw.uniform(-9, 9), draw.choice([-1, 1]) * draw.uniform(0.01, 3)) for _ in range(2000)]
    pairs += [(number / 10, other) for number in range(-50, 50) for other in (0.1, -0.1, 0.3)]
    table = sm.Pipeline().from_iter(pairs, {"one": float, "other": float})
    made = table.with_columns(whole=sm.col("one") // sm.col("other"), rest=sm.col("one") % sm.col("other"))
    for record in made.collect(memory="64 MiB"):
        wanted = divmod(record["one"], record["other"])
        assert repr((record["whole"], record["rest"])) == repr(wanted), record


def test_groups_know_one_zero_and_lists_no_missing_number() -> None:
    """Of a list a missing number was a panic, and groups had the zero of their first record in some aggregates alone."""
    rows = [(-0.0, None), (0.0, 2), (1.5, None), (0.0, 1)]
    table = sm.Pipeline().from_iter(rows, {"f": float, "n": "u64?"})
    lists = table.group_by("f").pack("n", name="list").with_columns(count=sm.list_length("list")).sort("f")
    assert repr([(one["f"], one["count"]) for one in lists.collect(memory="64 MiB")]) == "[(0.0, 2), (1.5, 0)]"
    # Lists of groups that come sorted, which were refused.
    numbers = sm.Pipeline().from_iter([(at % 97 - 48, at) for at in range(5000)], {"f": int, "n": "u64"})
    in_order = numbers.group_by("f", order="sorted").pack("n", name="list")
    found = [(one["f"], one["n"]) for one in in_order.unpack("list", name="n").collect(memory="64 MiB")]
    assert found == sorted((at % 97 - 48, at) for at in range(5000))
    numbers = table.with_columns(m=sm.col("f") * 2).group_by("f").agg(n=sm.count_distinct("n"), m=sm.count_distinct("m"))
    assert repr(sorted(one["f"] for one in numbers.collect(memory="64 MiB"))) == "[0.0, 1.5]"


def test_values_of_one_group_have_one_hash(draw: random.Random) -> None:
    """-0.0 had another one than 0.0, so that a partition by hash took a group apart."""
    floats = [0.0, -0.0, math.nan, -math.nan, 1.0, math.inf, -math.inf, *(draw.uniform(-9, 9) for _ in range(50))] * 3
    table = sm.Pipeline().from_iter(floats, {"f": float}).with_columns(h=sm.hash("f", seed=3), minus=sm.hash(-sm.col("f"), seed=3))
    hashes: dict[str, set[int]] = defaultdict(set)
    for one in table.collect(memory="64 MiB"):
        hashes[repr(abs(one["f"]) if one["f"] == 0 else one["f"])].add(one["h"])
        assert (one["h"] == one["minus"]) == (one["f"] == 0 or math.isnan(one["f"]))
    assert all(len(of) == 1 for of in hashes.values())
    assert len(set.union(*hashes.values())) == len(hashes) == 55
    parts = table.with_columns(part=sm.col("h") % 4).group_by("f").agg(n=sm.count_distinct("part")).collect(memory="64 MiB")
    assert [one["n"] for one in parts] == [1] * 55


def test_the_first_are_the_same_whoever_sees_them_first(tmp_path: Path) -> None:
    """Of records that differ in the sign of a zero alone, that came out which a worker had seen first."""
    names = []
    for number, zero in enumerate(["0.0", "-0.0"] * 20):
        names.append(tmp_path / f"{number:02}")
        names[-1].write_text(f"{zero};x\n" * (1 + number % 3))
    columns: dict[str, sm.ColumnType] = {"f": float, "s": str}
    for paths in (names, names[::-1]):
        table = sm.Pipeline().read_text(paths).flat_map(sm.fields("line", ";", columns))
        for threads in (1, 2):
            made = table.top(30, "f", descending=False).collect(memory="64 MiB", threads=threads)
            assert repr([record["f"] for record in made]) == repr([-0.0] * 30)
            assert {record["s"] for record in made} == {"x"}


EDGE: dict[str, sm.ColumnType] = {"source": "u64", "target": "u64"}


def written(table: sm.Table, job: sm.Pipeline, path: Path) -> tuple[Path, dict[str, Any]]:
    table.write_rows(path)
    assert "proven" in str(job.run(memory="128 MiB"))
    return path, table.columns


def test_lists_and_files_side_by_side(draw: random.Random, tmp_path: Path) -> None:
    edges = [(draw.randrange(500), int(draw.paretovariate(0.5)) % 2**63) for _ in range(20_000)]
    edges += [(2**64 - 1, number) for number in range(30_000)]
    (tmp_path / "edges").write_text("".join(f"{source}\t{target}\n" for source, target in edges))

    def read() -> tuple[sm.Pipeline, sm.Table]:
        job = sm.Pipeline()
        return job, job.read_csv(tmp_path / "edges", EDGE, header=False, delimiter="\t", quote=None)

    job, table = read()
    lists = written(table.group_by("source").pack("target", name="targets"), job, tmp_path / "lists")
    assert lists[1] == {"source": "u64", "targets": "binary"}
    job, table = read()
    ends = written(table.unpivot("source", "target", name="end").distinct(), job, tmp_path / "ends")
    job, table = read()
    even = table.filter(sm.col("source") % 2 == 0).group_by("source").agg(n=sm.count(), most=sm.max("target"))
    counts = written(even, job, tmp_path / "counts")

    targets = defaultdict(list)
    for source, target in edges:
        targets[source].append(target)
    pasted = sm.Pipeline().paste(lists, ends, counts)
    assert pasted.columns == {"source": "u64", "targets": "binary", "n": "u64", "most": "u64"}
    found = pasted.with_columns(length=sm.list_length("targets")).select("source", "length", "n", "most").sort("source").collect()
    vertices = sorted({end for edge in edges for end in edge})
    of_even = {source: of for source, of in targets.items() if source % 2 == 0}
    assert found == [
        {"source": one, "length": len(targets.get(one, ())), "n": len(of_even.get(one, ())), "most": max(of_even.get(one, (0,)))}
        for one in vertices
    ]
    unpacked = sm.Pipeline().paste(lists).unpack("targets", name="target")
    assert unpacked.columns == EDGE
    pairs = [(one["source"], one["target"]) for one in unpacked.collect(memory="128 MiB")]
    assert sorted(pairs) == sorted(edges)
    assert [target for source, target in pairs if source == 7] == sorted(targets[7])

    job, table = read()
    sums = table.group_by("source").agg(n=sm.count()).sort("n")
    wrong = written(sums, job, tmp_path / "wrong")
    with pytest.raises(sm.InputError, match="not in the order in which groups come"):
        sm.Pipeline().paste(wrong).collect(memory="128 MiB")
    with pytest.raises(sm.UsageError, match=r"groups are of type u64 and of type u64\?"):
        sm.Pipeline().paste(lists, (ends[0], {"source": "u64?"}))
    with pytest.raises(sm.UsageError, match="two columns are called n"):
        sm.Pipeline().paste(counts, counts)
    with pytest.raises(sm.UsageError, match="u64"):
        table.with_columns(target=sm.col("target").cast(int)).group_by("source").pack("target", name="targets")
    with pytest.raises(sm.UsageError, match="lists are binary"):
        table.unpack("target", name="x")


def test_values_are_of_the_type_they_were_written_in() -> None:
    """Bytes were text where they looked like it, so that the type of a column hung on what was in it."""
    made = sm.Pipeline().from_iter([1], {"a": int}).with_columns(
        text="abc", raw=b"abc", none=b"\xff", chosen=sm.if_else(sm.col("a") > 0, b"x", b"y"), is_it=sm.lit("abc") == b"abc",
    )
    assert made.columns == {"a": "i64", "text": "string", "raw": "binary", "none": "binary", "chosen": "binary", "is_it": "bool"}
    wanted = {"a": 1, "text": "abc", "raw": b"abc", "none": b"\xff", "chosen": b"x", "is_it": True}
    assert made.collect(memory="128 MiB") == [wanted]


def test_whole_numbers_of_both_types() -> None:
    """What lies between the two types was refused, though the sum was not."""
    u, i, k = sm.col("u"), sm.col("i"), sm.col("k")
    table = sm.Pipeline().from_iter([(2**64 - 1, -(2**63), 4)], {"u": "u64", "i": int, "k": int})
    made = table.with_columns(sum=u + i, part=u // k, product=(u - u) * i)
    assert made.select("sum", "part", "product").collect(memory="128 MiB") == [
        {"sum": 2**63 - 1, "part": (2**64 - 1) // 4, "product": 0}
    ]


def test_means_are_the_floats_nearest_to_them(draw: random.Random) -> None:
    """Sums were made floats, and then divided: some were above the largest value, and some infinite."""
    real = [[1e308] * 3, [0.1] * 3, [5e-324, 5e-324, 0.0]] + [[draw.uniform(-1, 1) for _ in range(7)] for _ in range(30)]
    whole = [[2**53 + 1] * 3, [2**63 - 1] * 7] + [[draw.randrange(-(2**63), 2**63) for _ in range(5)] for _ in range(30)]
    cases: list[tuple[sm.ColumnType, list[Any]]] = [(float, real), (int, whole)]
    for kind, groups in cases:
        rows = [(group, value) for group, values in enumerate(groups) for value in values]
        table = sm.Pipeline().from_iter(rows, {"group": int, "value": kind})
        found = table.group_by("group").agg(mean=sm.mean("value")).sort("group").collect(memory="128 MiB")
        exact = [float(sum(map(Fraction, values)) / len(values)) for values in groups]
        assert [one["mean"] for one in found] == exact


def test_of_nothing_there_is_no_mean(tmp_path: Path) -> None:
    """Observed, where no column may be missing."""
    job = sm.Pipeline()
    table = job.from_iter([(1, 2.0)], {"i": int, "f": float}).filter(sm.col("i") > 1)
    table.observe(whole=sm.mean("i"), real=sm.mean("f"), n=sm.count()).write_text(tmp_path / "out")
    assert job.run(memory="128 MiB").observed == {"whole": None, "real": None, "n": 0}
    assert (tmp_path / "out").read_text() == ""


def test_what_a_stack_does_not_hold_is_refused() -> None:
    """It ended the process."""
    table = first = sm.Pipeline().from_iter([1], {"a": int})
    with pytest.raises(sm.UsageError, match="at most 500 verbs"):
        for _ in range(1500):
            table = table.with_columns(a=sm.col("a") + 1)
    assert table.collect(memory="128 MiB") == [{"a": 501}]
    expr = sm.col("a")
    for _ in range(499):
        expr = expr + 1
    assert first.with_columns(b=expr).collect(memory="128 MiB") == [{"a": 1, "b": 500}]
    all_deeper: list[Callable[[], object]] = [lambda: expr + 1, lambda: -expr, lambda: expr.cast(float), lambda: sm.if_else(expr > 0, 1, 2)]
    for deeper in all_deeper:
        with pytest.raises(sm.UsageError, match="at most 500 others in each other"):
            deeper()


@pytest.mark.parametrize("number", [2**53 + 1, 2**53, 2**63 - 1, -(2**53) - 1, 7])
@pytest.mark.parametrize("other", [float(2**53), float(2**63), -float(2**53), 7.0, 7.5, float("nan")])
def test_is_in_compares_whole_numbers_with_floats_as_equality_does(number: int, other: float) -> None:
    table = sm.Pipeline().from_iter([{"i": number}], {"i": int})
    told = table.with_columns(same=sm.col("i") == other, one=sm.col("i").is_in([other, 1.5])).collect()
    assert told[0]["one"] == told[0]["same"]
def test_an_expression_that_doubles_is_refused() -> None:
    """Each round uses twice what the one before made: 25 rounds took all memory, and had no end."""
    table = sm.Pipeline().from_iter([3.0], {"x": float})
    x = y = sm.col("x")
    with pytest.raises(sm.UsageError, match=r"at most 100000 others.*with_columns gives that a name"):
        for _ in range(25):
            y = (y + x / y) / 2
    table = table.with_columns(y=x)
    for _ in range(25):
        table = table.with_columns(y=(sm.col("y") + x / sm.col("y")) / 2)
    [found] = table.collect(memory="128 MiB")
    assert found["y"] == pytest.approx(math.sqrt(3))
    many = table.filter(sm.col("x").is_in(range(200_000)))
    assert len(many.collect(memory="128 MiB")) == 1
