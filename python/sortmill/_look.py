"""Looking at a table: its first records, all of them, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from typing import Any

from . import _sortmill

Record = dict[str, Any]

CELL_LETTERS_MAX = 40

SAMPLE = "16 MiB"
"""So much of the input is looked at where nothing is said."""


def of_sample(looked_at: str) -> str:
    """What is told where only a part was looked at."""
    return f"of a sample, the first {looked_at}; sample=None computes the table of all"


def batches(run: Callable[[], _sortmill.RowReader], count: int) -> Generator[list[Record], None, None]:
    """The records of a table, `count` at a time: `run` computes them when the first are asked for."""
    reader = run()
    while records := reader.read(count):
        yield records


def drawn(columns: Sequence[str], records: Sequence[Record], is_all: bool) -> str:
    """Records as a table of text, numbers to the right."""
    cells = [[_cell(record[name]) for name in columns] for record in records]
    widths = [max([len(name), *(len(row[at]) for row in cells)]) for at, name in enumerate(columns)]
    right = [
        any(record[name] is not None for record in records)
        and all(isinstance(record[name], (int, float, type(None))) for record in records)
        for name in columns
    ]

    def line(row: Sequence[str]) -> str:
        put = [text.rjust(width) if is_right else text.ljust(width) for text, width, is_right in zip(row, widths, right)]
        return "  ".join(put).rstrip()

    lines = [line(columns), line(["-" * width for width in widths]), *(line(row) for row in cells)]
    if not is_all:
        lines.append("...")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        value = value.isoformat().replace("+00:00", "Z")
    text = value if isinstance(value, str) else repr(value)
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[: CELL_LETTERS_MAX + 1])
    return text if len(text) <= CELL_LETTERS_MAX else text[: CELL_LETTERS_MAX - 3] + "..."
