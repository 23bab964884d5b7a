"""Outputs that are compressed, one file or a folder of them, read by other programs and by the verbs that read."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sortmill as sm

ENDS = {"gzip": "gz", "zstd": "zst", "lz4": "lz4", "bzip2": "bz2", "xz": "xz"}


def unpacked(path: Path, codec: str) -> bytes:
    """What another library makes of a file, and the codec's own program, where there is one."""
    plain: bytes
    match codec:
        case "gzip":
            plain = gzip.decompress(path.read_bytes())
        case "bzip2":
            plain = bz2.decompress(path.read_bytes())
        case "xz":
            plain = lzma.decompress(path.read_bytes())
        case _:
            with pa.CompressedInputStream(pa.OSFile(str(path)), codec) as stream:
                plain = stream.read()
    if shutil.which(codec):
        assert subprocess.run([codec, "-dc", path], check=True, stdout=subprocess.PIPE).stdout == plain
    return plain


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4", "bzip2", "xz"])
def test_folders_of_compressed_files(tmp_path: Path, draw: random.Random, codec: Any) -> None:
    """More than a frame in some, none in others: each is whole by itself, and the manifest says how long it is."""
    count = draw.randrange(20_000, 40_000)
    lines = [f"{draw.randrange(10**9)} {'x' * draw.randrange(200)}" for _ in range(count)]
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    job = sm.Pipeline()
    table = job.read_text(tmp_path / "in")
    table.sort("line").write_csv(tmp_path / "large", files=2, compression=codec)
    table.filter(lambda record: record["line"] == lines[0]).write_csv(tmp_path / "small", files=3, compression=codec)
    report = job.run(memory="128 MiB", processes=0)
    lines.sort(key=str.encode)
    for name, parts in [("large", [lines[: count // 2], lines[count // 2 :]]), ("small", None)]:
        manifest = json.loads((tmp_path / name / "manifest.json").read_text())
        names = [part["name"] for part in manifest["parts"]]
        assert sorted([*names, "manifest.json"]) == sorted(path.name for path in (tmp_path / name).iterdir())
        assert all(one == f"part-{number:05}.csv.{ENDS[codec]}" for number, one in enumerate(names))
        assert manifest["codec"] == codec
        files = [tmp_path / name / one for one in names]
        assert [part["stored_bytes"] for part in manifest["parts"]] == [file.stat().st_size for file in files]
        texts = [unpacked(file, codec).decode() for file in files]
        assert all(text.startswith("line\n") for text in texts)
        found = [text.splitlines()[1:] for text in texts]
        assert [part["fingerprint"]["records"] for part in manifest["parts"]] == [len(part) for part in found]
        assert parts is None or found == parts
        assert parts is not None or sum(found, []) == [line for line in lines if line in found[-1]]
    assert report.records_in == count
    # Our own verbs read them, and what was there is replaced.
    job = sm.Pipeline()
    back = job.read_csv(str(tmp_path / "large" / "part*"), {"line": str})
    back.sort("line").write_text(tmp_path / "small", files=1, compression="none")
    job.run(memory="128 MiB")
    assert [path.name for path in sorted((tmp_path / "small").iterdir())] == ["manifest.json", "part-00000.txt"]
    assert (tmp_path / "small" / "part-00000.txt").read_text().splitlines() == lines


def test_records_of_several_outputs(tmp_path: Path) -> None:
    """They were those that came to the first output, and those that went to the last."""
    (tmp_path / "in").write_text("".join(f"{number % 7}\n" for number in range(100)))
    job = sm.Pipeline()
    lines = job.read_text(tmp_path / "in")
    lines.filter(sm.matches("line", "[0-3]")).write_text(tmp_path / "some")
    lines.distinct().write_text(tmp_path / "each")
    lines.group_by("line").agg(n=sm.count()).top(3, by="n").write_csv(tmp_path / "first", files=2)
    report = job.run(memory="128 MiB")
    some = len((tmp_path / "some").read_text().splitlines())
    assert (report.records_in, report.records_out) == (100, some + 7 + 3)
    assert repr(report) == f"<sortmill.Report: 100 records in, {some + 10} out>"
    # Tables that are read by themselves, each for two outputs.
    for name, table in [("a", job.from_iter(range(5), {"n": int})), ("b", job.from_iter(range(20), {"n": int})), ("c", lines)]:
        table.write_csv(tmp_path / f"{name}1")
        table.filter(lambda record: False).write_text(tmp_path / f"{name}2")
    report = job.run(memory="128 MiB", processes=0)
    assert (report.records_in, report.records_out) == (125, 125)


def test_how_a_file_is_compressed(tmp_path: Path) -> None:
    """As the end of its name says, or as is said; the level matters."""
    text = "".join(f"{number * 7919 % 10007} {'a' * (number % 9)}\n" for number in range(60_000))
    (tmp_path / "in").write_text(text)

    def size(name: str, **how: Any) -> int:
        job = sm.Pipeline()
        job.read_text(tmp_path / "in").write_text(tmp_path / name, **how)
        assert how.get("compression", "none") in ("none", None) or f"by {how['compression']}" in job.explain()
        job.run(memory="256 MiB")
        return (tmp_path / name).stat().st_size

    assert size("plain.gz", compression="none") == len(text)
    fast, slow = size("fast", compression="zstd", level=1), size("slow", compression="zstd", level=15)
    assert slow < fast < len(text)
    assert size("named.gz") < len(text) and gzip.decompress((tmp_path / "named.gz").read_bytes()).decode() == text
    assert unpacked(tmp_path / "slow", "zstd").decode() == text
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"compression": "zip"}, "not 'zip'"), ({"level": 3}, "say which"),
        ({"compression": "lz4", "level": 3}, "no levels"), ({"compression": "gzip", "level": 10}, "1 to 9"),
    ]
    for how, cause in wrong:
        with pytest.raises(sm.UsageError, match=cause):
            size("wrong", **how)
    assert not (tmp_path / "wrong").exists()
