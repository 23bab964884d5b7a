"""Pipelines: tables and verbs. Nothing is done before `Pipeline.run`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Never

from . import _sortmill
from ._asked import (
    Compression,
    GroupOrder,
    How,
    Mode,
    Path,
    aggregates_of,
    asked,
    by_of,
    bytes_of,
    computed_of,
    files_of,
    flag,
    function_of,
    how_of,
    is_sorted,
    named,
    names_of,
    order_of,
    spoken_of,
    timeout_of,
    typed,
    words_of,
)
from ._errors import Error, SampleWarning, UsageError
from ._express import Expr, Matches, Operand
from ._functions import Batches, Record, without_index
from ._groups import Groups
from ._instead import hinted
from ._look import SAMPLE, batches, drawn, of_sample
from ._numbers import whole
from ._progress import Line, Notebook, Progress, shown
from ._report import Report
from ._verbs import Aggregate, ColumnType, Parts, columns_of

Watch = bool | Callable[[Progress], object] | None

BATCH_SIZE = 16384
"""So many records are a batch where nothing is said."""


def _fixed(record_bytes: int, key: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """A record's size, and where in it its key lies."""
    try:
        offset, length = key
    except (TypeError, ValueError):
        raise UsageError(f"key is the offset and the bytes of a key, as (0, 10), not {key!r}") from None
    most = 2**32 - 1
    place = whole("the key's offset", offset, 0, most), whole("the key's bytes", length, 0, most)
    return whole("record_bytes", record_bytes, 0, most), place


def _watched(run: Callable[[dict[str, Any]], Any], settings: dict[str, Any], progress: Watch) -> Any:
    """Runs a job while its progress is shown."""
    look = shown(progress)
    try:
        return run({**settings, "progress": look})
    finally:
        if isinstance(look, (Line, Notebook)):
            look.end()


def _none_read(outputs: Sequence[str], files: Sequence[str], why: str) -> None:
    """Refuses outputs that an output behind them reads, or that have files in them which it does: it would be made of them."""
    if not outputs:
        return
    try:
        found = _sortmill.expand([path for path in files if path != "-"])
    except Error:  # told by who reads them
        return
    read = [os.path.join(os.path.realpath(path), "") for path in found]
    for output in outputs:
        folder = os.path.join(os.path.realpath(output), "")
        if any(path.startswith(folder) for path in read):
            raise UsageError(f"{output} {why}")


class Pipeline:
    """A program: what is read, what is done, what is written."""

    def __init__(self) -> None:
        self._jobs: list[_sortmill.Job] = []
        self._outputs: list[str] = []
        self._reads: list[Sequence[str]] = []
        self._made = 0
        """So many outputs, the first ones, are there."""
        self._tried = 0
        """And of so many a run has been asked, whatever came of it."""
        self._failed: str | None = None
        """The one that could not be made."""

    def __repr__(self) -> str:
        return f"<a pipeline of {len(self._jobs)} output{'s' * (len(self._jobs) != 1)}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name)

    def read_text(
        self,
        paths: Path | Iterable[Path],
        *,
        skip_header: int = 0,
        file: str | None = None,
        line_number: str | None = None,
        skip_bad: int = 0,
    ) -> Table:
        """The lines of files, as the column `line` (str).

        `paths` may have `*`, `?` and `**`; compressed files are read as what they were. The first `skip_header` lines
        of each file are passed over. `file` and `line_number` are names of columns for where each line stands. Up to `skip_bad`
        lines that are longer than they may be are left out.
        """
        files = files_of(paths)
        table = _sortmill.read_text(files, whole("skip_header", skip_header))
        return self._read(table, files, file, line_number, skip_bad)

    def read_csv(
        self,
        paths: Path | Iterable[Path],
        columns: Mapping[str, ColumnType] | None = None,
        *,
        header: bool = True,
        delimiter: str = ",",
        quote: str | None = '"',
        types: Mapping[str, ColumnType] | None = None,
        nulls: str | Sequence[str] = (),
        file: str | None = None,
        line_number: str | None = None,
        skip_bad: int = 0,
    ) -> Table:
        """The records of CSV files (RFC 4180: newlines may stand between quotes).

        `columns` are those that are read, each of its type: with a header some of the names in it, in any order, else all
        columns. Without `columns` all that the header names are read, as str or what `types` says; for that the first file
        must be there. The header must be the same in all files.

        In a column where values may be missing (`int | None`) an empty one is `None`, unless it is of `str` or `bytes`: an empty
        text is one. `nulls` are texts that say `None`, as `["NA", ""]`, in all such columns; in those of `str` and `bytes` only
        where no quotes are around them.

        Up to `skip_bad` bad records are left out, of all files together and in each run anew: those with too many columns or too
        few, with a value that is none of its type, or with a quote out of place, which counts once for each line that it makes a
        part of its record. The report counts them and tells the first; one more is an `InputError`.
        """
        files = files_of(paths)
        if columns is None:
            if not header:
                raise UsageError("without a header nothing names the columns: columns={'city': str}")
            columns = typed(_sortmill.csv_names(files, delimiter, quote), types or {})
        elif types is not None:
            raise UsageError("columns have their types already; types= is for when there are none")
        table = _sortmill.read_csv(files, columns_of(columns), header, delimiter, quote, names_of("nulls", nulls))
        return self._read(table, files, file, line_number, skip_bad)

    def read_jsonl(
        self,
        paths: Path | Iterable[Path],
        columns: Mapping[str, ColumnType] | None = None,
        *,
        file: str | None = None,
        line_number: str | None = None,
        skip_bad: int = 0,
    ) -> Table:
        """JSON objects, one a line: the members that `columns` names, each of its type and in every object.

        What lies in a member is named by the steps to it, with dots between: `"user.name"`, `"tags.0"`; a backslash has a dot be part
        of a name. A member that is called just so goes before. As `str` an object or a list is its JSON, as it stands there.
        Where values may be missing (`int | None`) one that is `null` or not there is `None`. Without `columns` they are the members
        of the objects that the first file begins with (1 MiB; it must be there), but for lists and objects, each of the type that its
        values have there (text is `str`, a time too), and any of them may be missing.

        Up to `skip_bad` bad records are left out, of all files together and in each run anew: lines that are no objects, lack a
        member that must be there, or have one of another type. The report counts them and tells the first; one more is an
        `InputError`.
        """
        files = files_of(paths)
        asked = columns_of(columns) if columns is not None else _sortmill.jsonl_columns(files, whole("skip_bad", skip_bad))
        return self._read(_sortmill.read_jsonl(files, asked), files, file, line_number, skip_bad)

    def read_fixed(
        self,
        paths: Path | Iterable[Path],
        record_bytes: int,
        *,
        key: tuple[int, int] = (0, 10),
        file: str | None = None,
        skip_bad: int = 0,
    ) -> Table:
        """Records of `record_bytes` bytes each, as the columns `key` and `value` (bytes).

        `key` says where the key lies, offset and bytes; the value is all in front of it and behind it. Up to `skip_bad` that are
        cut off are left out.
        """
        files = files_of(paths)
        return self._read(_sortmill.read_fixed(files, *_fixed(record_bytes, key)), files, file, None, skip_bad)

    def read_kv(self, paths: Path | Iterable[Path], *, file: str | None = None, skip_bad: int = 0) -> Table:
        """Pairs as the columns `key` and `value` (bytes): two lengths, each a little-endian u32, then key and value.

        Up to `skip_bad` that are cut off, or longer than they may be, are left out.
        """
        files = files_of(paths)
        return self._read(_sortmill.read_kv(files), files, file, None, skip_bad)

    def from_iter(self, iterable: Iterable[Any], columns: Mapping[str, ColumnType]) -> Table:
        """The records of an iterable: dictionaries, tuples in the order of `columns`, or of one column its values.

        It is read while the pipeline runs, from another thread, and never far ahead of it. A list is read anew for each
        run and each output; an iterator can be read once. What it raises is the `__cause__` of a `FunctionError`.
        """
        return Table(self, _sortmill.from_iter(iterable, columns_of(columns)))

    def paste(self, *files: tuple[Path, Mapping[str, ColumnType]]) -> Table:
        """Files that `write_rows` wrote, side by side: of each its path and its columns, of which the first is the group.

        A record comes out for each group that is in any of them: the group, then the other columns of each file, with 0, `False` or
        an empty text where a file has no record of it. They must have been written directly behind a `group_by` or a `distinct`
        of one column, whose groups come in one order whatever is computed of them, so each is read once and nothing is brought
        together again; a file in another order is an `InputError`. The group is called as in the first file.
        """
        named = [(os.fspath(path), columns_of(columns)) for path, columns in files]
        return Table(self, _sortmill.paste(named), [path for path, _ in named])

    def _read(self, table: _sortmill.Table, files: list[str], file: str | None, line_number: str | None, skip_bad: int) -> Table:
        if file is not None or line_number is not None:
            table = table.with_place(file, line_number)
        if whole("skip_bad", skip_bad) > 0:
            table = table.with_skip_bad(skip_bad)
        return Table(self, table, files)

    def from_arrow(self, source: Any) -> Table:
        """The records of anything with an Arrow stream: a table or a reader of pyarrow, a frame of Polars, a relation of
        DuckDB, a frame of pandas (an index without a name is left out). They are taken as they are needed, a batch at a time; a
        reader can be read once.
        """
        if isinstance(source, Table):
            raise UsageError(
                "from_arrow takes records that are there: collect_arrow(memory=...) of a table of a pipeline makes them. "
                "Verbs can follow on the table itself, too"
            )
        return Table(self, _sortmill.from_arrow(without_index(source)))

    def run(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Iterable[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
        progress: Watch = None,
    ) -> Report:
        """Does it: when this returns, the output is complete, proven, and has its name.

        Several outputs are made one after the other, each from the inputs, so none may be read by one behind it: each is there
        whole or not at all, and an error leaves those that were complete before. Those that an earlier run has made are not made
        again, unless there are no others. One that failed is tried again, but where others have been asked for since: then it is
        forgotten, with a warning.

        `memory` is the most the engine may use, in bytes or as "4 GiB"; half of what is available if not said, more where
        a job needs that at least. `temp` are
        folders for temporary files, used at once. Functions of yours run in so many `processes`, as many as threads if not
        said, 0 for this one, which an interpreter without a GIL takes unasked; each of them may have `worker_memory` in use.
        `progress` shows how far it is, on a terminal and in a notebook if not said; a function of yours gets a dictionary many
        times a second, and what it raises ends the job.
        """
        settings = asked(memory, temp, threads, processes, worker_memory)
        begin, jobs = self._written()
        self._tried, self._failed = len(self._jobs), None
        outputs, reads = self._outputs[begin:], self._reads[begin:]
        pipes: list[str] = []
        for number, job in enumerate(jobs):
            with self._trying(outputs[number]):
                job.check()
                for pipe in job.pipes() if len(jobs) > 1 else []:
                    if pipe in pipes:
                        raise UsageError(f"{pipe} is a pipe, which can be read once, and two outputs are made from it: write it to a file first")
                    pipes.append(pipe)
        for number, files in enumerate(reads):
            with self._trying(outputs[number]):
                _none_read(outputs[:number], files, "is read for the outputs behind it, too: write it last, or to another place")
        reports: list[tuple[str, str, str]] = []
        for number, job in enumerate(jobs):
            why = "has become one of the files that are read: write it to another place"
            with self._trying(outputs[number]):
                _none_read(outputs[:number], reads[number], why)
                reports.append(_watched(job.run, settings, progress))
            self._made = max(self._made, begin + number + 1)
        return Report.joined(reports, [id(files) for files in reads])

    @contextmanager
    def _trying(self, output: str) -> Iterator[None]:
        """Notes that an output could not be made; not that somebody ended the run."""
        try:
            yield
        except Exception:
            self._failed = output
            raise

    def explain(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Iterable[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
    ) -> str:
        """What a run would do: phases, memory, temporary space, where functions run."""
        settings = asked(memory, temp, threads, processes, worker_memory)
        _, jobs = self._written()
        told = [job.explain(settings) for job in jobs]
        if len(told) == 1:
            return told[0]
        heads = [f"output {number} of {len(told)}, made from the inputs\n" for number in range(1, len(told) + 1)]
        return "".join(head + one for head, one in zip(heads, told))

    def _written(self) -> tuple[int, list[_sortmill.Job]]:
        """The outputs of a run, and how many are in front of them."""
        if not self._jobs:
            raise UsageError("nothing is written: a pipeline ends with write_csv, write_jsonl or write_text")
        failed = self._failed
        if failed is not None and len(self._jobs) > self._tried and (at := self._outputs.index(failed)) >= self._made:
            # It would end this run, too, and each one behind it.
            self._drop(at)
            told = f"{failed} could not be made and is not tried again, now that others are asked for: write it anew to have it"
            warnings.warn(told, stacklevel=3)
        begin = self._made if self._made < len(self._jobs) else 0
        return begin, self._jobs[begin:]

    def _drop(self, at: int) -> None:
        """Forgets an output of which a run has been asked."""
        if self._outputs[at] == self._failed:
            self._failed = None
        del self._outputs[at], self._reads[at], self._jobs[at]
        self._tried -= 1
        self._made -= at < self._made

    def _write(self, job: _sortmill.Job, path: Path, reads: Sequence[str]) -> Pipeline:
        name = os.path.realpath(path)
        if name in self._outputs:
            at = self._outputs.index(name)
            if at >= self._tried:
                raise UsageError(f"two outputs have the name {os.fspath(path)}")
            # It has been made, or could not be, and is said anew, as by a cell of a notebook that runs again.
            self._drop(at)
        others = [other for output, other in zip(self._outputs, self._jobs) if output != self._failed]
        known = dict(seen for other in others for seen in other.observed())
        for what, number in job.observed():
            if known.get(what, number) != number:
                raise UsageError(f"two things observed are called {what}")
        self._outputs.append(name)
        self._reads.append(reads)
        self._jobs.append(job)
        return self


class Table:
    """A table that is still to be made."""

    def __init__(self, pipeline: Pipeline, table: _sortmill.Table, reads: Sequence[str] | None = None) -> None:
        self._pipeline = pipeline
        # A list of its own tells it, and all that is made of it, from other tables that are read.
        self._reads: Sequence[str] = [] if reads is None else reads
        self._table = table
        self._unread: _sortmill.Rows | None = None
        self._report: Report | None = None

    def __repr__(self) -> str:
        return f"<a table still to be made, of {', '.join(f'{name}: {kind}' for name, kind in self.columns.items())}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name)

    def __getitem__(self, name: object) -> Never:
        if isinstance(name, str):
            raise UsageError(f"sm.col({name!r}) stands for a column in expressions, select({name!r}) is a table of it")
        raise UsageError("the records of a table are computed by iter_batches() or collect()")

    def _next(self, table: _sortmill.Table) -> Table:
        return Table(self._pipeline, table, self._reads)

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

        Built-in functions are `words`, `ngrams`, `split`, `fields` and `extract`. One of your own gets a dictionary and answers any
        number of them, or of values if there is one column; say which `columns` come out. Otherwise as `map`.
        """
        if not isinstance(function, Parts):
            return self._called("flat_map", function, columns, pure, timeout)
        parts, table = function, self._table
        kept = list(parts.keep)
        match parts.kind:
            case "words":
                return self._next(table.words(parts.column, kept, parts.lower, parts.name))
            case "ngrams":
                return self._next(table.ngrams(parts.column, kept, whole("count", parts.count), parts.lower, parts.name))
            case "split":
                return self._next(table.split(parts.column, kept, parts.by, parts.name))
            case "extract":
                return self._next(table.extract(parts.column, kept, parts.by, list(parts.columns)))
            case _:
                return self._next(table.fields(parts.column, kept, parts.by, list(parts.columns)))

    def map(
        self,
        function: Callable[[Record], Any] | type[Any],
        columns: Mapping[str, ColumnType] | None = None,
        *,
        pure: bool = False,
        timeout: float | None = None,
    ) -> Table:
        """For each record the one that a function makes of it, or none where it answers `None`.

        A class is called without arguments in each worker, and its object with each record. So is a copy of an object that has
        a `finish`, as it was when the pipeline began. A worker process that dies
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

        In a column where values may be missing (`int | None`) whole numbers and bools stay what they are: numpy has a masked
        array of them, pandas a column of `Int64`, `UInt64` or `boolean`. It answers the same, or anything else with an Arrow interface; the columns that come out are `columns`, those that
        came in if not said. A batch has at most `batch_size` records, about 1 MiB. Otherwise as `map`.
        """
        given = list(self.columns.items())
        made = given if columns is None else columns_of(columns)
        batches = Batches(function_of("map_batches", function), batch_format, made, given)
        how = (whole("batch_size", batch_size, 1), flag("pure", pure), timeout_of(timeout))
        return self._next(self._table.call("map_batches", batches, made, how))

    def map_command(
        self,
        command: Sequence[Path],
        *,
        column: str | None = None,
        name: str | None = None,
        columns: Mapping[str, ColumnType] | None = None,
        batch_format: Literal["lines", "arrow"] = "lines",
        batch_size: int = BATCH_SIZE,
        timeout: float | None = None,
    ) -> Table:
        """What a program makes of the lines of a column, as lines of another one; or of batches of all columns.

        It is started for each batch of at most `batch_size` records, about 1 MiB, and must end with exit code 0, within
        `timeout` seconds if that is said. It reads the lines of `column` on its standard input and writes any number of lines,
        the column `name`; both are `"line"` if nothing is said. So `uniq -c`, `head -1` or an `END` block of awk answer once for each
        batch, not once for all lines. With `batch_format="arrow"` it reads a stream of Arrow's (IPC
        streaming format) of a batch with all columns, and writes one with any number of batches of `columns`.
        """
        size = whole("batch_size", batch_size, 1)
        made = spoken_of(batch_format, column, name, columns)
        return self._next(self._table.command(words_of(command), made, size, timeout_of(timeout)))

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
        how = (BATCH_SIZE, flag("pure", pure), timeout_of(timeout))
        return self._next(self._table.call(kind, function_of(kind, function), columns_of(columns), how))

    def filter(
        self,
        function: Expr | Callable[[Record], Any] | type[Any],
        *,
        pure: bool = False,
        timeout: float | None = None,
    ) -> Table:
        """The records for which a condition is true, as `col("n") > 3` or `matches("line", "error")`; or those, as dictionaries, for
        which a function answers true, otherwise as `map`."""
        if isinstance(function, Matches) and function.of is not None:
            return self._next(self._table.matches(*function.of))
        if isinstance(function, Expr):
            return self._next(self._table.keep_if(function._expr))
        how = (BATCH_SIZE, flag("pure", pure), timeout_of(timeout))
        return self._next(self._table.call("filter", function_of("filter", function), None, how))

    def with_columns(self, *unnamed: Never, **computed: Operand) -> Table:
        """All columns, and behind them those that are computed, or in place of others of their names.

        They are expressions of columns: `total=col("price") * col("count")`, `part=hash("user") % 8`, `n=parse("n", int)`. A
        value is the same in each record. All are computed of the columns that come in.
        """
        named("with_columns", unnamed, "x=sm.col('a') * 2")
        return self._next(self._table.with_columns(computed_of(computed)))

    def observe(self, *unnamed: Never, **aggregates: Aggregate) -> Table:
        """The same records; what the aggregates make of all of them is in `Report.observed` under their names.

        They are those that need no order: not `first`, `count_distinct`, `quantile` and `string_agg`. A sum that its type does not
        hold is told as a float.
        """
        named("observe", unnamed, "n=sm.count()")
        return self._next(self._table.observe(aggregates_of(aggregates)))

    def unpivot(self, *columns: str | Sequence[str], name: str) -> Table:
        """For each record one for each of these columns, in this order: its value as the column `name`, behind all others.

        The columns are of one type and are not there any more.
        """
        return self._next(self._table.unpivot(names_of("unpivot", columns), name))

    def unpack(self, column: str, *, name: str) -> Table:
        """For each record one for each number of the list in `column`, which `Groups.pack` made, in place of that and called `name`.

        The other columns are as they were. Of an empty list there are none.
        """
        return self._next(self._table.unpack(column, name))

    def sample(self, fraction: float, *, seed: int = 0) -> Table:
        """Each record with a probability: the same ones for a seed. In front of all that brings records together; behind that
        the hash of a column draws: `filter(hash("x") % 1000 < 100)`.
        """
        return self._next(self._table.sample(fraction, whole("seed", seed)))

    def shuffle(self, *, seed: int = 0, epoch: int = 0) -> Table:
        """All records in random order, every order equally likely: the same for a seed and an epoch."""
        return self._next(self._table.shuffle(whole("seed", seed), whole("epoch", epoch)))

    def select(self, *columns: str | Sequence[str]) -> Table:
        """Only these columns, in this order: names, or a list of them."""
        return self._next(self._table.select(names_of("select", columns)))

    def sort(
        self,
        by: str | Sequence[str],
        *more: str,
        descending: bool | Sequence[bool] = False,
        nulls_last: bool | Sequence[bool] = False,
    ) -> Table:
        """All records in the order of some columns; those that are equal there keep their order.

        Records without a value come first, or last, in either direction.
        """
        names = names_of("sort", [by, *more]) if more else by
        return self._next(self._table.sort(order_of(names, descending, nulls_last)))

    def top(self, n: int, by: str | Sequence[str], *, descending: bool | Sequence[bool] = True) -> Table:
        """The `n` records with the greatest values; of equal ones those that are first by all other columns.

        Records without a value come last.
        """
        return self._next(self._table.top(whole("top", n), by_of(by, descending)))

    def distinct(self, *columns: str | Sequence[str], order: GroupOrder = "none") -> Table:
        """Each different record once, in no order that means anything, or sorted by all columns upwards, as `group_by` has it.

        With `columns` of the records that are equal in these the first one of the input, with all its columns; sorted by these.
        """
        names = names_of("distinct", columns) if columns else None
        return self._next(self._table.distinct(names, is_sorted(order)))

    def group_by(self, *columns: str | Sequence[str], order: GroupOrder = "grouped") -> Groups:
        """Groups of the records that are equal in these columns.

        What comes of one group stands together, in the order of a hash. With `order="sorted"` groups come in the order of their
        columns, upwards, those without a value last: in one job, where a `sort` of what comes out is a second one. It costs longer
        keys. With `"none"` any order will do, which is no other.
        """
        return Groups(self, names_of("group_by", columns), is_sorted(order))

    def agg(self, *unnamed: Never, **aggregates: Aggregate) -> Table:
        """One record: what the aggregates make of all records, each under its name here.

        They are those of `Groups.agg`. Of a table that turns out to have no records there is none either. `observe` tells some of
        them in the report, of records that pass by.
        """
        named("agg", unnamed, "n=sm.count()")
        return self._next(self._table.aggregate_all(aggregates_of(aggregates)))

    @property
    def schema(self) -> dict[str, str]:
        """Names and types of its columns; another name of `columns`."""
        return self.columns

    def collect_arrow(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Iterable[Path] | None = None,
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
        settings = asked(memory, temp, threads, processes, worker_memory)
        told, rows = _watched(self._table.hold, settings, progress)
        self._report = Report(*told)
        return ArrowResult(self._report, rows, self.columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """`collect_arrow` as it is without arguments, as an Arrow stream.

        Who asks several times and reads once, as DuckDB does to see the schema, has it computed once: what nobody has read yet is
        what the next one gets.
        """
        stream = self._unread.stream_once() if self._unread else None
        if stream is None:
            self._unread = self.collect_arrow()._rows
            stream = self._unread.stream_once()
        return stream

    def head(
        self,
        n: int = 10,
        *,
        sample: int | str | None = SAMPLE,
        memory: int | str | None = None,
        temp: Path | Iterable[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
        progress: Watch = None,
    ) -> list[Record]:
        """Its first records, as dictionaries, without running the pipeline.

        Where every verb makes records of one at a time, the beginnings of the files are read (at most 32 MiB of each) and
        nothing else, and functions of yours are called in this process. Behind verbs that bring records together it is the
        table that comes of a `sample`: so many bytes of all files together (at most 1 GiB), of each its beginning. Where that is not
        all there is, a `SampleWarning` says so, as it does where fewer records than asked come out of the beginnings.

        With `sample=None` the table is computed as for `iter_batches` wherever beginnings do not tell, and so it is of pipes and
        iterators in any case.
        """
        settings = asked(memory, temp, threads, processes, worker_memory)
        records, looked_at = self._first(whole("head", n), sample, settings, progress)
        if looked_at is not None:
            warnings.warn(f"these records are {looked_at}", SampleWarning, stacklevel=2)
        return records

    def show(
        self,
        n: int = 10,
        *,
        sample: int | str | None = SAMPLE,
        memory: int | str | None = None,
        temp: Path | Iterable[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
        progress: Watch = None,
    ) -> None:
        """Prints its first records, as `head` finds them, and below whether they are of a sample."""
        settings = asked(memory, temp, threads, processes, worker_memory)
        n = whole("show", n, 0, 2**63)
        records, looked_at = self._first(n + 1, sample, settings, progress)
        print(drawn(list(self.columns), records[:n], len(records) <= n))
        if looked_at is not None:
            print(looked_at)

    def _first(
        self, count: int, sample: int | str | None, settings: dict[str, Any], progress: Watch
    ) -> tuple[list[Record], str | None]:
        """The first records, and of what they are if there is more."""
        sampled = bytes_of("sample", sample)
        found = self._table.head(count)
        if found is not None and (found[1] or sampled is not None):
            return found[0], None if found[1] else of_sample("32 MiB of each file")
        rows, is_all = self._watched_rows(sampled, settings, progress)
        return rows.read(max(count, 1))[:count], None if is_all else of_sample(f"{sample} of the files")

    def _watched_rows(self, sampled: int | None, settings: dict[str, Any], progress: Watch) -> tuple[_sortmill.RowReader, bool]:
        """All records, or those of a sample, and whether that is all."""
        if sampled is None:
            return self._held(settings, progress), True
        rows, is_all = _watched(lambda asked: self._table.hold_sampled(asked, sampled), settings, progress)[1]
        return rows, is_all

    def _held(self, settings: dict[str, Any], progress: Watch) -> _sortmill.RowReader:
        """All records."""
        rows: _sortmill.RowReader
        told, rows = _watched(self._table.hold_records, settings, progress)
        self._report = Report(*told)
        return rows

    @property
    def report(self) -> Report | None:
        """What was done, and what was observed, when this table was computed the last time: by `collect`, `iter_batches`,
        `collect_arrow`, or for whoever took it as an Arrow stream. `None` as long as it was not, or only a sample of it.
        """
        return self._report

    def iter_batches(
        self,
        size: int = 1024,
        *,
        memory: int | str | None = None,
        temp: Path | Iterable[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
        progress: Watch = None,
    ) -> Iterator[list[Record]]:
        """All records, as lists of at most `size` dictionaries: one list at a time is in memory.

        The table is computed when the first list is asked for, as for `collect_arrow`. What is said is as for
        `Pipeline.run`.
        """
        return self._batches(whole("size", size, 1), asked(memory, temp, threads, processes, worker_memory), progress)

    def _batches(self, size: int, settings: dict[str, Any], progress: Watch) -> Generator[list[Record], None, None]:
        return batches(lambda: self._held(settings, progress), size)

    def collect(
        self,
        *,
        memory: int | str | None = None,
        temp: Path | Iterable[Path] | None = None,
        threads: int | None = None,
        processes: int | None = None,
        worker_memory: int | str | None = None,
        progress: Watch = None,
    ) -> list[Record]:
        """All records, as dictionaries in memory: for results that are small."""
        found = self.iter_batches(
            memory=memory, temp=temp, threads=threads, processes=processes, worker_memory=worker_memory, progress=progress
        )
        return [record for batch in found for record in batch]

    def write_text(
        self,
        path: Path,
        *,
        files: int | None = None,
        partition: str | None = None,
        compression: Compression | None = None,
        level: int | None = None,
        mode: Mode = "overwrite",
    ) -> Pipeline:
        """Writes the values of each record to a line, with tabs between. A value with a newline is an `InputError`, as is one with a
        tab unless it is the last of its record.

        As for every `write_` function: with `files`, `path` is a folder of so many files, each of as many records as any
        other or one more, and a manifest; without, a file. `partition` is a column of whole numbers that tells the file of each
        record, from 0, and is not written; files then have as many records as come. `compression` is `"gzip"`, `"zstd"`,
        `"lz4"`, `"bzip2"`, `"xz"` or `"none"`, of a `level` that it has; if nothing is said a file is compressed as the end of
        its name says, those of a folder are not. Each of several files is compressed by itself. What is there is replaced once the new output is
        complete, or refused with `mode="error"`; a folder must be empty or what an earlier run made.
        """
        return self._write(path, "text", how_of(files, partition, compression, level, mode))

    def write_csv(
        self,
        path: Path,
        *,
        header: bool = True,
        delimiter: str = ",",
        quote: str | None = '"',
        files: int | None = None,
        partition: str | None = None,
        compression: Compression | None = None,
        level: int | None = None,
        mode: Mode = "overwrite",
    ) -> Pipeline:
        """Writes CSV, with the columns' names in the first line of each file if `header`.

        `delimiter` stands between values, whatever the file is called, and `quote` around one with a delimiter, a quote or the end of a
        line in it; with `quote=None` such a value is an `InputError`.
        """
        how = how_of(files, partition, compression, level, mode)
        job = self._table.write_csv(os.fspath(path), bool(header), delimiter, quote, how)
        return self._pipeline._write(job, path, self._reads)

    def write_jsonl(
        self,
        path: Path,
        *,
        files: int | None = None,
        partition: str | None = None,
        compression: Compression | None = None,
        level: int | None = None,
        mode: Mode = "overwrite",
    ) -> Pipeline:
        """Writes a JSON object for each record."""
        return self._write(path, "jsonl", how_of(files, partition, compression, level, mode))

    def write_arrow(
        self,
        path: Path,
        *,
        files: int | None = None,
        partition: str | None = None,
        compression: Compression | None = None,
        level: int | None = None,
        mode: Mode = "overwrite",
    ) -> Pipeline:
        """Writes a stream of Arrow batches (the IPC streaming format, `.arrows`), as `pyarrow.ipc.open_stream`,
        `polars.read_ipc_stream` and `datasets.Dataset.from_file` read it. A value of text that is not UTF-8 is an `InputError`.

        A batch has about 256 KiB, whatever the memory. Timestamps are `timestamp[us, tz=UTC]`.
        """
        return self._write(path, "arrow", how_of(files, partition, compression, level, mode))

    def write_fixed(
        self,
        path: Path,
        record_bytes: int,
        *,
        key: tuple[int, int] = (0, 10),
        files: int | None = None,
        partition: str | None = None,
        compression: Compression | None = None,
        level: int | None = None,
        mode: Mode = "overwrite",
    ) -> Pipeline:
        """Writes records of `record_bytes` bytes: of two columns, the first where `key` says and the second around it; or of
        one that is all of it. One of another size is an `InputError`.
        """
        how = how_of(files, partition, compression, level, mode)
        return self._pipeline._write(self._table.write_fixed(os.fspath(path), *_fixed(record_bytes, key), how), path, self._reads)

    def write_kv(
        self,
        path: Path,
        *,
        files: int | None = None,
        partition: str | None = None,
        compression: Compression | None = None,
        level: int | None = None,
        mode: Mode = "overwrite",
    ) -> Pipeline:
        """Writes pairs of two columns, as `read_kv` reads them."""
        return self._write(path, "kv", how_of(files, partition, compression, level, mode))

    def write_rows(self, path: Path, *, mode: Mode = "overwrite") -> Pipeline:
        """Writes records as only this version of this library reads them again, with `Pipeline.paste`."""
        return self._write(path, "rows", how_of(None, None, "none", None, mode))

    def _write(self, path: Path, form: str, how: How) -> Pipeline:
        return self._pipeline._write(self._table.write(os.fspath(path), form, how), path, self._reads)


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
