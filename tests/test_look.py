"""Looking at tables: what `head` and `show` tell without running the pipeline, and that they say so where it is of a sample."""

from __future__ import annotations

import gzip
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import sortmill as sm

SEED = 20261127


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sm.SampleWarning)
        yield


def words_of(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    return [f"w{int(draw.paretovariate(0.6)) % 500} {number}" for number in range(count)]


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def firsts(table: sm.Table) -> sm.Table:
    return table.flat_map(sm.fields("line", " ", {"word": str, "number": int}))


def test_a_sample_of_all_is_the_table(tmp_path: Path) -> None:
    lines = words_of(SEED, 3000)
    third = len(lines) // 3
    files = [written(tmp_path / "a.txt", lines[:third]), tmp_path / "b.txt.gz", written(tmp_path / "c.txt", lines[2 * third :])]
    files[1].write_bytes(gzip.compress("".join(line + "\n" for line in lines[third : 2 * third]).encode()))
    table = firsts(sm.Pipeline().read_text(files))

    def doubled(batch: dict[str, object]) -> dict[str, object]:
        return {"number": batch["number"]}

    tables = {
        "groups": table.group_by("word").agg(n=sm.count(), first=sm.first("number")),
        "two phases": table.group_by("word").agg(n=sm.count()).top(7, "n"),
        "sort": table.sort(["word", "number"]),
        "distinct": table.select("word").distinct(order="sorted"),
        # Which records are drawn follows from where they lie.
        "drawn": table.sample(0.2, seed=3).sort("number"),
        "drawn and not brought together": table.sample(0.2, seed=3),
        "batches": table.map_batches(doubled, {"number": int}, batch_format="numpy", batch_size=100).sort("number"),
        "batches, drawn": table.map_batches(doubled, {"number": int}, batch_format="numpy", batch_size=100).sample(0.2).sort("number"),
        "groups whole": table.group_by("word").apply(lambda key, records: [{"n": sum(1 for _ in records)}], columns={"n": int}),
        "function": table.map(lambda record: {"word": record["word"]}, columns={"word": str}).distinct(),
        "reduced": table.group_by("word").reduce(lambda a, b: {"word": a["word"], "number": a["number"] + b["number"]}),
    }
    for name, one in tables.items():
        assert one.head(5000) == one.collect(memory="128 MiB", temp=tmp_path), name


@pytest.mark.parametrize("lengths", [[4000], [2000, 2000], [10, 4000], [4000, 0, 10]])
def test_a_sample_has_the_beginnings(tmp_path: Path, lengths: list[int]) -> None:
    """Of each file so much as the others leave: against a model that cuts the same files."""
    lines = words_of(SEED + len(lengths), sum(lengths))
    files, at = [], 0
    for number, length in enumerate(lengths):
        files.append(written(tmp_path / f"{number}.txt", lines[at : at + length]))
        at += length
    sample, left, seen = 20_000, 20_000, []
    for number, path in enumerate(files):
        most = max(left // (len(files) - number), 4096)
        text = path.read_bytes()
        whole = text[:most] if len(text) > most else text
        whole = whole[: whole.rfind(b"\n") + 1]
        left = max(0, left - len(whole))
        seen += whole.decode().splitlines()
    assert 0 < len(seen) < len(lines)
    groups = firsts(sm.Pipeline().read_text(files)).group_by("word").agg(n=sm.count())
    with pytest.warns(sm.SampleWarning, match="the first 20000 of the files; sample=None computes the table of all"):
        found = groups.head(5000, sample=sample)
    model = Counter(line.split()[0] for line in seen)
    assert {str(record["word"]): record["n"] for record in found} == model
    whole_model = Counter(line.split()[0] for line in lines)
    assert {str(record["word"]): record["n"] for record in groups.head(5000, sample=None, memory="128 MiB")} == whole_model


def test_of_very_many_files_the_first_ones_are_looked_at(tmp_path: Path) -> None:
    for number in range(100):
        written(tmp_path / f"{number:03}.txt", [f"{number:03}"] * 1024)
    table = sm.Pipeline().read_text(tmp_path / "*.txt")
    with pytest.warns(sm.SampleWarning):
        found = table.group_by("line", order="sorted").agg(n=sm.count()).head(100, sample="16 KiB")
    assert found == [{"line": f"{number:03}", "n": 1024} for number in range(4)]
    with pytest.warns(sm.SampleWarning):
        assert len(table.distinct().head(100, sample=0)) == 1


def test_show_says_that_it_is_of_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = firsts(sm.Pipeline().read_text(written(tmp_path / "in.txt", words_of(SEED, 5000)))).sort("number", descending=True)
    table.show(1, sample="8 KiB")
    told = capsys.readouterr().out.splitlines()
    assert told[-2:] == ["...", "of a sample, the first 8 KiB of the files; sample=None computes the table of all"]
    assert int(told[2].split()[1]) < 4999
    table.show(1)
    told = capsys.readouterr().out.splitlines()
    assert told[2].split()[1] == "4999" and told[-1] == "..."


def test_functions_see_the_sample_and_no_more(tmp_path: Path) -> None:
    path, seen = written(tmp_path / "in.txt", [f"{number:09}" for number in range(100_000)]), []
    table = sm.Pipeline().read_text(path)

    def note(record: dict[str, object]) -> dict[str, object]:
        seen.append(record["line"])
        return record

    with pytest.warns(sm.SampleWarning):
        found = table.map(note, columns={"line": str}).sort("line", descending=True).head(1, sample="100 KB", processes=0)
    assert found == [{"line": f"{9999:09}"}] and len(seen) == 10_000

    def refuse(record: dict[str, object]) -> dict[str, object]:
        if record["line"] == "000000077":
            raise ValueError("no")
        return record

    for processes in [0, 2]:
        refused = table.map(refuse, columns={"line": str}).distinct()
        with pytest.raises(sm.FunctionError) as raised:
            refused.head(processes=processes)
        error = raised.value
        assert (error.file, error.offset, str(error.__cause__)) == (str(path), 770, "no")


def test_what_is_seldom_is_not_looked_for_everywhere(tmp_path: Path) -> None:
    """A filter that keeps one record behind the beginning: computing the table of 100 GB for it is not what was asked."""
    path = tmp_path / "in.txt"
    with open(path, "wb") as file:
        file.write(b"a\nb\n" * (17 << 19) + b"needle\n")
    table = sm.Pipeline().read_text(path).filter(sm.matches("line", "needle"))
    with pytest.warns(sm.SampleWarning, match="the first 32 MiB of each file"):
        assert table.head(3) == []
    assert table.head(3, sample=None, memory="128 MiB", temp=tmp_path) == [{"line": "needle"}]


def test_of_what_is_no_file_there_is_no_sample(tmp_path: Path) -> None:
    """Iterators and one long record are computed as a whole, and so nothing is warned of."""
    table = sm.Pipeline().from_iter(({"n": n % 10} for n in range(1000)), columns={"n": int})
    assert table.group_by("n", order="sorted").agg(c=sm.count()).head(1, memory="128 MiB", temp=tmp_path) == [{"n": 0, "c": 100}]
    path = written(tmp_path / "in.txt", ["x" * 100_000, "y"])
    assert sm.Pipeline().read_text(path).sort("line", descending=True).head(1, sample="10 KiB") == [{"line": "y"}]
    for wrong in [-1, "much", 1.5]:
        with pytest.raises(sm.UsageError, match="sample is"):
            sm.Pipeline().read_text(path).head(sample=wrong)  # type: ignore[arg-type]
    with pytest.raises(sm.UsageError, match="at most 1 GiB"):
        sm.Pipeline().read_text(path).distinct().head(sample=(1 << 30) + 1)
