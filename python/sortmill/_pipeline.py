"""Pipelines: tables and verbs. Nothing is done before `Pipeline.run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _sortmill
from ._errors import UsageError
from ._functions import Batches
from ._progress import Progress, shown
from ._report import Report
from ._verbs import Aggregate, ColumnType, Parts, columns_of

Path = str | os.PathLike[str]
Record = dict[str, Any]

Watch = bool | Callable[[Progress], object] | None

BATCH_SIZE = 16384
"""So many records are a batch where nothing is said."""


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


def asked(
    memory: int | str | None,
    temp: Path | Sequence[Path] | None,
    threads: int | None,
    processes: int | None,
    worker_memory: int | str | None,
    progress: Callable[[Progress], object] | None = None,
) -> dict[str, Any]:
    """What a job may use, as the compiled part takes it."""
    return {
        "memory": _bytes(memory), "temp": _paths(temp), "threads": threads, "processes": processes,
        "worker_memory": _bytes(worker_memory), "progress": progress,
    }


def _watched(run: Callable[[Callable[[Progress], object] | None], Any], progress: Watch) -> Any:
    """Runs a job while its progress is shown."""
    look = shown(progress)
    try:
        return run(look)
    finally:
        end = getattr(look, "end", None)
        if end is not None:
            end()


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

    def from_arrow(self, source: Any) -> Table:
        """The records of anything with an Arrow stream: a table or a reader of pyarrow, a frame of Polars, a relation of
        DuckDB. They are taken as they are needed, a batch at a time.
        """
        return Table(self, _sortmill.from_arrow(source))

    def run(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Sequence[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
        progress: Watch = None,
    ) -> Report:
        """Does it: when this returns, the output is complete, proven, and has its name.

        `memory` is the most the engine may use, in bytes or as "4 GiB"; half of what is available if not said. `temp` are
        folders for temporary files, used at once. Functions of yours run in so many `processes`, as many as threads if not
        said, 0 for this one; each of them may have `worker_memory` in use. `progress` shows how far it is, on a terminal and
        in a notebook if not said; a function of yours gets a dictionary many times a second, and what it raises ends the job.
        """
        job = self._written()
        told = _watched(lambda look: job.run(asked(memory, temp, threads, processes, worker_memory, look)), progress)
        return Report(*told)

    def explain(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Sequence[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
    ) -> str:
        """What would be done: phases, memory, temporary space, where functions run."""
        return self._written().explain(asked(memory, temp, threads, processes, worker_memory))

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
        function: Parts | Callable[[Record], Iterable[Any] | None] | type[Any],
        columns: Mapping[str, ColumnType] | None = None,
        *,
        pure: bool = False,
        timeout: float | None = None,
    ) -> Table:
        """For each record those that a function makes of it; what comes out has its columns and no others.

        Built-in functions are `words`, `ngrams`, `split` and `fields`. One of your own gets a dictionary and answers any
        number of them, or of values if there is one column; say which `columns` come out. Otherwise as `map`.
        """
        if not isinstance(function, Parts):
            return self._called("flat_map", function, columns, pure, timeout)
        parts, table = function, self._table
        match parts.kind:
            case "words":
                return self._next(table.words(parts.column, parts.lower, parts.name))
            case "ngrams":
                return self._next(table.ngrams(parts.column, parts.count, parts.lower, parts.name))
            case "split":
                return self._next(table.split(parts.column, parts.by, parts.name))
            case _:
                return self._next(table.fields(parts.column, parts.by, list(parts.columns)))

    def map(
        self,
        function: Callable[[Record], Any] | type[Any],
        columns: Mapping[str, ColumnType] | None = None,
        *,
        pure: bool = False,
        timeout: float | None = None,
    ) -> Table:
        """For each record the one that a function makes of it, or none where it answers `None`.

        A class is called without arguments in each worker, and its object with each record. A worker process that dies
        takes its records along; of a function that is declared `pure` they are given to another one. One that works on a
        batch of records for more than `timeout` seconds in a worker process ends the job.
        """
        return self._called("map", function, columns, pure, timeout)

    def map_batches(
        self,
        function: Callable[[Any], Any] | type[Any],
        columns: Mapping[str, ColumnType] | None = None,
        *,
        batch_format: str = "pyarrow",
        batch_size: int = BATCH_SIZE,
        pure: bool = False,
        timeout: float | None = None,
    ) -> Table:
        """What a function makes of batches of records, each a `pyarrow.RecordBatch`, a dictionary of numpy arrays or a frame
        of pandas.

        It answers the same, or anything else with an Arrow interface; the columns that come out are `columns`, those that
        came in if not said. A batch has at most `batch_size` records, about 1 MiB. Otherwise as `map`.
        """
        made = list(self.columns.items()) if columns is None else columns_of(columns)
        batches = Batches(function, batch_format, made)
        return self._next(self._table.call("map_batches", batches, made, (batch_size, pure, timeout)))

    def map_command(
        self,
        command: Sequence[Path],
        *,
        column: str = "line",
        name: str = "line",
        batch_size: int = BATCH_SIZE,
        timeout: float | None = None,
    ) -> Table:
        """The lines that a program makes of those of a column, as the column `name`.

        It is started for each batch of at most `batch_size` lines, about 1 MiB, reads them on its standard input and writes
        any number of lines; it must end with exit code 0, within `timeout` seconds if that is said.
        """
        words = [os.fspath(word) for word in command]
        return self._next(self._table.command(words, column, name, batch_size, timeout))

    def _called(
        self,
        kind: str,
        function: Callable[[Record], Any] | type[Any],
        columns: Mapping[str, ColumnType] | None,
        pure: bool,
        timeout: float | None,
    ) -> Table:
        if columns is None:
            raise UsageError("say which columns the function makes: columns={'word': str}")
        return self._next(self._table.call(kind, function, columns_of(columns), (BATCH_SIZE, pure, timeout)))

    def filter(
        self, function: Callable[[Record], Any] | type[Any], *, pure: bool = False, timeout: float | None = None
    ) -> Table:
        """The records, as dictionaries, for which a function answers true; otherwise as `map`."""
        return self._next(self._table.call("filter", function, None, (BATCH_SIZE, pure, timeout)))

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

    def collect_arrow(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Sequence[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
        progress: Watch = None,
    ) -> ArrowResult:
        """Runs the pipeline up to this table: its records, proven, for whatever takes an Arrow stream.

        They lie in a file without a name, in the folder for temporary files, and are read from there a batch at a time,
        each time from the beginning: `pyarrow.table(result)`, `polars.DataFrame(result)`, `duckdb.sql("FROM result")`.
        What is said is as for `Pipeline.run`.
        """
        told, rows = _watched(
            lambda look: self._table.hold(asked(memory, temp, threads, processes, worker_memory, look)), progress
        )
        return ArrowResult(Report(*told), rows, self.columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """`collect_arrow` as it is without arguments, as an Arrow stream."""
        return self.collect_arrow().__arrow_c_stream__(requested_schema)

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


class ArrowResult:
    """The records of a table that has been made. They go when nothing uses them any more."""

    def __init__(self, report: Report, rows: _sortmill.Rows, columns: dict[str, str]) -> None:
        self.report = report
        """What the job did."""
        self.columns = columns
        """Names and types of its columns."""
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All records, from the first one."""
        return self._rows.__arrow_c_stream__(requested_schema)


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
