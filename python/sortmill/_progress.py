"""How far a pipeline is, for whoever looks on: a line on a terminal, a line in a notebook, or a function of the caller's."""

from __future__ import annotations

import html
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Progress = dict[str, Any]

EVERY_S = 0.2


def shown(progress: bool | Callable[[Progress], object] | None) -> Callable[[Progress], object] | None:
    """What is called with each step, if anything is: by default where somebody can see it."""
    if progress is False:
        return None
    if callable(progress):
        return progress
    if _display() is not None:
        return Notebook()
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return Line() if progress or is_terminal else None


def words(now: Progress) -> str:
    """A step in words."""
    share = "" if now["share"] is None else f" {now['share']:.0%}"
    left = "" if now["seconds_left"] is None else f", about {now['seconds_left']:.0f} s left"
    moved = f"{now['bytes_read'] / 1e6:.0f} MB read, {now['bytes_written'] / 1e6:.0f} MB written"
    return f"{now['verb']} ({now['number']} of {now['count']}), {now['phase']}{share}: {moved}, {now['seconds']:.0f} s{left}"


def _columns() -> int:
    """How wide the terminal is on which the line is drawn."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


class Line:
    """A line on standard error: drawn over and over on a terminal, else written when a phase begins."""

    def __init__(self) -> None:
        self.drawn_at = 0.0
        self.last: tuple[int, str] | None = None
        self.width = 0

    def __call__(self, now: Progress) -> None:
        if sys.stderr.isatty():
            if time.monotonic() - self.drawn_at >= EVERY_S:
                self.drawn_at = time.monotonic()
                text = words(now)[: _columns() - 1]
                sys.stderr.write("\r" + text.ljust(self.width))
                sys.stderr.flush()
                self.width = len(text)
        elif self.last != (now["number"], now["phase"]):
            self.last = (now["number"], now["phase"])
            sys.stderr.write(words(now) + "\n")

    def end(self) -> None:
        """Wipes it."""
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
            self.width = 0


class Notebook:
    """A line and a bar below a cell, which change as the pipeline does."""

    def __init__(self) -> None:
        display = _display()
        assert display is not None
        self.handle = display(_Html(""), display_id=True)
        self.drawn_at = 0.0

    def __call__(self, now: Progress) -> None:
        if time.monotonic() - self.drawn_at < EVERY_S:
            return
        self.drawn_at = time.monotonic()
        share = now["share"] or 0.0
        bar = f"<progress value='{share:.3f}' max='1' style='width: 20em'></progress> "
        self.handle.update(_Html(bar + html.escape(words(now))))

    def end(self) -> None:
        """Leaves nothing: what was done stands in the report."""
        self.handle.update(_Html(""))


class _Html:
    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_html_(self) -> str:
        return self.text


def _display() -> Any:
    """What shows something in a notebook, if this runs in one."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # Those of others, as of Colab, are made from it.
    if shell is None or all(kind.__name__ != "ZMQInteractiveShell" for kind in type(shell).__mro__):
        return None
    from IPython.display import display

    return display
