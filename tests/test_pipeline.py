"""Pipelines, held against plain Python over what is in memory."""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
import re
import traceback
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm
from conftest import Text


def words_of(line: str) -> list[str]:
    return re.findall(r"[^\W_]+", line)


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_word_count_as_in_the_readme(text: Text, tmp_path: Path) -> None:
    job = sm.Pipeline()
    words = job.read_text(text.pattern).flat_map(sm.words("line", lower=True))
    assert words.columns == {"word": "string"}
    words.group_by("word").agg(n=sm.count()).top(100, by="n").write_csv(tmp_path / "top.csv")
    report = job.run(memory="128 MiB", temp=[tmp_path])

    counts = Counter(word for line in text.lines for word in words_of(line.lower()))
    wanted = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:100]
    assert rows(tmp_path / "top.csv") == [["word", "n"], *([word, str(n)] for word, n in wanted)]
    assert (report.records_in, report.records_out) == (len(text.lines), 100)
    assert [phase["name"] for phase in report.phases] == ["group by word", "top 100 by n downwards"]
    assert "proven: what was written is what was read" in str(report)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "top.csv"]


def test_ngrams_split_distinct(text: Text, tmp_path: Path) -> None:
    job = sm.Pipeline()
    rows_of_two = job.read_text(text.pattern).flat_map(sm.ngrams("line", 2, name="two"))
    rows_of_two.distinct().sort("two", descending=True).write_text(tmp_path / "out")
    job.run(memory="128 MiB")
    model: set[str] = set()
    for line in text.lines:
        words = words_of(line)
        model.update(f"{a} {b}" for a, b in zip(words, words[1:]))
    wanted = sorted(model, key=lambda two: two.encode(), reverse=True)
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == wanted

    job = sm.Pipeline()
    job.read_text(text.pattern).flat_map(sm.split("line", " - ")).write_text(tmp_path / "out.gz")
    job.run(memory="128 MiB")
    found = gzip.decompress((tmp_path / "out.gz").read_bytes()).decode()
    assert found.split("\n")[:-1] == [part for line in text.lines for part in line.split(" - ")]


def test_aggregates_of_typed_fields(tmp_path: Path, draw: random.Random) -> None:
    sales: list[tuple[str, int, float, bool]] = []
    for _ in range(5000):
        price = draw.uniform(-1, 1) * 10 ** draw.randrange(-200, 200)
        sales.append((f"city {draw.randrange(30)}", draw.randrange(-(10**9), 10**9), price, draw.random() < 0.5))
    lines = [f"{city};{count};{price!r};{str(paid).lower()}" for city, count, price, paid in sales]
    (tmp_path / "in.txt").write_text("city;count;price;paid\n" + "\n".join(lines))
    job = sm.Pipeline()
    columns: dict[str, Any] = {"city": str, "count": int, "price": float, "paid": bool}
    table = job.read_text(tmp_path / "in.txt", skip_header=1).flat_map(sm.fields("line", ";", columns))
    groups = table.group_by("city", "paid")
    groups.agg(
        n=sm.count(), turnover=sm.sum("price"), least=sm.min("price"), most=sm.max("count"),
        mean=sm.mean("count"), first=sm.first("count"),
    ).sort("turnover").write_jsonl(tmp_path / "out.jsonl")
    job.run(memory="128 MiB", threads=2)

    model: dict[tuple[str, bool], list[tuple[int, float]]] = defaultdict(list)
    for city, count, price, paid in sales:
        model[city, paid].append((count, price))
    wanted = []
    for (city, paid), group in model.items():
        counts, prices = zip(*group)
        wanted.append(
            {
                "city": city, "paid": paid, "n": len(group), "turnover": math.fsum(prices), "least": min(prices),
                "most": max(counts), "mean": sum(counts) / len(counts), "first": counts[0],
            }
        )
    wanted.sort(key=lambda one: float(one["turnover"]))
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert found == wanted


def test_functions_of_python(text: Text, tmp_path: Path) -> None:
    def pairs(record: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"word": word, "length": len(word)} for word in words_of(record["line"])]

    job = sm.Pipeline()
    table = job.read_text(text.pattern).flat_map(pairs, columns={"word": str, "length": int})
    table = table.filter(lambda record: record["length"] > 3)
    table = table.map(lambda record: record["length"] * 0.5, columns={"half": float})
    table.group_by("half").agg(n=sm.count()).sort("half").write_csv(tmp_path / "out", header=False)
    job.run(memory="128 MiB")
    lengths = (len(word) for line in text.lines for word in words_of(line))
    counts = Counter(length * 0.5 for length in lengths if length > 3)
    assert rows(tmp_path / "out") == [[str(half), str(n)] for half, n in sorted(counts.items())]


def test_reduce_with_a_function(text: Text, tmp_path: Path) -> None:
    def longer(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
        return {"first": a["first"], "word": max(a["word"], b["word"], key=len)}

    job = sm.Pipeline()
    words = job.read_text(text.pattern).flat_map(sm.words("line"))
    letters = words.map(
        lambda record: {"first": record["word"][0], "word": record["word"]}, columns={"first": str, "word": str}
    )
    letters.group_by("first").reduce(longer).sort("first").write_csv(tmp_path / "out", header=False)
    job.run(memory="128 MiB")
    model: dict[str, str] = {}
    for line in text.lines:
        for word in words_of(line):
            # Of equally long ones the first stays.
            if len(word) > len(model.get(word[0], "")):
                model[word[0]] = word
    assert rows(tmp_path / "out") == [list(one) for one in sorted(model.items())]


def test_explain(text: Text, tmp_path: Path) -> None:
    job = sm.Pipeline()
    job.read_text(text.pattern).flat_map(sm.words("line")).distinct().write_text(tmp_path / "out")
    told = job.explain(memory="128 MiB")
    assert "brings together: distinct" in told
    assert "memory           128.0 MiB" in told
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_built(text: Text, tmp_path: Path) -> None:
    job = sm.Pipeline()
    lines = job.read_text(text.pattern)
    with pytest.raises(sm.UsageError, match="there is no column word, only line"):
        lines.group_by("word").agg(n=sm.count())
    with pytest.raises(sm.UsageError, match="line is of type string, and no number"):
        lines.group_by("line").agg(n=sm.sum("line"))
    with pytest.raises(sm.UsageError, match="is no type"):
        lines.map(len, columns={"n": complex})  # type: ignore[dict-item]
    with pytest.raises(sm.UsageError, match="say which columns"):
        lines.map(len)
    with pytest.raises(sm.UsageError, match="nothing is written"):
        job.run()
    lines.write_text(tmp_path / "out")
    with pytest.raises(sm.UsageError, match="two outputs have the name"):
        lines.write_text(tmp_path / "out")
    with pytest.raises(ValueError, match="no size"):
        job.run(memory="much")
    with pytest.raises(sm.MemoryLimitError, match="needs at least"):
        job.run(memory="1 MiB")


def test_errors_name_the_place(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1\n2\nx\n4\n")
    (tmp_path / "out").write_text("old")

    def run(function: Any) -> sm.Error:
        job = sm.Pipeline()
        function(job.read_text(tmp_path / "in.txt")).write_text(tmp_path / "out")
        with pytest.raises(sm.Error) as raised:
            job.run(memory="128 MiB")
        assert (tmp_path / "out").read_text() == "old"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out"]
        return raised.value

    error = run(lambda table: table.flat_map(sm.fields("line", ",", {"n": int})))
    assert isinstance(error, sm.InputError)
    assert (error.file, error.offset) == (str(tmp_path / "in.txt"), 4)
    assert "'x'" in error.cause or '"x"' in error.cause

    def fails(record: dict[str, Any]) -> int:
        return int(record["line"])

    error = run(lambda table: table.map(fails, columns={"n": int}))
    assert isinstance(error, sm.FunctionError)
    assert isinstance(error.__cause__, ValueError)
    assert "in fails" in "".join(traceback.format_exception(error.__cause__))
    assert (error.file, error.offset) == (str(tmp_path / "in.txt"), 4)
    assert error.cause.endswith(", of the record {'line': 'x'}")
    # Behind the sort nobody knows the place any more.
    error = run(lambda table: table.sort("line").filter(fails))
    assert isinstance(error, sm.FunctionError) and isinstance(error.__cause__, ValueError)
    assert error.cause.endswith(", of the record {'line': 'x'}")
    error = run(lambda table: table.group_by("line").reduce(lambda a, b: a).map(fails, columns={"n": int}))
    assert isinstance(error, sm.FunctionError) and isinstance(error.__cause__, ValueError)
    error = run(lambda table: table.map(lambda record: "text", columns={"n": int}))
    assert isinstance(error, sm.FunctionError) and isinstance(error.__cause__, TypeError)


@pytest.mark.parametrize("pattern", ["ab", "a.*c", "^a", "c$", r"\bab\b", "", "[^x]b", "b\nc|cc", "(a|b{2}){3,4}", "c{5}"])
def test_lines_are_found_as_re_finds_them(tmp_path: Path, draw: random.Random, pattern: str) -> None:
    """Expressions that look at a match alone are looked for in many lines at once."""
    model = []
    for name in ["one", "two"]:
        lines = ["".join(draw.choices("abc \r", k=draw.randrange(12))).rstrip("\r") for _ in range(20_000)]
        (tmp_path / name).write_bytes("".join(line + draw.choice(["\n", "\r\n"]) for line in lines).encode())
        model += [(str(tmp_path / name), number, line) for number, line in enumerate(lines, 1)]
    found = [row for row in model if re.search(pattern, row[2])]
    others = [row for row in model if not re.search(pattern, row[2])]
    given = sm.Pipeline().read_text(tmp_path / "*", file="file", line_number="n")
    for matches, wanted in [(sm.matches("line", pattern), found), (~sm.matches("line", pattern), others)]:
        kept = given.filter(matches).select("file", "n", "line")
        for memory, threads in [("48 MiB", 2), ("256 MiB", 1)]:
            rows = [tuple(row.values()) for row in kept.collect(memory=memory, threads=threads)]
            assert rows == wanted
    # More than there is room for is made of a few lines.
    words = given.filter(sm.matches("line", pattern)).flat_map(sm.words("line", keep=["file", "n"]))
    wanted = [(file, n, word) for file, n, line in found for word in re.findall("[abc]+", line)]
    assert [tuple(row.values()) for row in words.collect(memory="48 MiB", threads=2)] == wanted
