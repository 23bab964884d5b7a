"""A report as HTML, as notebooks show it: what each phase did, and its stages as bars."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable
from typing import Any

from ._errors import UsageError

_WIDTH = 420
_STATES = [
    ("work_ns", "#3b6ea8", "works"),
    ("wait_device_ns", "#c8803a", "waits for a device"),
    ("wait_memory_ns", "#8a5fa8", "waits for memory"),
    ("wait_input_ns", "#c9d3de", "waits for input"),
    ("wait_output_ns", "#e4e7eb", "waits for room behind it"),
]


class Drawing:
    """A drawing of a report: a notebook shows it, and `save` writes a page that any browser does."""

    def __init__(self, html: str) -> None:
        self._html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as a page of HTML, which needs nothing else."""
        name = os.fspath(path)
        if not name.lower().endswith((".html", ".htm")):
            raise UsageError(f"a drawing is a page of HTML, and {name} does not end in .html")
        head = "<meta charset='utf-8'><title>sortmill</title>"
        with open(name, "w", encoding="utf-8") as page:
            page.write(f"<!DOCTYPE html>\n<html><head>{head}</head><body>\n{self._html}\n</body></html>\n")

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return "<sortmill.Drawing: a notebook shows it, and save(\"report.html\") writes it>"


def drawn(summary: str, phases: list[dict[str, Any]]) -> str:
    """The whole report: words, then a drawing for each phase."""
    drawings = "".join(_phase(phase) for phase in phases)
    return f"<div><pre>{html.escape(summary)}</pre>{drawings}</div>"


def _phase(phase: dict[str, Any]) -> str:
    report = phase["report"]
    parts = []
    for part in report.get("phases", []):
        stages = part.get("stages", [])
        if stages:
            parts.append(f"<p>{html.escape(part['name'])}, {_seconds(part['wall_ns'])}</p>{_bars(stages, int(part['wall_ns']))}")
    name = html.escape(phase["name"])
    return f"<p><b>{name}</b>, {_seconds(report['wall_ns'])}</p>{''.join(parts)}"


def _bars(stages: Iterable[dict[str, Any]], wall_ns: int) -> str:
    """A bar for each stage: of the time that its threads had, how much they worked, waited for a device, and for one another.

    What is empty they spent in other stages, or had come to their end."""
    lines: list[str] = []
    height = 4
    for number, stage in enumerate(stages):
        told = sum(int(stage[state]) for state, _, _ in _STATES)
        total = max(1, told, wall_ns * int(stage["worker_count"]))
        y = 18 * number
        name = html.escape(str(stage["stage"]))
        lines.append(f"<text x='70' y='{y + 12}' text-anchor='end' font-size='11'>{name}</text>")
        height = y + 22
        x = 76.0
        for state, colour, word in _STATES:
            ns = int(stage[state])
            width = _WIDTH * ns / total
            title = f"<title>{name} {word} {_seconds(ns)}</title>"
            lines.append(f"<rect x='{x:.1f}' y='{y + 2}' width='{width:.1f}' height='13' fill='{colour}'>{title}</rect>")
            x += width
    return f"<svg width='{_WIDTH + 90}' height='{height}' font-family='sans-serif'>{''.join(lines)}</svg>"


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.2f} s"
