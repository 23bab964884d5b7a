"""Bad records that are left out, held against lists that know which they are."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm

TYPES: dict[str, Any] = {"name": str, "n": int, "x": float | None}


@dataclass
class Written:
    """Files of records of which some are bad: the good ones, and where the others lie, as path, offset and line."""

    good: list[dict[str, Any]] = field(default_factory=list)
    bad: list[tuple[str, int, int]] = field(default_factory=list)

    def add(self, path: Path, lines: list[tuple[str, dict[str, Any] | None]], head: str = "") -> None:
        text = head
        for line, record in lines:
            if record is None:
                self.bad.append((str(path), len(text.encode()), text.count("\n") + 1))
            else:
                self.good.append(record)
            text += line + "\n"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def csv_lines(draw: random.Random, count: int, bad: int) -> list[tuple[str, dict[str, Any] | None]]:
    lines: list[tuple[str, dict[str, Any] | None]] = []
    for number in range(count):
        name = draw.choice(["a", "ä,b", "c\nd\n", "", 'say "so"', "plain"]) + str(draw.randrange(50))
        x = draw.choice([None, 0.5, -3.25])
        lines.append((f'"{name.replace(chr(34), chr(34) * 2)}",{number},{"" if x is None else x}', {"name": name, "n": number, "x": x}))
    for _ in range(bad):
        line = draw.choice(["short,1", "long,1,2,3", "x,none,1", "x,1.5,1", "x,,1", "x,1,y", f"x,{2**63},1", ",,,,,,,", "x"])
        lines.insert(draw.randrange(len(lines) + 1), (line, None))
    return lines


def json_lines(draw: random.Random, count: int, bad: int) -> list[tuple[str, dict[str, Any] | None]]:
    lines: list[tuple[str, dict[str, Any] | None]] = []
    for number in range(count):
        record = {"name": draw.choice(["a", "ä\n", '"']), "n": number, "x": draw.choice([None, 0.5])}
        lines.append((json.dumps(record, ensure_ascii=draw.random() < 0.5), record))
    for _ in range(bad):
        line = draw.choice(['{"name": "x", "n": "1"}', "[1]", '{"name": "x", "n": 1', "nonsense", '{"n": 1}', '{"name": 1, "n": 1}', "{"])
        lines.insert(draw.randrange(len(lines) + 1), (line, None))
    return lines


def lies_in(at: int, offset: int) -> bool:
    """Whether a byte lies in the bad record that begins at another one: of JSON the place is told where it is none any more."""
    return offset <= at <= offset + 30


def by_number(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=lambda record: (record["n"], record["name"]))


def left_out(report: sm.Report | None) -> tuple[int, list[str]]:
    assert report is not None
    told = report.phases[0]["report"]
    return told["skipped_records"], told["skipped_first"]


Read = Callable[[int], sm.Table]


def written(folder: Path, draw: random.Random, form: str) -> tuple[Read, Written]:
    """Three files, one of them compressed, and what reads them."""
    of = Written()
    for name in ["a", "b", "c"]:
        count, bad = draw.randrange(1, 3000), draw.randrange(12)
        path = folder / f"{name}.{form}{'.gz' if name == 'b' else ''}"
        if form == "csv":
            of.add(path, csv_lines(draw, count, bad), "name,n,x\n")
        else:
            of.add(path, json_lines(draw, count, bad))
    pattern = folder / f"*.{form}*"
    if form == "csv":
        return lambda skip_bad: sm.Pipeline().read_csv(pattern, TYPES, skip_bad=skip_bad), of
    return lambda skip_bad: sm.Pipeline().read_jsonl(pattern, TYPES, skip_bad=skip_bad), of


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_as_many_as_may_be_left_out(tmp_path: Path, draw: random.Random, form: str) -> None:
    read, of = written(tmp_path, draw, form)
    count = len(of.bad)
    for skip_bad in {count, count + 7}:
        table = read(skip_bad)
        # As they come, brought together, and in any threads: the same ones, and each run counts for itself.
        assert table.collect(memory="128 MiB") == of.good
        assert by_number(table.sort("n").collect(memory="128 MiB", threads=1)) == by_number(of.good)
        groups = table.group_by("name").agg(n=sm.count(), sum=sm.sum("n"))
        assert sum(one["n"] for one in groups.collect(memory="128 MiB")) == len(of.good)
        for ran in [table, groups]:
            found, first = left_out(ran.report)
            assert found == count and len(first) == count
            for told, (path, offset, line) in zip(first, of.bad):
                at = re.match(re.escape(path) + r": at byte (\d+): ", told)
                assert at is not None and lies_in(int(at[1]), offset) and f"line {line}: " in told
        assert table.report is not None and table.report.records_in == len(of.good)
        told = str(table.report)
        assert (f"left out {count} bad records\n" in told) == (count > 0)
        assert all(f"line {line}: " in told for _, _, line in of.bad)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_one_more_ends_the_job(tmp_path: Path, draw: random.Random, form: str) -> None:
    read, of = written(tmp_path, draw, form)
    for skip_bad in range(len(of.bad)):
        table = read(skip_bad)
        for make in [table.collect, table.sort("n").collect]:
            with pytest.raises(sm.InputError, match="line ") as refused:
                make(memory="128 MiB")
            error = refused.value
            assert error.hint is not None and "skip_bad=N" in error.hint and "--" not in str(error)
            assert error.offset is not None
            assert any(error.file == path and lies_in(error.offset, offset) for path, offset, _ in of.bad)


def test_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n,text\nx,1\n1,a\n2\n2,b\n3,c\n" + "".join(f"{number},d\n" for number in range(4, 5000)) + "y,z\n")

    def read(skip_bad: int) -> sm.Table:
        return sm.Pipeline().read_csv(tmp_path / "in.csv", {"n": int}, skip_bad=skip_bad)

    wanted = [{"n": number} for number in range(1, 5000)]
    assert read(2).head(3) == wanted[:3]
    assert read(3).head(5000) == wanted
    # The third lies behind what is looked at.
    with pytest.warns(sm.SampleWarning):
        assert read(2).sort("n", descending=True).head(1, sample="4 KiB")[0]["n"] < 5000
    with pytest.raises(sm.InputError, match="line 4: it has 1 column, and the header has 2(?s:.*)skip_bad=N"):
        read(1).head(3)
    with pytest.raises(sm.InputError, match="line 2: column n: \"x\"(?s:.*)skip_bad=N"):
        read(0).head(3)
    with pytest.raises(sm.InputError, match="line 5003: column n: \"y\""):
        read(2).head(5000)
    # Columns are those of the lines that are objects.
    (tmp_path / "in.jsonl").write_text('nonsense\n{"n": 1}\n{"n": \n{"n": 2, "t": "x"}\n')
    table = sm.Pipeline().read_jsonl(tmp_path / "in.jsonl", skip_bad=2)
    assert table.columns == {"n": "i64?", "t": "string?"}
    assert table.collect() == table.head(5) == [{"n": 1, "t": None}, {"n": 2, "t": "x"}]
    with pytest.raises(sm.InputError, match="line 3(?s:.*)skip_bad=N"):
        sm.Pipeline().read_jsonl(tmp_path / "in.jsonl", skip_bad=1)


def test_a_quote_out_of_place(tmp_path: Path) -> None:
    """All that it takes in looks like one record: it counts by lines, so that a file is not lost as one record."""
    lines = [f'{number},"text {number}"' for number in range(1000)]
    lines[10] = '10,5" pipe'
    lines[11] = '11,"x"'
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")

    def read(skip_bad: int) -> sm.Table:
        return sm.Pipeline().read_csv(tmp_path / "in.csv", {"n": int, "t": str}, header=False, skip_bad=skip_bad)

    with pytest.raises(sm.InputError, match="(?s)line 11: a quote stands within a value.*quote=None"):
        read(900).collect(memory="128 MiB")
    table = read(990)
    assert [record["n"] for record in table.collect(memory="128 MiB")] == list(range(10))
    assert left_out(table.report)[0] == 990
    assert table.head(20) == table.collect(memory="128 MiB")
    # A value between quotes with lines of its own, in a record that is bad for another reason, is one.
    (tmp_path / "in.csv").write_text('1,"a\nb"\nx,"c\nd\ne"\n3,"f"\n')
    assert [record["n"] for record in read(1).collect(memory="128 MiB")] == [1, 3]
    # Where quotes are bytes as any other the lines are records.
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    plain = sm.Pipeline().read_csv(tmp_path / "in.csv", {"n": int, "t": str}, header=False, quote=None, skip_bad=1)
    assert len(plain.collect(memory="128 MiB")) == 1000


def test_what_is_cut_off_or_too_long(tmp_path: Path) -> None:
    for name in ["a", "b"]:
        (tmp_path / f"{name}.fixed").write_bytes(name.encode() * 250)
        pair = (1).to_bytes(4, "little") + (2).to_bytes(4, "little") + name.encode() * 3
        (tmp_path / f"{name}.kv").write_bytes(pair * 7 + pair[:9])
    tables: list[tuple[Callable[[int], sm.Table], int]] = [
        (lambda skip_bad: sm.Pipeline().read_fixed(tmp_path / "?.fixed", 100, skip_bad=skip_bad), 4),
        (lambda skip_bad: sm.Pipeline().read_kv(tmp_path / "?.kv", skip_bad=skip_bad), 14),
    ]
    for read, count in tables:
        table = read(2)
        assert len(table.collect(memory="128 MiB")) == len(table.head(100)) == count
        found, first = left_out(table.report)
        assert found == 2 and all("cut off" in told for told in first)
        with pytest.raises(sm.InputError, match="cut off(?s:.*)skip_bad=N"):
            read(1).sort("key").collect(memory="128 MiB")
        with pytest.raises(sm.InputError, match="cut off(?s:.*)skip_bad=N"):
            read(1).head(100)
    with (tmp_path / "in.txt").open("w") as file:
        file.write("first\n" + "x" * (40 << 20) + "\nlast\n")
    lines = sm.Pipeline().read_text(tmp_path / "in.txt", skip_bad=1)
    assert [record["line"] for record in lines.sort("line").collect(memory="48 MiB")] == ["first", "last"]
    with pytest.raises(sm.InputError, match="longer(?s:.*)skip_bad=N"):
        sm.Pipeline().read_text(tmp_path / "in.txt").sort("line").collect(memory="48 MiB")


def test_several_outputs_count_for_themselves(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n\n1\nx\n2\n")
    job = sm.Pipeline()
    table = job.read_csv(tmp_path / "in.csv", {"n": int}, line_number="line", skip_bad=1)
    table.write_csv(tmp_path / "a.csv")
    table.sort("n", descending=True).write_csv(tmp_path / "b.csv")
    report = job.run(memory="128 MiB")
    assert [phase["report"]["skipped_records"] for phase in report.phases] == [1, 1]
    assert (tmp_path / "a.csv").read_text() == "n,line\n1,2\n2,4\n"
    assert (tmp_path / "b.csv").read_text() == "n,line\n2,4\n1,2\n"


def test_errors_of_others_are_no_bad_records(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n\n1\nx\n2\n")
    table = sm.Pipeline().read_csv(tmp_path / "in.csv", {"n": int}, skip_bad=10)
    for processes in (0, 1):
        with pytest.raises(sm.FunctionError, match="ZeroDivisionError"):
            table.map(lambda record: {"n": 1 // (record["n"] - 1)}, {"n": int}).collect(memory="128 MiB", processes=processes)
        found = table.map(lambda record: {"n": record["n"] + 1}, {"n": int}).collect(memory="128 MiB", processes=processes)
        assert found == [{"n": 2}, {"n": 3}]
    with pytest.raises(sm.InputError):
        table.with_columns(m=sm.col("n") // 0).collect(memory="128 MiB")
    wrong: Any
    for wrong in [-1, "all", True, 1.5]:
        with pytest.raises(sm.UsageError, match="skip_bad is"):
            sm.Pipeline().read_csv(tmp_path / "in.csv", {"n": int}, skip_bad=wrong)
        with pytest.raises(sm.UsageError, match="skip_bad is"):
            sm.Pipeline().read_jsonl(tmp_path / "in.csv", skip_bad=wrong)
