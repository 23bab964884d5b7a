"""Looking at a table: its first records, all of them, and how they are shown."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Sequence
from typing import Any

from . import _sortmill

Record = dict[str, Any]

CELL_LETTERS_MAX = 40


def batches(
    table: _sortmill.Table, count: int, memory_bytes: int | None, temp: list[str], threads: int | None
) -> Generator[list[Record], None, None]:
    """The records of a table, `count` at a time: they are computed into a file of rows, which goes at the end."""
    with tempfile.TemporaryDirectory(prefix="sortmill-rows-", dir=temp[0] if temp else None) as folder:
        path = os.path.join(folder, "rows")
        table.write_rows(path).run(memory_bytes, temp, threads)
        reader = _sortmill.RowReader(path, table)
        while records := reader.read(count):
            yield records


def drawn(columns: Sequence[str], records: Sequence[Record], is_all: bool) -> str:
    """Records as a table of text, numbers to the right."""
    cells = [[_cell(record[name]) for name in columns] for record in records]
    widths = [max([len(name), *(len(row[at]) for row in cells)]) for at, name in enumerate(columns)]
    right = [
        bool(records) and all(isinstance(record[name], (int, float)) for record in records) for name in columns
    ]

    def line(row: Sequence[str]) -> str:
        put = [text.rjust(width) if is_right else text.ljust(width) for text, width, is_right in zip(row, widths, right)]
        return "  ".join(put).rstrip()

    lines = [line(columns), line(["-" * width for width in widths]), *(line(row) for row in cells)]
    if not is_all:
        lines.append("...")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text[: CELL_LETTERS_MAX + 1])
    return text if len(text) <= CELL_LETTERS_MAX else text[: CELL_LETTERS_MAX - 3] + "..."
