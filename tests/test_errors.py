"""Errors as Python has them: what they tell, as words and as data, and in whose words."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sortmill as sm


def raised(kind: type[sm.Error], ask: Callable[[], Any]) -> Any:
    with pytest.raises(kind) as told:
        ask()
    return told.value


def test_text_holds_no_tabs_and_newlines_in_values(tmp_path: Path) -> None:
    # They were written as they are, and read back as other records.
    def written(records: list[Any], columns: dict[str, Any]) -> str:
        job = sm.Pipeline()
        job.from_iter(records, columns).write_text(tmp_path / "out")
        job.run(memory="128 MiB")
        return (tmp_path / "out").read_text()

    both = {"a": str, "b": str}
    cause = raised(sm.InputError, lambda: written([("x", "y"), ("a\tb", "c\nd")], both)).cause
    assert cause.startswith('column a has a tab in "a\\tb", which ends values in text')
    error = raised(sm.InputError, lambda: written([("x", "c\nd")], both))
    assert error.cause.startswith('column b has a newline in "c\\nd"') and "CSV and JSON lines" in error.hint
    assert "column a has a newline" in raised(sm.InputError, lambda: written([b"b\n"], {"a": bytes})).cause
    assert not (tmp_path / "out").exists()
    # A line is one value, whatever tabs it has, and so is what is behind the values in front of it, as grep has it.
    assert written([("f", "a\tb"), ("g", "")], both) == "f\ta\tb\ng\t\n"
    assert written(["a\tb", "c"], {"a": str}) == "a\tb\nc\n"
    # The place in the file is told.
    (tmp_path / "in.csv").write_text('a,b\n1,2\n3,"4\n5"\n')
    job = sm.Pipeline()
    job.read_csv(tmp_path / "in.csv").write_text(tmp_path / "out")
    error = raised(sm.InputError, lambda: job.run(memory="128 MiB"))
    assert (error.file, error.offset) == (str(tmp_path / "in.csv"), 8)
    # Behind what brings records together, too.
    job = sm.Pipeline()
    job.read_csv(tmp_path / "in.csv").sort("a").write_text(tmp_path / "out")
    assert "column b has a newline" in raised(sm.InputError, lambda: job.run(memory="128 MiB")).cause


def test_kept_rows_are_pasted_as_what_they_were(tmp_path: Path) -> None:
    # Other types were read as garbage, and a column too few left the next ones out.
    job = sm.Pipeline()
    table = job.from_iter([(n % 3, n) for n in range(30)], {"g": int, "n": int})
    table.group_by("g").agg(n=sm.count(), most=sm.max("n"), least=sm.min("n")).write_rows(tmp_path / "kept")
    job.run(memory="128 MiB")

    def pasted(columns: dict[str, Any], name: str = "kept") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = sm.Pipeline().paste((tmp_path / name, columns)).collect(memory="128 MiB")
        return sorted(found, key=lambda record: list(record.values()))

    wanted = [(0, 10, 27, 0), (1, 10, 28, 1), (2, 10, 29, 2)]
    kinds = {"g": int, "n": "u64", "most": int, "least": int}
    assert pasted(kinds) == [dict(zip(kinds, values)) for values in wanted]
    others = {"h": int, "count": "u64", "x": int, "y": int}
    assert pasted(others) == [dict(zip(others, values)) for values in wanted]
    wrongs: list[dict[str, Any]] = [
        {"g": int, "n": int, "most": int, "least": int},
        {"g": int, "n": "u64", "most": float, "least": int},
        {"g": int, "n": "u64", "most": int | None, "least": int},
        {"g": int, "n": "u64", "most": int},
        {**kinds, "more": int},
        # The same types, and the names of others.
        {"g": int, "n": "u64", "least": int, "most": int},
    ]
    for wrong in wrongs:
        error = raised(sm.UsageError, lambda: pasted(wrong))
        assert "it was written with the columns g i64, n u64, most i64, least i64, and" in error.cause
        assert error.file == str(tmp_path / "kept")
    (tmp_path / "other").write_text("x" * 5000)
    assert "no rows as this version writes" in raised(sm.InputError, lambda: pasted({"g": int}, "other")).cause
    (tmp_path / "empty").write_text("")
    assert "no rows as this version writes" in raised(sm.InputError, lambda: pasted({"g": int}, "empty")).cause


def test_missing_room_is_told_as_data(tmp_path: Path) -> None:
    """Of a file with a hole, far larger than any disk here."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(10**13)
    free = shutil.disk_usage(tmp_path).free
    error = raised(sm.SpaceError, lambda: sm.sort(tmp_path / "large", tmp_path / "out", format="fixed:100", memory="64 MiB"))
    assert error.needed_bytes >= 10**13
    assert abs(error.needed_bytes - free - error.missing_bytes) < 10**11
    assert "are missing" in error.cause and "--" not in str(error)


def test_a_disk_that_fills_up(tmp_path: Path, draw: random.Random) -> None:
    """On a file system of 30 MiB, where one can be made."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "none", small], stderr=subprocess.DEVNULL)
    if mounted.returncode != 0:
        pytest.skip("mounting needs more rights")
    try:
        with (tmp_path / "in").open("w") as file:
            file.writelines(f"{draw.getrandbits(60)} {'x' * 80}\n" for _ in range(1_500_000))
        job = sm.Pipeline()
        job.read_text(tmp_path / "in").sort("line").write_text(tmp_path / "out")
        error = raised(sm.SpaceError, lambda: job.run(memory="80 MiB", temp=small))
        # It cannot have taken more than there was; it said so of all that the plan foresaw.
        taken = [float(word) for word in str(error).replace(" MiB", "").split() if word.replace(".", "").isdigit()]
        assert "Temporary files" in error.hint and "temp=" in error.hint and "--" not in error.hint
        assert taken and error.missing_bytes is not None
        assert error.needed_bytes - error.missing_bytes <= 30 << 20
        assert min(taken) <= 30
    finally:
        subprocess.run(["umount", small], check=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("processes", [0, 1])
def test_a_byte_that_is_no_text_has_a_way_out(tmp_path: Path, processes: int) -> None:
    """What the hint says is done, and then it goes."""
    lines = [b"one", b"caf\xe9", "zw\xf6lf".encode()]
    (tmp_path / "in").write_bytes(b"\n".join(lines) + b"\n")
    source = sm.Pipeline().read_text(tmp_path / "in")
    named = source.with_columns(**{"a line": sm.col("line")}).select("a line")

    def written(table: sm.Table, name: str) -> bytes:
        getattr(table, f"write_{name}")(tmp_path / "out").run(memory="128 MiB", processes=processes)
        return (tmp_path / "out").read_bytes()

    def same(record: dict[str, Any]) -> Any:
        return record

    def lengths(key: Any, records: Any) -> Any:
        return [len(list(records)) + len(key)]

    kind: dict[str, Any] = {"line": bytes}
    how: dict[str, Any] = {"memory": "128 MiB", "processes": processes}
    takes: list[tuple[sm.Table, Callable[[sm.Table, Any], Any]]] = [
        (source, lambda table, kind: table.map(same, kind).collect(**how)),
        (source, lambda table, kind: table.filter(same).write_text(tmp_path / "out").run(**how)),
        (source, lambda table, kind: table.map_batches(lambda batch: batch, kind).collect(**how)),
        (source, lambda table, kind: table.map_command(["cat"], columns=kind, batch_format="arrow").collect(**how)),
        (source, lambda table, kind: table.group_by("line").apply(lengths, columns={"n": int}).collect(**how)),
        (source, lambda table, kind: table.sort("line").collect(**how)),
        (source, lambda table, kind: table.head(3)),
        (named, lambda table, kind: next(table.iter_batches(**how))),
        (source, lambda table, kind: written(table, "arrow")),
    ]
    for table, take in takes:
        error = raised(sm.InputError, lambda: take(table, {"line": str}))
        assert "not UTF-8" in error.cause and str(error).endswith(error.hint), error
        call = re.fullmatch(r"As bytes it is taken as it is: (with_columns\(.*\)), in Rust .* in front\.", error.hint)
        assert call is not None
        take(eval(f"table.{call[1]}", {"table": table, "sm": sm}), kind)
    with pytest.raises(Exception, match="not UTF-8") as told:
        pa.table(source)
    assert 'with_columns(line=sm.col("line").cast(bytes))' in str(told.value)
    as_bytes = source.with_columns(line=sm.col("line").cast(bytes))
    assert pa.table(as_bytes)["line"].to_pylist() == lines

    # JSON holds no bytes: other forms do, or a function makes text of them.
    error = raised(sm.InputError, lambda: written(source, "jsonl"))
    assert 'with_columns(line=sm.col("line").cast(bytes)), in Rust' in error.hint and str(error).endswith(error.hint)
    assert written(source, "text") == b"\n".join(lines) + b"\n"
    assert written(source, "csv") == b"line\n" + b"\n".join(lines) + b"\n"
    decoded = as_bytes.map(lambda record: record["line"].decode(errors="replace"), {"line": str})
    texts = [json.loads(line)["line"] for line in written(decoded, "jsonl").decode().splitlines()]
    assert texts == [line.decode(errors="replace") for line in lines]


def test_hints_name_what_python_has(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{number}\n" for number in range(100_000)))
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\nnonsense\n')
    job = sm.Pipeline()
    job.read_text(tmp_path / "in").sort("line").write_text(tmp_path / "out")
    for run in [lambda: job.run(memory="1 MiB"), lambda: sm.sort(tmp_path / "in", tmp_path / "out", memory="1 MiB")]:
        error = raised(sm.MemoryLimitError, run)
        assert error.hint == "Give it more with memory=." and str(error).endswith("\n\nGive it more with memory=.")
    # Bad records of columns may be left out by a pipeline, and not by `sort`.
    table = sm.Pipeline().read_jsonl(tmp_path / "bad.jsonl", {"a": int})
    error = raised(sm.InputError, lambda: table.sort("a").collect(memory="128 MiB"))
    assert error.hint == "To leave out bad records and count them, give skip_bad=N." and "--" not in str(error)
    error = raised(sm.InputError, lambda: sm.sort(tmp_path / "bad.jsonl", tmp_path / "out", format="jsonl", by="a:num", memory="128 MiB"))
    assert "--" not in str(error) and "skip" not in str(error)
    # Those that are cut off.
    (tmp_path / "cut").write_bytes(b"x" * 250)
    error = raised(sm.InputError, lambda: sm.sort(tmp_path / "cut", tmp_path / "out", format="fixed:100"))
    assert error.hint == "To leave out bad records and count them, give skip_bad=N."
    error = raised(sm.InputError, lambda: sm.Pipeline().read_fixed(tmp_path / "cut", 100).collect(memory="128 MiB"))
    # It had none, and pipelines no way past such a record.
    assert error.hint == "To leave out bad records and count them, give skip_bad=N." and "--" not in str(error)
    # A name that begins as a compressed file does.
    (tmp_path / "seems.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"x" * 100)
    error = raised(sm.InputError, lambda: sm.sort(tmp_path / "seems.gz", tmp_path / "out"))
    assert "no_decompress=True" in error.hint and "--" not in str(error)
    error = raised(sm.InputError, lambda: sm.Pipeline().read_text(tmp_path / "seems.gz").collect(memory="128 MiB"))
    assert error.hint is None or "--" not in error.hint
    assert "nonsense=" in raised(sm.UsageError, lambda: sm.sort(tmp_path / "in", tmp_path / "out", nonsense=True)).cause
