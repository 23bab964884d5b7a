"""What is asked of a pipeline, looked at before the compiled part gets it: what is wrong is a `UsageError`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from . import _sortmill
from ._errors import UsageError
from ._express import Operand, expr
from ._numbers import whole
from ._verbs import Aggregate, ColumnType, columns_of

Path = str | os.PathLike[str]
Mode = Literal["error", "overwrite"]
Compression = Literal["gzip", "zstd", "lz4", "bzip2", "xz", "none"]
GroupOrder = Literal["sorted", "grouped", "none"]
How = tuple[int | None, str | None, bool, str | None, int | None]

_CODECS = ("gzip", "zstd", "lz4", "bzip2", "xz")

_LONGEST_S = 1e9
"""No timeout is longer than these seconds, some thirty years."""


def bytes_of(name: str, size: int | str | None) -> int | None:
    """A size in bytes, which may be in words."""
    if size is None:
        return None
    if not isinstance(size, str):
        try:
            return whole(name, size, 0)
        except UsageError:
            raise UsageError(f"{name} is a number of bytes, or words as '4 GiB', not {size!r}") from None
    try:
        return _sortmill.parse_size(size)
    except ValueError as error:
        raise UsageError(f"{name} is a number of bytes, or words as '4 GiB', not {size!r}: {error}") from None


def timeout_of(timeout: float | None) -> float | None:
    """Seconds, more than none."""
    if timeout is None:
        return None
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = -1.0
    if isinstance(timeout, (bool, str)) or not seconds > 0:
        raise UsageError(f"timeout is a number of seconds, more than 0, not {timeout!r}")
    return seconds if seconds < _LONGEST_S else None


def flag(name: str, value: Any) -> bool:
    """What is said or not."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} is True or False, not {value!r}")
    return value


def function_of(verb: str, function: Any) -> Any:
    """What can be called."""
    if not callable(function):
        also = "a condition, as sm.col('n') > 3, or " if verb == "filter" else ""
        raise UsageError(f"{verb} takes {also}a function, not {function!r}")
    if isinstance(function, type) and not any("__call__" in kind.__dict__ for kind in function.__mro__):
        name = function.__name__
        raise UsageError(f"{verb} makes an object of a class and calls that, and one of {name} cannot be called: lambda record: {name}(...)")
    if verb in ("apply", "reduce") and callable(getattr(function, "finish", None)):
        raise UsageError(f"a finish is called of what map, flat_map, filter and map_batches take, and {verb} takes a function")
    return function


def words_of(command: Any) -> list[str]:
    """The words of a command line."""
    if isinstance(command, (str, bytes, os.PathLike)):
        raise UsageError(f"map_command takes a list of words, the program and its arguments: [{os.fspath(command)!r}]")
    words = list(command)
    wrong = [word for word in words if not isinstance(word, (str, bytes, os.PathLike))]
    if wrong:
        raise UsageError(f"map_command takes a list of words, and {wrong[0]!r} is none")
    return [os.fsdecode(word) for word in words]


def spoken_of(
    batch_format: str, column: str | None, name: str | None, columns: Mapping[str, ColumnType] | None
) -> tuple[str, str] | list[tuple[str, str]]:
    """What a program reads and writes: the columns of lines, or those that it makes in Arrow's streams."""
    if batch_format not in ("lines", "arrow"):
        raise UsageError(f"batch_format={batch_format!r}: it is 'lines' or 'arrow'")
    if batch_format == "lines":
        if columns is not None:
            raise UsageError("columns are what a program makes of batches: batch_format='arrow'; of lines it makes the column name=")
        return ("line" if column is None else column, "line" if name is None else name)
    if column is not None or name is not None:
        raise UsageError("column= and name= are of lines: with batch_format='arrow' a program gets all columns")
    if columns is None:
        raise UsageError("say which columns the program makes: columns={'word': str}")
    return columns_of(columns)


def paths_of(paths: Path | Iterable[Path] | None) -> list[str]:
    """Paths and patterns, of which there may be one."""
    if paths is None:
        return []
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    if hasattr(paths, "read"):
        raise UsageError(
            f"{paths!r} is an open file and no path: give its name, '/dev/stdin' for standard input, or from_iter(file, {{'line': str}})"
        )
    try:
        return [os.fspath(path) for path in paths]
    except TypeError:
        raise UsageError(f"a path is text or one of pathlib, or there is a list of them, not {paths!r}") from None


def files_of(paths: Path | Iterable[Path]) -> list[str]:
    """Paths and patterns of what is read: one at least, since of nothing the output would be empty without a word."""
    found = paths_of(paths)
    if not found:
        raise UsageError(f"there is nothing to read: {paths!r} names no file")
    return found


def names_of(what: str, names: Any) -> list[str]:
    """Names of columns, one or several; among several there may be lists of them."""
    if isinstance(names, str):
        return [names]
    if not isinstance(names, (list, tuple)):
        try:
            names = list(names)
        except TypeError:
            raise UsageError(f"{what} takes names of columns, not {names!r}") from None
    made: list[str] = []
    for name in names:
        if isinstance(name, str):
            made.append(name)
        elif isinstance(name, (list, tuple)):
            made += names_of(what, name)
        else:
            raise UsageError(f"{what} takes names of columns, not {name!r}")
    return made


def how_of(
    files: int | None, partition: str | None, compression: Compression | None, level: int | None, mode: Mode
) -> How:
    """How an output is written, as the compiled part takes it."""
    if mode not in ("error", "overwrite"):
        raise UsageError(f"mode is 'error' or 'overwrite', not {mode!r}")
    if compression not in (None, *_CODECS, "none"):
        raise UsageError(f"compression is {', '.join(map(repr, _CODECS))} or 'none', not {compression!r}")
    if level is not None and compression in (None, "none"):
        raise UsageError("a level is one of a compression: say which")
    count = None if files is None else whole("files", files, 1)
    if partition is not None and not isinstance(partition, str):
        raise UsageError(f"partition is the name of a column, not {partition!r}")
    if partition is not None and count is None:
        raise UsageError("a partition is the number of one of several files: say how many there are (files=)")
    return count, partition, mode == "error", compression, None if level is None else whole("level", level, 0, 2**32 - 1)


def is_sorted(order: GroupOrder) -> bool:
    """Whether groups come in the order of their columns."""
    if order not in ("sorted", "grouped", "none"):
        raise UsageError(f"order is 'sorted', 'grouped' or 'none', not {order!r}")
    return order == "sorted"


def by_of(by: str | Sequence[str], descending: bool | Sequence[bool]) -> list[tuple[str, bool]]:
    """Columns and their directions."""
    names = names_of("by", by)
    return list(zip(names, _each(names, descending, "directions")))


def order_of(
    by: str | Sequence[str], descending: bool | Sequence[bool], nulls_last: bool | Sequence[bool]
) -> list[tuple[str, bool, bool]]:
    """Columns, their directions, and whether what has no value comes last."""
    names = names_of("by", by)
    lasts = _each(names, nulls_last, "places of what has no value")
    return list(zip(names, _each(names, descending, "directions"), lasts))


def _each(names: list[str], said: bool | Sequence[bool], what: str) -> list[bool]:
    """What is said of each column, or of all."""
    each = [said] * len(names) if isinstance(said, bool) else said
    if not isinstance(each, (list, tuple)) or not all(isinstance(one, bool) for one in each):
        raise UsageError(f"{what} are True or False, of all columns or in a list of one for each, not {said!r}")
    if len(each) != len(names):
        raise UsageError(f"{len(names)} columns and {len(each)} {what}")
    return list(each)


def typed(names: list[str], types: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
    """The type of each column."""
    if not isinstance(types, Mapping):
        raise UsageError(f"types= are those of some columns, as {{'price': float}}, not {types!r}")
    unknown = [name for name in types if name not in names]
    if unknown:
        raise UsageError(f"there is no column {unknown[0]}, only {', '.join(names)}")
    if len(set(names)) < len(names):
        raise UsageError(f"two columns have one name: {', '.join(names)}; say which columns= to read")
    return {name: types.get(name, str) for name in names}


def named(verb: str, unnamed: tuple[Any, ...], example: str) -> None:
    """Refuses what has no name where each has one."""
    if unnamed:
        raise UsageError(f"what {verb} makes has names: {verb}({example})")


def aggregates_of(aggregates: Mapping[str, Aggregate]) -> list[tuple[str, str, str, float, str]]:
    """Aggregates as the compiled part takes them."""
    for name, one in aggregates.items():
        if not isinstance(one, Aggregate):
            raise UsageError(f"{name}={one!r} is no aggregate: they are sm.count(), sm.sum('x') and so on")
        if not isinstance(one.column, str):
            raise UsageError(f"{name}: an aggregate is of a column's name, not of {one.column!r}")
    return [(one.kind, one.column, name, one.fraction, one.separator) for name, one in aggregates.items()]


def computed_of(computed: Mapping[str, Operand]) -> list[tuple[str, _sortmill.Expr]]:
    """What columns are computed of, as the compiled part takes it."""
    return [(name, expr(one)._expr) for name, one in computed.items()]


def asked(
    memory: int | str | None,
    temp: Path | Iterable[Path] | None,
    threads: int | None,
    processes: int | None,
    worker_memory: int | str | None,
) -> dict[str, Any]:
    """What a job may use, as the compiled part takes it."""
    most = 2**32 - 1
    if processes == 0 and worker_memory is not None:
        raise UsageError("worker_memory= limits processes, and processes=0 has none")
    return {
        "memory": bytes_of("memory", memory), "temp": paths_of(temp),
        "threads": None if threads is None else whole("threads", threads, 1, 1024),
        "processes": None if processes is None else whole("processes", processes, 0, most),
        "worker_memory": bytes_of("worker_memory", worker_memory), "progress": None,
    }
