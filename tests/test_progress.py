"""What is shown while a pipeline runs, and its report in a notebook."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm
from conftest import Text
from sortmill._drawn import _bars
from sortmill._progress import Line, words


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


def test_bars_are_of_the_time_that_there_was() -> None:
    """A stage that worked for 1 ms of 100, and waited for nothing, was drawn as busy all the time."""
    states = {"wait_device_ns": 0, "wait_memory_ns": 0, "wait_input_ns": 0, "wait_output_ns": 0}
    idle = {"stage": "load", "worker_count": 1, "work_ns": 1_000_000, **states}
    busy = {"stage": "sort", "worker_count": 2, "work_ns": 200_000_000, **states}
    bars = ET.fromstring(_bars([idle, busy], 100_000_000)).iter("rect")
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert [round(width / 420, 2) for width in widths if width > 0] == [0.01, 1.0]


def test_a_line_fits_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes to standard error, however wide standard output is; a longer one would leave itself behind on each redraw."""
    reads, writes = os.openpty()
    fcntl.ioctl(writes, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    now = {"verb": "group_by", "number": 1, "count": 2, "phase": "distribute", "share": 0.31, "bytes_read": 5e9,
           "bytes_written": 4e9, "seconds": 12.0, "seconds_left": 14.0}
    assert len(words(now)) > 50
    with os.fdopen(writes, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        Line()(now)
        drawn = os.read(reads, 1000).decode()
    os.close(reads)
    assert drawn == "\r" + words(now)[:49]


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
