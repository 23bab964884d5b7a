"""Files of which a column tells: a partition function of one's own."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sortmill as sm

Row = tuple[int, int, str]


def rows_of(draw: random.Random, count: int) -> list[Row]:
    """Numbers of files, of which one has almost all and some have none, times, and text."""
    return [(draw.choice([0, 2, 2, 2, 2, 2, 6]), draw.randrange(50), f"text {draw.randrange(10**6)}") for _ in range(count)]


def made(path: Path, files: int) -> list[list[list[str]]]:
    names = [f"part-{number:05}.csv" for number in range(files)]
    assert sorted(file.name for file in path.iterdir()) == ["manifest.json", *names]
    lines = [(path / name).read_text().splitlines() for name in names]
    assert all(of[0] == "time,text" for of in lines)
    return [[line.split(",") for line in of[1:]] for of in lines]


def wanted(rows: list[Row], files: int) -> list[list[list[str]]]:
    by: defaultdict[int, list[list[str]]] = defaultdict(list)
    for part, time, text in rows:
        by[part].append([str(time), text])
    return [by[number] for number in range(files)]


@pytest.mark.parametrize("memory", ["48 MiB", "256 MiB"])
def test_records_go_where_the_column_says(tmp_path: Path, draw: random.Random, memory: str) -> None:
    rows = rows_of(draw, 400_000)
    job = sm.Pipeline()
    table = job.from_iter(rows, {"part": int, "time": int, "text": str})
    table.write_csv(tmp_path / "as they come", files=8, partition="part")
    table.sort(["part", "time"]).write_csv(tmp_path / "in order", files=8, partition="part")
    table.sort("time").write_csv(tmp_path / "sorted before", files=8, partition="part")
    job.run(memory=memory, threads=2)
    assert made(tmp_path / "as they come", 8) == wanted(rows, 8)
    by_time = wanted(sorted(rows, key=lambda row: row[1]), 8)
    assert made(tmp_path / "in order", 8) == by_time
    assert made(tmp_path / "sorted before", 8) == by_time
    parts = json.loads((tmp_path / "in order" / "manifest.json").read_text())["parts"]
    assert [part["fingerprint"]["records"] for part in parts] == [len(of) for of in by_time]


def test_a_function_of_ones_own(tmp_path: Path, draw: random.Random) -> None:
    """What chooses the file is a function of batches; text of any language would do."""
    (tmp_path / "in.txt").write_text("".join(f"{draw.randrange(10**9)}\n" for _ in range(20_000)))

    def choose(record: dict[str, Any]) -> dict[str, Any]:
        return {"file": sum(map(int, record["line"])) % 3, **record}

    job = sm.Pipeline()
    chosen = job.read_text(tmp_path / "in.txt").map(choose, {"file": int, "line": str})
    chosen.write_arrow(tmp_path / "out", files=3, partition="file")
    job.run(memory="128 MiB")
    lines = (tmp_path / "in.txt").read_text().split()
    for number in range(3):
        with pa.ipc.open_stream(tmp_path / "out" / f"part-{number:05}.arrows") as reader:
            found = reader.read_all()
        assert found.column_names == ["line"]
        assert found["line"].to_pylist() == [line for line in lines if sum(map(int, line)) % 3 == number]


def test_compressed_and_by_an_expression(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n\n" + "".join(f"{number}\n" for number in range(10_000)))
    job = sm.Pipeline()
    table = job.read_csv(tmp_path / "in.csv", columns={"n": int})
    parted = table.with_columns(last=sm.col("n") % 10)
    parted.write_text(tmp_path / "out", files=10, partition="last", compression="gzip")
    job.run(memory="128 MiB")
    for number in range(10):
        text = gzip.decompress((tmp_path / "out" / f"part-{number:05}.txt.gz").read_bytes())
        assert text.split() == [str(other).encode() for other in range(number, 10_000, 10)]


def test_empty_files_and_those_of_other_forms(tmp_path: Path, draw: random.Random) -> None:
    rows = [(draw.choice([1, 4]), draw.randbytes(4), draw.randbytes(3)) for _ in range(60_000)]
    table = (job := sm.Pipeline()).from_iter(rows, {"part": int, "key": bytes, "value": bytes})
    table.write_arrow(tmp_path / "arrow", files=6, partition="part", compression="zstd")
    table.write_fixed(tmp_path / "fixed", 7, key=(0, 4), files=6, partition="part")
    table.write_kv(tmp_path / "kv", files=6, partition="part")
    job.run(memory="128 MiB", threads=2)
    for number in range(6):
        wanted = [row[1:] for row in rows if row[0] == number]
        with pa.input_stream(tmp_path / "arrow" / f"part-{number:05}.arrows.zst", compression="zstd") as file:
            found = pa.ipc.open_stream(file).read_all()
        assert list(zip(found["key"].to_pylist(), found["value"].to_pylist())) == wanted
        assert (tmp_path / "fixed" / f"part-{number:05}.bin").read_bytes() == b"".join(key + value for key, value in wanted)
        pairs = b"".join(b"\4\0\0\0\3\0\0\0" + key + value for key, value in wanted)
        assert (tmp_path / "kv" / f"part-{number:05}.kv").read_bytes() == pairs

    job = sm.Pipeline()
    again = job.from_iter(rows, {"part": int, "key": bytes, "value": bytes})
    again.write_kv(tmp_path / "kv", files=6, partition="part", mode="error")
    with pytest.raises(sm.UsageError, match="has this name already"):
        job.run(memory="128 MiB")


@pytest.mark.parametrize(("value", "told"), [(3, "column part has 3, where files are 0 to 2"), (-1, "column part has -1"), (None, "column part has no number")])
def test_a_file_that_there_is_not(tmp_path: Path, value: int | None, told: str) -> None:
    rows = [(0, "a"), (2, "b"), (value, "c")]
    job = sm.Pipeline()
    table = job.from_iter(rows, {"part": int | None, "text": str})
    table.write_csv(tmp_path / "out", files=3, partition="part")
    with pytest.raises(sm.InputError, match=told):
        job.run(memory="64 MiB")
    assert not (tmp_path / "out").exists()


def test_what_is_refused(tmp_path: Path) -> None:
    table = sm.Pipeline().from_iter([(1, "a")], {"part": int, "text": str})
    for partition, files, told in (
        ("part", None, "say how many"),
        ("other", 2, "no column other"),
        ("text", 2, "whole numbers"),
        ("part", 0, "files"),
    ):
        with pytest.raises(sm.UsageError, match=told):
            table.write_csv(tmp_path / "out", files=files, partition=partition)
    wrong: Any = sm.col("part")
    with pytest.raises(sm.UsageError, match="partition is the name of a column"):
        table.write_csv(tmp_path / "out", files=2, partition=wrong)
    with pytest.raises(sm.UsageError, match="no other column"):
        table.select("part").write_csv(tmp_path / "out", files=2, partition="part")
    assert not list(tmp_path.iterdir())
