"""What pipelines read and where they write, held against Python's own readers and plain lists."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm

LETTERS = ["a", "bä", ",", '"', "\n", "\r\n", " ", "😀", "\\", "\t"]


def sales(draw: random.Random, count: int) -> list[dict[str, Any]]:
    """Records with texts that must be quoted and escaped."""
    return [
        {
            "city": "".join(draw.choice(LETTERS) for _ in range(draw.randrange(10))),
            "count": draw.randrange(-(2**63), 2**63),
            "price": draw.uniform(-1e6, 1e6),
            "paid": draw.random() < 0.5,
        }
        for _ in range(count)
    ]


TYPES: dict[str, Any] = {"city": str, "count": int, "price": float, "paid": bool}


def as_csv(records: list[dict[str, Any]], **form: Any) -> str:
    """As Python's csv module writes them."""
    text = io.StringIO()
    writer = csv.writer(text, **form)
    writer.writerow(records[0])
    for record in records:
        writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in record.values()])
    return text.getvalue()


def test_csv_of_pythons_own_writer(tmp_path: Path, draw: random.Random) -> None:
    records = sales(draw, 3000)
    (tmp_path / "1.csv").write_text(as_csv(records[:1000]), encoding="utf-8", newline="")
    rest = as_csv(records[1000:], quoting=csv.QUOTE_ALL, lineterminator="\n")
    # The header must be the same, byte for byte.
    rest = rest.replace('"city","count","price","paid"', "city,count,price,paid", 1)
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(rest.encode()))
    job = sm.Pipeline()
    table = job.read_csv(tmp_path / "*.csv*", types={"count": int, "price": "f64", "paid": bool})
    assert table.columns == table.schema == {"city": "string", "count": "i64", "price": "f64", "paid": "bool"}
    assert table.collect(memory="128 MiB") == records
    assert table.head(3) == records[:3]
    table.sort("count").write_csv(tmp_path / "out")
    assert job.run(memory="128 MiB", temp=tmp_path).records_in == 3000
    with (tmp_path / "out").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    by_count = sorted(records, key=lambda record: int(record["count"]))
    assert [(one["city"], int(one["count"]), float(one["price"])) for one in found] == [
        (one["city"], one["count"], one["price"]) for one in by_count
    ]

    some = sm.Pipeline().read_csv(tmp_path / "?.csv", {"paid": str, "city": bytes}, line_number="line")
    wanted = [{"paid": str(one["paid"]).lower(), "city": one["city"].encode()} for one in records[:1000]]
    rows = some.collect(memory="128 MiB")
    assert [{"paid": one["paid"], "city": one["city"]} for one in rows] == wanted
    lines = [2]
    for one in wanted:
        lines.append(lines[-1] + 1 + one["city"].count(b"\n"))
    assert [one["line"] for one in rows] == lines[:-1]


@pytest.mark.parametrize(
    ("delimiter", "quote"),
    [("\t", '"'), (";", '"'), (";", "'"), ("|", None), ("\t", None), (" ", "a"), (":", '"'), ("-", "'"), (".", "1"), ("e", "\\")],
)
def test_csv_with_other_marks(tmp_path: Path, draw: random.Random, delimiter: str, quote: str | None) -> None:
    """Read by Python's own reader, and by `read_csv`; numbers and times are quoted where they have such a mark."""
    letters = [*LETTERS, delimiter, "'", ";", "a", "1"]
    if quote is None:
        letters = [letter for letter in letters if letter != delimiter and "\n" not in letter]
    records: list[dict[str, Any]] = [
        {
            "città": "".join(draw.choice(letters) for _ in range(draw.randrange(10))),
            "count": draw.randrange(-(2**63), 2**63),
            "pric'\"": draw.choice([draw.uniform(-1e6, 1e6), 1e-7, -1e300]),
            "at": datetime.fromtimestamp(draw.randrange(2**32), UTC),
            "note": draw.choice([None, "x", draw.choice(letters)]) if quote else "x",
        }
        for _ in range(2000)
    ]
    columns: dict[str, Any] = {"città": str, "count": int, "pric'\"": float, "at": datetime, "note": str | None}
    marks: dict[str, Any] = {"delimiter": delimiter, "quote": quote}
    job = sm.Pipeline()
    table = job.from_iter(records, columns)
    table.write_csv(tmp_path / "out.csv", **marks)
    table.write_csv(tmp_path / "parts", header=False, files=2, **marks)
    job.run(memory="128 MiB")
    form: dict[str, Any] = {"delimiter": delimiter, "quotechar": quote, "strict": True}
    if quote is None:
        form["quoting"] = csv.QUOTE_NONE
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file, **form)
    assert head == list(columns)
    assert [(city, int(count), float(price), datetime.fromisoformat(at), note) for city, count, price, at, note in rows] == [
        (*list(one.values())[:-1], one["note"] or "") for one in records
    ]
    assert sm.Pipeline().read_csv(tmp_path / "out.csv", columns, nulls=[""], **marks).collect(memory="128 MiB") == records
    parts = sm.Pipeline().read_csv(tmp_path / "parts" / "*.csv", columns, header=False, nulls=[""], **marks)
    assert parts.collect(memory="128 MiB") == records


def test_csv_of_a_column_and_of_what_cannot_be_told_apart(tmp_path: Path) -> None:
    texts = ["", "x", ";", "'", "''", '"']
    job = sm.Pipeline()
    table = job.from_iter(texts, {"a;b": str})
    table.write_csv(tmp_path / "out.tsv")
    table.write_csv(tmp_path / "out.csv", delimiter=";", quote="'")
    job.run(memory="128 MiB")
    # The name of the file says nothing about what is in it.
    assert (tmp_path / "out.tsv").read_text() == 'a;b\n""\nx\n;\n\'\n\'\'\n""""\n'
    quoted = ["'a;b'", "''", "x", "';'", "'" * 4, "'" * 6, '"']
    assert (tmp_path / "out.csv").read_text().splitlines() == quoted
    with pytest.raises(sm.UsageError, match='the header would have "a;b" in it'):
        table.write_csv(tmp_path / "none", delimiter=";", quote=None)
    for text, cause in [("x;y", 'column text has a delimiter in "x;y"'), ("x\n", "a newline"), ("\rx", "a carriage return")]:
        job = sm.Pipeline()
        job.from_iter([("y", 1), (text, 2)], {"text": str, "n": int}).write_csv(tmp_path / "none", delimiter=";", quote=None)
        with pytest.raises(sm.InputError, match=cause) as raised:
            job.run(memory="128 MiB")
        assert raised.value.hint is not None and "quote=" in raised.value.hint
    assert not (tmp_path / "none").exists()


def test_json_lines(tmp_path: Path, draw: random.Random) -> None:
    records = sales(draw, 2000)
    lines = []
    for record in records:
        members = [*record.items(), ("other", {"city": [None, "x"]})]
        draw.shuffle(members)
        lines.append(json.dumps(dict(members), ensure_ascii=draw.random() < 0.5))
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    job = sm.Pipeline()
    table = job.read_jsonl(tmp_path / "in.jsonl", TYPES)
    table.write_jsonl(tmp_path / "out.jsonl")
    job.run(memory="128 MiB")
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == records
    (tmp_path / "in.jsonl").write_text(lines[0] + '\n{"city":"x","count":1,"price":2,"paid":null}\n')
    with pytest.raises(sm.InputError, match="line 2: column paid is null") as raised:
        table.collect(memory="128 MiB")
    assert raised.value.file == str(tmp_path / "in.jsonl")
    assert raised.value.offset == len(lines[0].encode()) + 1


def at_path(found: Any, *steps: str) -> Any:
    """What lies there in a value of Python's, `None` if nothing does."""
    for step in steps:
        if isinstance(found, list):
            found = found[int(step)] if step.isdigit() and int(step) < len(found) else None
        else:
            found = found.get(step) if isinstance(found, dict) else None
    return found


def test_json_values_that_lie_in_others(tmp_path: Path, draw: random.Random) -> None:
    """Paths, as `sort --format jsonl --by` has them; a member that is called as a path goes before what lies there."""
    objects: list[dict[str, Any]] = []
    for record in sales(draw, 3000):
        tags = [draw.choice(LETTERS) for _ in range(draw.randrange(3))]
        user: Any = draw.choice([{"name": record["city"], "tags": tags, "at": {"x": record["price"], "a.b": 1}}, {"tags": None}, None, "x", []])
        members = [("user", user), ("count", record["count"]), ("x", {"user": {"name": "another"}})]
        members += [("user.name", "called so")] * (draw.random() < 0.1)
        draw.shuffle(members)
        objects.append(dict(members))
    lines = [json.dumps(one, ensure_ascii=draw.random() < 0.5) for one in objects]
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    columns: dict[str, Any] = {
        "user.name": str | None, "user.tags.1": str | None, "count": int, "user.at.x": float | None, r"user.at.a\.b": int | None,
    }
    job = sm.Pipeline()
    table = job.read_jsonl(tmp_path / "in.jsonl", columns, line_number="line")
    wanted = [
        {
            "user.name": one.get("user.name") or at_path(one, "user", "name"),
            "user.tags.1": at_path(one, "user", "tags", "1"),
            "count": one["count"],
            "user.at.x": at_path(one, "user", "at", "x"),
            r"user.at.a\.b": at_path(one, "user", "at", "a.b"),
            "line": number,
        }
        for number, one in enumerate(objects, 1)
    ]
    assert table.collect(memory="128 MiB") == wanted
    assert table.head(5) == wanted[:5]
    names = Counter(one["user.name"] for one in wanted)
    found = table.group_by("user.name").agg(n=sm.count()).collect(memory="128 MiB")
    assert {one["user.name"]: one["n"] for one in found} == names

    # Objects and arrays as text are what stands there, and Python reads it again; a value of another type is told with its path.
    (tmp_path / "in.jsonl").write_text('{"user": {"tags" : ["a", {"b":1}]}}\n')
    texts = sm.Pipeline().read_jsonl(tmp_path / "in.jsonl", {"user": str, "user.tags": bytes, "user.tags.1": str})
    assert texts.collect(memory="128 MiB") == [
        {"user": '{"tags" : ["a", {"b":1}]}', "user.tags": b'["a", {"b":1}]', "user.tags.1": '{"b":1}'}
    ]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"user.tags": int}, "line 1: column user.tags is an array, and not of type i64"),
        ({"user.tags.0": int}, "line 1: column user.tags.0 is a string, and not of type i64"),
        ({"user.name": str}, "line 1: it has no column user.name"),
    ]
    for columns, cause in wrong:
        with pytest.raises(sm.InputError, match=cause):
            sm.Pipeline().read_jsonl(tmp_path / "in.jsonl", columns).collect(memory="128 MiB")
    # Without columns they are members, as before.
    (tmp_path / "in.jsonl").write_text('{"user": {"name": "x"}, "a.b": 1, "c": null}\n{"a.b": 2, "c": [1]}\n')
    assert sm.Pipeline().read_jsonl(tmp_path / "in.jsonl").collect(memory="128 MiB") == [{"a.b": 1}, {"a.b": 2}]


def test_generated_json(tmp_path: Path) -> None:
    """Lines with all that trips readers up, against Python's own reader."""
    subprocess.run([sys.executable, "-m", "sortmill", "gen", "json", "3000", tmp_path / "in.jsonl"], check=True)
    columns: dict[str, Any] = {"id": int, "user.name": str | None, "user.age": int | None, "tags.0": str | None}
    found = sm.Pipeline().read_jsonl(tmp_path / "in.jsonl", columns).collect(memory="128 MiB")
    objects = [json.loads(line) for line in (tmp_path / "in.jsonl").read_text(encoding="utf-8").splitlines()]
    assert found == [{name: at_path(one, *name.split(".")) for name in columns} for one in objects]
    assert any(one["user.name"] for one in found) and any(one["tags.0"] for one in found)


def test_fixed_records_pairs_and_several_files(tmp_path: Path, draw: random.Random) -> None:
    records = [draw.randbytes(20) for _ in range(1001)]
    (tmp_path / "in.bin").write_bytes(b"".join(records))
    job = sm.Pipeline()
    table = job.read_fixed(tmp_path / "in.bin", 20, key=(2, 4))
    by_key = table.sort("key")
    by_key.write_fixed(tmp_path / "out.bin", 20, key=(2, 4))
    by_key.write_kv(tmp_path / "parts", files=4)
    told = job.explain(memory="128 MiB")
    assert "output 2 of 2, made from the inputs\nphase sort by key" in told
    assert "writes pairs to 4 files of equal counts in" in told
    report = job.run(memory="128 MiB")
    assert [phase["name"] for phase in report.phases] == ["sort by key", "sort by key"]
    records.sort(key=lambda record: record[2:6])
    assert (tmp_path / "out.bin").read_bytes() == b"".join(records)
    names = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert names == ["manifest.json", *(f"part-0000{number}.kv" for number in range(4))]
    counts = [len(sm.Pipeline().read_kv(tmp_path / "parts" / name).collect()) for name in names[1:]]
    assert counts == [250, 250, 250, 251]
    found = sm.Pipeline().read_kv(tmp_path / "parts" / "*.kv", file="file").collect(memory="128 MiB")
    assert [(one["key"], one["value"]) for one in found] == [(one[2:6], one[:2] + one[6:]) for one in records]
    assert {one["file"] for one in found} == {str(tmp_path / "parts" / name) for name in names[1:]}


def test_what_is_there_stays_if_asked(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("b\na\n")
    for _ in range(2):
        job = sm.Pipeline()
        table = job.read_text(tmp_path / "in")
        table.write_text(tmp_path / "out")
        table.sort("line").write_csv(tmp_path / "parts", files=3)
        job.run(memory="128 MiB")
    assert (tmp_path / "parts" / "part-00002.csv").read_text() == "line\nb\n"
    job = sm.Pipeline()
    job.read_text(tmp_path / "in").write_text(tmp_path / "new")
    job.read_text(tmp_path / "in").write_jsonl(tmp_path / "out", mode="error")
    with pytest.raises(sm.UsageError, match="something has this name already"):
        job.run(memory="128 MiB")
    # Nothing was begun.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "parts"]
    assert (tmp_path / "out").read_text() == "b\na\n"
    (tmp_path / "link").symlink_to(".")
    job = sm.Pipeline()
    job.read_text(tmp_path / "in").write_text(tmp_path / "out")
    for name in ("out", "link/out"):
        with pytest.raises(sm.UsageError, match="two outputs have the name"):
            job.read_text(tmp_path / "in").write_text(tmp_path / name)
    with pytest.raises(sm.UsageError, match="mode is 'error' or 'overwrite'"):
        sm.Pipeline().read_text("x").write_text("y", mode="append")  # type: ignore[arg-type]


def test_records_of_an_iterator(tmp_path: Path, draw: random.Random) -> None:
    records = sales(draw, 5000)
    table = sm.Pipeline().from_iter(records, TYPES)
    # A list is read as often as it is asked for.
    assert table.head(2) == records[:2]
    assert table.collect(memory="128 MiB") == records
    rows = (tuple(record.values()) for record in records)
    job = sm.Pipeline()
    counts = job.from_iter(rows, TYPES).group_by("paid").agg(n=sm.count(), most=sm.max("count")).sort("paid")
    wanted = [
        {
            "paid": paid,
            "n": sum(one["paid"] is paid for one in records),
            "most": max(one["count"] for one in records if one["paid"] is paid),
        }
        for paid in (False, True)
    ]
    assert counts.collect(memory="128 MiB") == wanted
    counts.write_csv(tmp_path / "out")
    with pytest.raises(sm.UsageError, match="an iterator can be read once"):
        job.run(memory="128 MiB")
    assert sm.Pipeline().from_iter(iter(["b", "a"]), {"x": str}).sort("x").collect() == [{"x": "a"}, {"x": "b"}]


def test_an_iterator_is_never_far_ahead(tmp_path: Path) -> None:
    """More than memory passes, and what it raises in the end leaves nothing."""
    asked = 0

    def endless() -> Iterator[tuple[int, bytes]]:
        nonlocal asked
        while True:
            asked += 1
            yield asked, b"x" * 1000

    def stop_at(record: dict[str, Any]) -> bool:
        if record["number"] == 60_000:
            raise ValueError("that is enough")
        return True

    columns: dict[str, Any] = {"number": int, "text": bytes}
    job = sm.Pipeline()
    job.from_iter(endless(), columns).filter(stop_at).sort("text").write_csv(tmp_path / "out")
    with pytest.raises(sm.FunctionError, match="that is enough"):
        job.run(memory="128 MiB", temp=tmp_path)
    assert 60_000 <= asked < 200_000
    assert list(tmp_path.iterdir()) == []

    def failing() -> Iterator[dict[str, Any]]:
        yield {"number": 1, "text": b""}
        raise OSError("the line is dead")

    for made, told in [
        (failing(), "record 2: OSError: the line is dead"),
        ([(1,)], "record 1: TypeError: it has 1 values where 2 are expected"),
        ([(1, b""), ("x", b"")], "record 2: TypeError: column number is of type i64"),
        ([{"number": 1}], "record 1: KeyError: .it has no \"text\""),
        (5, "'int' object is not iterable"),
    ]:
        with pytest.raises(sm.FunctionError, match=told) as raised:
            sm.Pipeline().from_iter(made, columns).collect(memory="128 MiB", temp=tmp_path)  # type: ignore[arg-type]
        assert raised.value.__cause__ is not None
        assert list(tmp_path.iterdir()) == []


def test_looking_at_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{number}\tx{'y' * number}\n" for number in range(50)))
    job = sm.Pipeline()
    columns: dict[str, Any] = {"n": int, "text": str}
    table = job.read_text(tmp_path / "in.txt").flat_map(sm.fields("line", "\t", columns))
    table.show(2)
    assert capsys.readouterr().out == "n  text\n-  ----\n0  x\n1  xy\n...\n"
    last = table.filter(lambda record: record["n"] > 47)
    last.show()
    assert capsys.readouterr().out.endswith(f"48  x{'y' * 36}...\n49  x{'y' * 36}...\n")
    table.top(1, "n").show()
    assert capsys.readouterr().out.splitlines()[2].startswith("49  xyyy")
    sizes = [len(batch) for batch in table.iter_batches(20, memory="128 MiB", temp=tmp_path)]
    assert sizes == [20, 20, 10]
    some = table.iter_batches(20, memory="128 MiB", temp=tmp_path)
    assert next(some)[0] == {"n": 0, "text": "x"}
    del some
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]
    assert table.head(0) == []
    with pytest.raises(sm.FunctionError) as raised:
        table.filter(lambda record: record["none"]).head()
    assert isinstance(raised.value.__cause__, KeyError)


def test_nothing_to_read_is_told(tmp_path: Path) -> None:
    """A list that a pattern of the caller's own left empty made an empty output in the place of the old one."""
    job = sm.Pipeline()
    with pytest.raises(sm.UsageError, match="nothing to read"):
        job.read_text([])
    with pytest.raises(sm.UsageError, match="nothing to read"):
        job.read_csv(iter([]), {"n": int})
    with pytest.raises(sm.UsageError, match="nothing to read"):
        job.read_kv(None)  # type: ignore[arg-type]
    with pytest.raises(sm.UsageError, match="names with their types"):
        job.read_csv("x", ["name", "age"])  # type: ignore[arg-type]
    with pytest.raises(sm.UsageError, match="is no type"):
        job.read_csv("x", {"n": [int]})  # type: ignore[dict-item]


def test_an_output_is_not_read_for_the_next(tmp_path: Path) -> None:
    """Each output is made from the inputs; the second was made from what the first had written."""
    (tmp_path / "a.txt").write_text("x\n")
    job = sm.Pipeline()
    table = job.read_text(tmp_path / "*.txt")
    table.write_text(tmp_path / "copy.txt")
    table.group_by("line").agg(n=sm.count()).write_csv(tmp_path / "n.csv")
    with pytest.raises(sm.UsageError, match="copy.txt has become one of the files"):
        job.run(memory="128 MiB")
    assert not (tmp_path / "n.csv").exists()

    # What another output reads is no matter.
    (tmp_path / "copy.txt").unlink()
    (tmp_path / "b.csv").write_text("n\n1\n")
    job = sm.Pipeline()
    for name in ["a.txt", "b.csv"]:
        job.read_text(tmp_path / name).distinct().sort("line").write_text(tmp_path / name)
    job.run(memory="128 MiB")
    assert (tmp_path / "b.csv").read_text() == "1\nn\n"

    for last in [False, True]:
        job = sm.Pipeline()
        table = job.read_text(tmp_path / "a.txt")
        if last:
            table.group_by("line").agg(n=sm.count()).write_csv(tmp_path / "n.csv")
        table.distinct().sort("line").write_text(tmp_path / "a.txt")
        if last:
            job.run(memory="128 MiB")
            assert (tmp_path / "n.csv").read_text() == "line,n\nx,1\n"
        else:
            table.group_by("line").agg(n=sm.count()).write_csv(tmp_path / "n.csv")
            with pytest.raises(sm.UsageError, match="is read for the outputs behind it"):
                job.run(memory="128 MiB")


def test_bools_as_python_writes_them(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("ok\nTrue\nfalse\nTRUE\nFalse\n")
    table = sm.Pipeline().read_csv(tmp_path / "in.csv", {"ok": bool})
    assert table.collect(memory="128 MiB") == [{"ok": ok} for ok in (True, False, True, False)]


def test_names_need_not_be_text(tmp_path: Path) -> None:
    """Files and folders whose names are no UTF-8 were left out, without a word."""
    folder = os.fsencode(tmp_path)
    os.mkdir(folder + b"/\xff")
    names = [b"/a.txt", b"/caf\xe9.txt", b"/\xff/b.txt"]
    for number, name in enumerate(names):
        Path(os.fsdecode(folder + name)).write_text(f"{number}\n")
    found = sm.Pipeline().read_text(tmp_path / "**" / "*.txt").sort("line").collect(memory="128 MiB")
    assert [record["line"] for record in found] == ["0", "1", "2"]
    one = Path(os.fsdecode(folder + names[1]))
    assert sm.Pipeline().read_text(one).collect(memory="128 MiB") == [{"line": "1"}]
    assert sm.Pipeline().read_text(one.parent / "caf?.txt").collect(memory="128 MiB") == [{"line": "1"}]
    sm.sort(tmp_path / "*.txt", tmp_path / "out", reverse=True)
    assert (tmp_path / "out").read_text() == "1\n0\n"


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,a,b\n1,2,3\n")
    job = sm.Pipeline()
    with pytest.raises(sm.UsageError, match="two columns have one name: a, a, b"):
        job.read_csv(tmp_path / "in.csv")
    with pytest.raises(sm.UsageError, match="there is no column c, only a, a, b"):
        job.read_csv(tmp_path / "in.csv", types={"c": int})
    with pytest.raises(sm.UsageError, match="without a header"):
        job.read_csv(tmp_path / "in.csv", header=False)
    with pytest.raises(sm.UsageError, match="types already"):
        job.read_csv(tmp_path / "in.csv", {"b": int}, types={"b": int})
    with pytest.raises(ValueError, match="a delimiter is one byte"):
        job.read_csv(tmp_path / "in.csv", {"b": int}, delimiter="::")
    assert job.read_csv(tmp_path / "in.csv", {"b": int}).collect() == [{"b": 3}]
    with pytest.raises(sm.UsageError, match="there is no column"):
        job.read_csv(tmp_path / "in.csv", {"c": int}).head()
    with pytest.raises(sm.InputError):
        job.read_csv(tmp_path / "none.csv")
    with pytest.raises(sm.UsageError, match="2 columns are called"):
        job.read_csv(tmp_path / "in.csv", {"a": int}).head()


def test_many_fixed_records(tmp_path: Path, draw: random.Random) -> None:
    # So many that a sample of them is drawn: what is mapped of it lies in another form than in the input.
    data = draw.randbytes(100 * 60_000)
    records = [data[at : at + 100] for at in range(0, len(data), 100)]
    (tmp_path / "in.bin").write_bytes(data)
    job = sm.Pipeline()
    job.read_fixed(tmp_path / "in.bin", 100).sort("key").write_fixed(tmp_path / "out.bin", 100)
    job.run(memory="64 MiB", temp=tmp_path)
    records.sort(key=lambda record: record[:10])
    assert (tmp_path / "out.bin").read_bytes() == b"".join(records)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        # Nobody looks into a pipe but who reads all of it.
        ("table.write_text('a'); job.explain(memory='128 MiB')", None),
        ("table.write_text('a'); table.write_jsonl('b')", "/dev/stdin is a pipe, which can be read once, and two outputs"),
        ("print(table.head(2)); table.write_text('a')", "what comes through a pipe can be read once, and it has been"),
        ("print(table.sort('n').collect(memory='128 MiB')[0]); table.sort('n').write_text('a')", "can be read once, and it has been"),
    ],
)
def test_a_pipe_is_read_once(tmp_path: Path, script: str, said: str | None) -> None:
    """What read it again found nothing, and said that it was proven."""
    program = f"""
import sortmill as sm
job = sm.Pipeline()
table = job.read_csv("/dev/stdin", {{"word": str, "n": int}})
{script}
print(job.run(memory="128 MiB"))
"""
    lines = [f"{number},word {number}" for number in range(50_000)]
    fed = "\n".join(["n,word", *lines, ""])
    done = subprocess.run([sys.executable, "-c", program], input=fed, capture_output=True, text=True, cwd=tmp_path)
    if said is None:
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "a").read_text().splitlines() == ["\t".join(reversed(line.split(","))) for line in lines]
    else:
        assert done.returncode == 1 and "UsageError" in done.stderr and said in done.stderr, done.stderr
        assert not list(tmp_path.iterdir())


def test_explain_looks_for_columns_in_files_beside_a_pipe(tmp_path: Path) -> None:
    """And leaves the pipe as it is, even if the files are empty."""
    program = """
import sys, sortmill as sm
job = sm.Pipeline()
job.read_csv(["/dev/stdin", *sys.argv[1:]], {"word": str, "n": int}).write_text("a")
job.explain(memory="128 MiB")
print(job.run(memory="128 MiB"))
"""
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "one.csv").write_text("n,word\n7,seven\n")
    for files, more in (["empty.csv"], []), (["empty.csv", "one.csv"], ["seven\t7"]):
        command = [sys.executable, "-c", program, *files]
        done = subprocess.run(command, input="n,word\n1,one\n", capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "a").read_text().splitlines() == ["one\t1", *more]


def test_json_lines_tell_their_columns(tmp_path: Path) -> None:
    lines = [{"name": f"n{at}", "count": at, "big": 2**63 + at, "price": at / 2 if at % 2 else at, "paid": at % 3 == 0} for at in range(9)]
    more: list[dict[str, Any]] = [{"late": "x", "tags": [1], "count": None}, *lines]
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in more).encode()))
    table = sm.Pipeline().read_jsonl(tmp_path / "in.jsonl.gz")
    wanted = {"late": "string?", "count": "i64?", "name": "string?", "big": "u64?", "price": "f64?", "paid": "bool?"}
    assert table.columns == wanted
    rows = [{name: line.get(name) for name in wanted} for line in more]
    assert table.collect(memory="128 MiB") == rows
    # What comes later may be missing, and must be of its type.
    (tmp_path / "long.jsonl").write_text('{"a":1}\n' * 200_000 + '{"b":1}\n')
    assert sm.Pipeline().read_jsonl(tmp_path / "long.jsonl").filter(sm.col("a").is_null()).collect(memory="128 MiB") == [{"a": None}]
    (tmp_path / "long.jsonl").write_text('{"a":1}\n' * 200_000 + '{"a":"1"}\n')
    with pytest.raises(sm.InputError):
        sm.Pipeline().read_jsonl(tmp_path / "long.jsonl").collect(memory="128 MiB")
    (tmp_path / "bad.jsonl").write_text('{"a":1}\n{"a":"x"}\n')
    with pytest.raises(sm.UsageError, match="a is of type i64 in some objects and string in others"):
        sm.Pipeline().read_jsonl(tmp_path / "bad.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"a":1}\n[2]\n')
    with pytest.raises(sm.InputError, match="a JSON object") as raised:
        sm.Pipeline().read_jsonl(tmp_path / "bad.jsonl")
    assert (raised.value.file, raised.value.offset) == (str(tmp_path / "bad.jsonl"), 8)
    (tmp_path / "bad.jsonl").write_text("\n\n")
    with pytest.raises(sm.InputError, match="no object names a column"):
        sm.Pipeline().read_jsonl(tmp_path / "bad.jsonl")


@pytest.mark.parametrize(
    "line, wanted",
    [
        ('{"a": "x", "b": "y", "a": 5}', None),
        ('{"b": 7, "a": "x", "b": "y", "a": 5}', None),
        ('{"a": "x", "b": "y", "b": 1, "a": 5}', {"a": 5, "b": 1}),
        ('{"a": 1, "b": 2, "a": "x"}', None),
    ],
)
@pytest.mark.parametrize("optional", [False, True])
def test_the_last_member_of_a_name_counts_whatever_others_were(tmp_path: Path, line: str, wanted: Any, optional: bool) -> None:
    """A good one put right what was wrong with a member of another name: a value came out that no member has last."""
    path = tmp_path / "in.jsonl"
    path.write_text(line + "\n")
    columns: dict[str, sm.ColumnType] = {"a": int, "b": int | None if optional else int}
    table = sm.Pipeline().read_jsonl(path, columns)
    if wanted is not None:
        assert table.collect() == [wanted]
        return
    with pytest.raises(sm.InputError, match="is a string, and not of type"):
        table.collect()


def test_lines_that_are_longer_than_chunks_are_mapped_where_there_is_memory(tmp_path: Path) -> None:
    """Whatever the memory, a worker had room for 32 MiB, and a longer line ended the job."""
    lines = [b"b" * (40 << 20), b"a"]
    (tmp_path / "in.txt").write_bytes(b"".join(line + b"\n" for line in lines))
    table = sm.Pipeline().read_text(tmp_path / "in.txt").sort("line")
    assert [len(record["line"]) for record in table.collect(memory="4 GiB", threads=2)] == [1, 40 << 20]
