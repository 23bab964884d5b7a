"""Outputs that are streams of Arrow batches, read by the libraries that know them."""

from __future__ import annotations

import hashlib
import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import sortmill as sm

BEGIN = datetime(2001, 2, 3, tzinfo=timezone.utc)


def read(path: Path, compression: str | None = None) -> pa.Table:
    with pa.input_stream(path, compression=compression) as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def table_of(draw: random.Random, count: int) -> pa.Table:
    """Values of every type, of which some are missing, with a number of their own."""

    def some(value: Any) -> Any:
        return None if draw.random() < 0.1 else value

    def text() -> str:
        return "ä" * draw.choice([0, 1, 2, 300])

    columns: dict[str, pa.Array] = {
        "number": pa.array(draw.sample(range(10 * count), count), pa.int64()),
        "text": pa.array([some(text()) for _ in range(count)], pa.string()),
        "raw": pa.array([some(draw.randbytes(draw.randrange(6))) for _ in range(count)], pa.binary()),
        "big": pa.array([some(draw.randrange(2**64)) for _ in range(count)], pa.uint64()),
        "real": pa.array([some(draw.uniform(-1, 1)) for _ in range(count)], pa.float64()),
        "is_so": pa.array([some(draw.random() < 0.5) for _ in range(count)], pa.bool_()),
        "time": pa.array([some(BEGIN + timedelta(microseconds=draw.randrange(10**15))) for _ in range(count)], pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


@pytest.mark.parametrize("memory", ["48 MiB", "1 GiB"])
def test_every_type_comes_back(tmp_path: Path, draw: random.Random, memory: str) -> None:
    whole = table_of(draw, 60_000)
    job = sm.Pipeline()
    job.from_arrow(whole).sort("number", descending=True).write_arrow(tmp_path / "out.arrows")
    job.run(memory=memory, threads=2)
    made = read(tmp_path / "out.arrows")
    wanted = whole.sort_by([("number", "descending")])
    assert made.schema == wanted.schema
    assert made.equals(wanted)
    assert pl.read_ipc_stream(tmp_path / "out.arrows").equals(pl.DataFrame(wanted))


def test_the_bytes_do_not_depend_on_memory(tmp_path: Path, draw: random.Random) -> None:
    """Batches are cut by the records alone: not where partitions end, which follow from the memory and from a sample."""
    whole = table_of(draw, 100_000)
    made = set()
    for memory, threads in (("56 MiB", 1), ("56 MiB", 1), ("96 MiB", 2), ("1 GiB", 2)):
        for name in ("sorted", "grouped"):
            job = sm.Pipeline()
            table = job.from_arrow(whole)
            brought = table.sort(["text", "number"]) if name == "sorted" else table.group_by("number").agg(n=sm.count())
            brought.write_arrow(tmp_path / name)
            job.run(memory=memory, threads=threads)
            made.add((name, hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()))
    assert len(made) == 2


def test_records_longer_than_a_batch(tmp_path: Path, draw: random.Random) -> None:
    """And many columns, most of which have no value."""
    lines = ["x" * draw.choice([0, 5, 700_000]) + str(number) for number in range(60)]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    job = sm.Pipeline()
    job.read_text(tmp_path / "in.txt").sort("line").write_arrow(tmp_path / "out.arrows")
    job.run(memory="128 MiB")
    assert read(tmp_path / "out.arrows")["line"].to_pylist() == sorted(lines)

    columns = [f"c{number}" for number in range(300)]
    rows = [{name: number for name in draw.sample(columns, 3)} for number in range(2000)]
    wide = pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.int64()) for name in columns]))
    job = sm.Pipeline()
    job.from_arrow(wide).write_arrow(tmp_path / "wide.arrows")
    job.run(memory="128 MiB")
    assert read(tmp_path / "wide.arrows").equals(wide)


def test_what_is_only_mapped(tmp_path: Path) -> None:
    """Records that nothing brings together are written in the order of the input."""
    lines = [f"line {number}" for number in range(200_000)]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    job = sm.Pipeline()
    job.read_text(tmp_path / "in.txt").filter(sm.col("line") != "line 7").write_arrow(tmp_path / "out.arrows")
    job.run(memory="64 MiB")
    assert read(tmp_path / "out.arrows")["line"].to_pylist() == [line for line in lines if line != "line 7"]


def test_groups(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 20_000)
    job = sm.Pipeline()
    groups = job.from_arrow(whole).group_by("text").agg(n=sm.count(), most=sm.max("number"))
    groups.write_arrow(tmp_path / "out.arrows")
    job.run(memory="64 MiB")
    wanted = whole.group_by("text").aggregate([([], "count_all"), ("number", "max")]).to_pylist()
    found = read(tmp_path / "out.arrows").to_pylist()
    assert {(row["text"], row["n"], row["most"]) for row in found} == {
        (row["text"], row["count_all"], row["number_max"]) for row in wanted
    }


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_several_files(tmp_path: Path, draw: random.Random, compression: Any) -> None:
    whole = table_of(draw, 30_001)
    job = sm.Pipeline()
    job.from_arrow(whole).shuffle(seed=3).write_arrow(tmp_path / "out", files=4, compression=compression)
    job.run(memory="128 MiB", threads=2)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    end = ".arrows.zst" if compression else ".arrows"
    names = [f"part-{number:05}{end}" for number in range(4)]
    assert [part["name"] for part in manifest["parts"]] == names
    assert [part["stored_bytes"] for part in manifest["parts"]] == [(tmp_path / "out" / name).stat().st_size for name in names]
    parts = [read(tmp_path / "out" / name, compression) for name in names]
    assert [part.num_rows for part in parts] == [7500, 7500, 7500, 7501]
    assert pa.concat_tables(parts).sort_by("number").equals(whole.sort_by("number"))


def test_no_records(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    for files in (None, 2):
        job = sm.Pipeline()
        none = job.read_text(tmp_path / "in.txt").filter(sm.col("line") == "b").sort("line")
        none.write_arrow(tmp_path / f"out{files}", files=files)
        job.run(memory="64 MiB")
    for path in (tmp_path / "outNone", tmp_path / "out2" / "part-00000.arrows", tmp_path / "out2" / "part-00001.arrows"):
        assert read(path).schema == pa.schema([("line", pa.string())])
        assert read(path).num_rows == 0


def test_a_compressed_file_and_its_end(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 5000)
    for name in ("out.arrows", "out.arrows.zst"):
        job = sm.Pipeline()
        job.from_arrow(whole).sort("number").write_arrow(tmp_path / name)
        job.run(memory="128 MiB")
    assert read(tmp_path / "out.arrows.zst", "zstd").equals(whole.sort_by("number"))
    # A stream that has an end behind its batches can be told from one that was cut.
    assert (tmp_path / "out.arrows").read_bytes().endswith(b"\xff\xff\xff\xff\0\0\0\0")


def test_text_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"a\n\xff\n")
    (tmp_path / "out.arrows").write_bytes(b"old")
    job = sm.Pipeline()
    job.read_text(tmp_path / "in.txt").sort("line").write_arrow(tmp_path / "out.arrows")
    with pytest.raises(sm.InputError, match="column line has .* which is not UTF-8"):
        job.run(memory="64 MiB")
    assert (tmp_path / "out.arrows").read_bytes() == b"old"


def test_what_was_written_can_be_read_again(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 5000)
    job = sm.Pipeline()
    job.from_arrow(whole).sort("number").write_arrow(tmp_path / "out.arrows")
    job.run(memory="64 MiB")
    with pa.OSFile(str(tmp_path / "out.arrows")) as file:
        again = sm.Pipeline().from_arrow(pa.ipc.open_stream(file)).sort("number", descending=True)
        assert pa.table(again.collect_arrow(memory="64 MiB")).equals(whole.sort_by([("number", "descending")]))
