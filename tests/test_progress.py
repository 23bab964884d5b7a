"""What is shown while a pipeline runs, and its report in a notebook."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm
from conftest import Text
from sortmill._progress import words


def test_a_function_is_told(text: Text, tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    job = sm.Pipeline()
    grouped = job.read_text(text.pattern).flat_map(sm.words("line")).group_by("word").agg(n=sm.count())
    # A function of Python's that is slow enough to be looked at, however fast the machine is.
    waited: list[int] = []

    def slow(record: dict[str, Any]) -> bool:
        while not told and len(waited) < 2000:
            waited.append(1)
            __import__("time").sleep(0.01)
        return True

    grouped.filter(slow).sort("n").write_csv(tmp_path / "out")
    report = job.run(memory="128 MiB", temp=tmp_path, processes=0, progress=told.append)
    assert told
    names = [phase["name"] for phase in report.phases]
    for step in told:
        assert step["verb"] == names[step["number"] - 1] and step["count"] == 2
        assert step["share"] is None or 0 <= step["share"] <= 1
        assert f"({step['number']} of 2)" in words(step)
    assert [step["number"] for step in told] == sorted(step["number"] for step in told)


def test_a_function_that_is_told_can_end_the_job(text: Text, tmp_path: Path) -> None:
    def stop(step: dict[str, Any]) -> None:
        raise LookupError("enough")

    job = sm.Pipeline()
    # It would wait for ever.
    table = job.read_text(text.pattern).filter(lambda record: __import__("time").sleep(1000))
    table.write_text(tmp_path / "out")
    with pytest.raises(LookupError, match="enough"):
        job.run(memory="128 MiB", processes=1, progress=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_shown_where_somebody_looks(text: Text, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = sm.Pipeline()
    job.read_text(text.pattern).sort("line").write_text(tmp_path / "out")
    # No terminal: nothing.
    job.run(memory="128 MiB")
    assert capfd.readouterr() == ("", "")


def test_a_report_is_drawn(text: Text, tmp_path: Path) -> None:
    job = sm.Pipeline()
    job.read_text(text.pattern).filter(lambda record: record["line"] < "x<&").sort("line").write_text(tmp_path / "out")
    report = job.run(memory="128 MiB", processes=0)
    drawn = ET.fromstring(report._repr_html_())
    texts = ["".join(element.itertext()) for element in drawn.iter()]
    assert any("sort by line" in one for one in texts)
    stages = [element.text for element in drawn.iter("text")]
    assert "map" in stages and "write" in stages
    for bar in drawn.iter("rect"):
        assert 0 <= float(bar.attrib["width"]) <= 420.1


def test_a_report_is_plotted_and_saved(text: Text, tmp_path: Path) -> None:
    job = sm.Pipeline()
    job.read_text(text.pattern).filter(lambda record: record["line"] < "x<&").sort("line").write_text(tmp_path / "out")
    of_job = job.run(memory="128 MiB", processes=0)
    of_sort = sm.sort(tmp_path / "out", tmp_path / "sorted", memory="64 MiB")
    for number, report in enumerate([of_job, of_sort]):
        drawing = report.plot()
        assert isinstance(drawing, sm.Drawing)
        assert drawing._repr_html_() == report._repr_html_()
        page = tmp_path / f"{number}.html"
        drawing.save(page)
        # The whole of the drawing is in the page, and nothing that would have to be fetched.
        text_of_page = page.read_text(encoding="utf-8")
        assert text_of_page.startswith("<!DOCTYPE html>") and drawing._repr_html_() in text_of_page
        assert "http" not in text_of_page and "src=" not in text_of_page
        assert report.plot(tmp_path / "at once.html") is not None
        assert (tmp_path / "at once.html").read_text(encoding="utf-8") == text_of_page
        with pytest.raises(sm.UsageError, match="end in .html"):
            report.plot(tmp_path / "report.png")
