"""Pipelines: tables and verbs. Nothing is done before `Pipeline.run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _sortmill
from ._errors import UsageError
from ._report import Report
from ._verbs import Aggregate, ColumnType, Formula, Matches, Parts, columns_of

Path = str | os.PathLike[str]
Record = dict[str, Any]


def _paths(paths: Path | Sequence[Path] | None) -> list[str]:
    if paths is None:
        return []
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def _bytes(size: int | str | None) -> int | None:
    return _sortmill.parse_size(size) if isinstance(size, str) else size


def _names(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _by(by: str | Sequence[str], descending: bool | Sequence[bool]) -> list[tuple[str, bool]]:
    names = _names(by)
    downs = [descending] * len(names) if isinstance(descending, bool) else list(descending)
    if len(downs) != len(names):
        raise UsageError(f"{len(names)} columns and {len(downs)} directions")
    return list(zip(names, downs))


class Pipeline:
    """A program: what is read, what is done, what is written."""

    def __init__(self) -> None:
        self._job: _sortmill.Job | None = None

    def read_text(self, paths: Path | Sequence[Path], *, skip_header: int = 0) -> Table:
        """The lines of files, as the column `line` (str).

        `paths` may have `*`, `?` and `**`; compressed files are read as what they were. The first `skip_header` lines
        of each file are passed over.
        """
        return Table(self, _sortmill.read_text(_paths(paths), skip_header))

    def run(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Sequence[Path] | None = None,
        threads: int | None = None,
    ) -> Report:
        """Does it: when this returns, the output is complete, proven, and has its name.

        `memory` is the most the engine may use, in bytes or as "4 GiB"; half of what is available if not said. `temp` are
        folders for temporary files, used at once.
        """
        return Report(*self._written().run(_bytes(memory), _paths(temp), threads))

    def explain(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Sequence[Path] | None = None,
        threads: int | None = None,
    ) -> str:
        """What would be done: phases, memory, temporary space."""
        return self._written().explain(_bytes(memory), _paths(temp), threads)

    def _written(self) -> _sortmill.Job:
        if self._job is None:
            raise UsageError("nothing is written: a pipeline ends with write_csv, write_jsonl or write_text")
        return self._job

    def _write(self, job: _sortmill.Job) -> None:
        if self._job is not None:
            raise UsageError("a pipeline writes one output so far")
        self._job = job


class Table:
    """A table that is still to be made."""

    def __init__(self, pipeline: Pipeline, table: _sortmill.Table) -> None:
        self._pipeline = pipeline
        self._table = table

    def _next(self, table: _sortmill.Table) -> Table:
        return Table(self._pipeline, table)

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of its columns."""
        return dict(self._table.columns())

    def flat_map(
        self,
        function: Parts | Callable[[Record], Iterable[Any] | None],
        columns: Mapping[str, ColumnType] | None = None,
    ) -> Table:
        """For each record those that a function makes of it; what comes out has its columns and no others.

        Built-in functions are `words`, `ngrams`, `split`, `fields` and `extract`. One of your own gets a dictionary and answers any
        number of them, or of values if there is one column; say which `columns` come out.
        """
        if not isinstance(function, Parts):
            return self._each(function, columns, True)
        parts, table = function, self._table
        match parts.kind:
            case "words":
                return self._next(table.words(parts.column, parts.lower, parts.name))
            case "ngrams":
                return self._next(table.ngrams(parts.column, parts.count, parts.lower, parts.name))
            case "split":
                return self._next(table.split(parts.column, parts.by, parts.name))
            case "extract":
                return self._next(table.extract(parts.column, parts.by, list(parts.columns)))
            case _:
                return self._next(table.fields(parts.column, parts.by, list(parts.columns)))

    def map(
        self, function: Callable[[Record], Any], columns: Mapping[str, ColumnType] | None = None
    ) -> Table:
        """For each record the one that a function makes of it, or none where it answers `None`."""
        return self._each(function, columns, False)

    def _each(
        self,
        function: Callable[[Record], Any],
        columns: Mapping[str, ColumnType] | None,
        many: bool,
    ) -> Table:
        if columns is None:
            raise UsageError("say which columns the function makes: columns={'word': str}")
        return self._next(self._table.each(function, columns_of(columns), many))

    def filter(self, function: Matches | Callable[[Record], Any]) -> Table:
        """The records, as dictionaries, for which a function answers true; or those that `matches` says."""
        if isinstance(function, Matches):
            one = function
            return self._next(self._table.matches(one.column, one.pattern, one.invert))
        return self._next(self._table.filter(function))

    def with_columns(self, **computed: Formula) -> Table:
        """All columns, and behind them those that are computed, or in place of others of their names.

        Formulas are `parse`, `timestamp` and `hash`.
        """
        asked = [(name, one.kind, one.column, one.type, one.seed) for name, one in computed.items()]
        return self._next(self._table.with_columns(asked))

    def sample(self, fraction: float, *, seed: int = 0) -> Table:
        """Each record with a probability: the same ones for a seed. In front of all that brings records together."""
        return self._next(self._table.sample(fraction, seed))

    def shuffle(self, *, seed: int = 0, epoch: int = 0) -> Table:
        """All records in random order, every order equally likely: the same for a seed and an epoch."""
        return self._next(self._table.shuffle(seed, epoch))

    def select(self, *columns: str) -> Table:
        """Only these columns, in this order."""
        return self._next(self._table.select(list(columns)))

    def sort(self, by: str | Sequence[str], *, descending: bool | Sequence[bool] = False) -> Table:
        """All records in the order of some columns; those that are equal there keep their order."""
        return self._next(self._table.sort(_by(by, descending)))

    def top(self, count: int, by: str | Sequence[str], *, descending: bool | Sequence[bool] = True) -> Table:
        """The `count` records with the greatest values; of equal ones those that are first by all other columns."""
        return self._next(self._table.top(count, _by(by, descending)))

    def distinct(self) -> Table:
        """Each different record once, in no order that means anything."""
        return self._next(self._table.distinct())

    def group_by(self, *columns: str) -> Groups:
        """Groups of the records that are equal in these columns."""
        return Groups(self, list(columns))

    def write_text(self, path: Path) -> None:
        """Writes the values of each record to a line, with tabs between."""
        self._write(path, "text")

    def write_csv(self, path: Path, *, header: bool = True) -> None:
        """Writes CSV, with the columns' names in the first line if `header`."""
        self._write(path, "csv" if header else "csv without header")

    def write_jsonl(self, path: Path) -> None:
        """Writes a JSON object for each record."""
        self._write(path, "jsonl")

    def _write(self, path: Path, form: str) -> None:
        self._pipeline._write(self._table.write(os.fspath(path), form))


class Groups:
    """The records of a table in groups."""

    def __init__(self, table: Table, by: list[str]) -> None:
        self._table = table
        self._by = by

    def agg(self, **aggregates: Aggregate) -> Table:
        """A record for each group: its columns, then one for each aggregate under its name here."""
        asked = [(one.kind, one.column, name) for name, one in aggregates.items()]
        return self._table._next(self._table._table.aggregate(self._by, asked))

    def reduce(self, function: Callable[[Record, Record], Record]) -> Table:
        """A record for each group: what a function makes of its first two, of that and the third, and so on.

        Records come in the order of the input, as dictionaries of all columns, and so do what the function answers.
        """
        return self._table._next(self._table._table.reduce(self._by, function))

    def apply(
        self,
        function: Callable[[Any, Iterator[Record]], Iterable[Any] | None],
        *,
        columns: Mapping[str, ColumnType],
        sort: str | Sequence[str] = (),
        descending: bool | Sequence[bool] = False,
    ) -> Table:
        """What a function makes of each group: of its key and an iterator of its records, as dictionaries.

        The key is the value of the column that groups are made by, or a tuple of several. Records come in the order of the
        columns `sort`, equal ones in that of the input; the engine sorts them. Only those that were asked for last are in
        memory, so a group may be of any size. The function answers any number of records of `columns`, or of values if
        that is one column; a generator may begin before it has seen all.
        """
        made = columns_of(columns)
        return self._table._next(self._table._table.apply(self._by, _by(sort, descending), function, made))

    def sessions(self, time: str, gap: int, *, name: str = "session") -> Table:
        """All records, group by group in the order of the integers in `time`, with the number of their session, from 0.

        A session of a group ends where the next record comes more than `gap` later.
        """
        return self._table._next(self._table._table.sessions(self._by, time, gap, name))
