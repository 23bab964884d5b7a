"""What functions of the user's are given and may use, in this process and in worker processes."""

from __future__ import annotations

import copy
import functools
import json
import operator
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ._errors import UsageError

_here = threading.local()

Record = dict[str, Any]


class Counter:
    """A sum over all records of a run, by name."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise UsageError(f"a counter has a name, and {name!r} is none")
        self.name = name

    def add(self, count: int = 1) -> None:
        """Adds to it, a whole number."""
        try:
            number = operator.index(count)
        except TypeError:
            raise UsageError(f"counter {self.name} counts whole numbers, not {count!r}") from None
        counts: dict[str, int] = _here.__dict__.setdefault("counts", {})
        counts[self.name] = counts.get(self.name, 0) + number


def counter(name: str) -> Counter:
    """The counter of this name, to be used in a function of a pipeline; `Report.counters` has the sums.

    What a function counts of a batch counts once, however often a worker process died over it, and not at all of records
    that are only looked at to plan the job. A function that several outputs of a run share is called with all records for each;
    what it counts is that of one.
    """
    return Counter(name)


def counted() -> bytes:
    """What this thread counted since this was last asked, as JSON; nothing if nothing."""
    counts = _here.__dict__.pop("counts", None)
    if not counts:
        return b""
    return json.dumps({name: max(-_COUNT_MAX - 1, min(count, _COUNT_MAX)) for name, count in counts.items()}).encode()


_COUNT_MAX = 2**63 - 1
"""Counts stay there, and do not begin anew below."""


def interrupt(threads: list[int], exception: type[BaseException]) -> None:
    """Raises an exception in functions that these threads are in: Ctrl-C raises it in the main thread alone."""
    import ctypes

    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    for thread in threads:
        raise_in(ctypes.c_ulong(thread), ctypes.py_object(exception))


class Batches:
    """A function of batches, with what stands between the engine's batches and those it wants."""

    def __init__(
        self, function: Any, batch_format: str, columns: list[tuple[str, str]], given: list[tuple[str, str]]
    ) -> None:
        if batch_format not in ("pyarrow", "numpy", "pandas"):
            raise UsageError(f"batch_format={batch_format!r}: it is 'pyarrow', 'numpy' or 'pandas'")
        needs_pyarrow("functions of batches")
        self.function = function
        self.batch_format = batch_format
        self.columns = columns
        self.given = given

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa

        given = pa.record_batch(batch)
        if self.batch_format == "pyarrow":
            made = self.function(given)
        elif self.batch_format == "numpy":
            kinds = dict(self.given)
            made = self.function({name: _array(given[name], kinds[name]) for name in given.schema.names})
        else:
            made = self.function(_frame(given, self.given))
        return self.taken(made)

    def taken(self, made: Any) -> Any:
        """What a function made, as something with an Arrow interface."""
        import pyarrow as pa

        if made is None:
            raise TypeError("the function made None and no batch")
        if isinstance(made, dict):
            kinds = dict(self.columns)
            return pa.RecordBatch.from_pydict({name: _column(column, kinds.get(name)) for name, column in made.items()})
        if _is_frame(made):
            # Its own schema has its index and what types it guessed.
            kinds = dict(self.columns)
            return pa.RecordBatch.from_pydict({name: _column(made[name], kinds.get(name)) for name in made.columns})
        return made


def needs_pyarrow(who: str) -> None:
    """Says so where it is not there."""
    try:
        import_module("pyarrow")
    except ImportError as missing:
        raise UsageError(f"{who} need pyarrow: pip install 'sortmill[arrow]', or in a checkout pip install '.[arrow]'") from missing


def _is_frame(made: Any) -> bool:
    """Whether it is one of pandas, which need not be there."""
    return hasattr(made, "to_feather") and hasattr(made, "columns")


def without_index(source: Any) -> Any:
    """A frame of pandas as a table without an index that has no name; what is no frame as it is."""
    if not _is_frame(source):
        return source
    needs_pyarrow("frames of pandas")
    import pyarrow as pa

    table = pa.Table.from_pandas(source)
    return table.select([name for name in table.column_names if not name.startswith("__index_level_")])


class Reduced:
    """A function of two records, as one of a group, which stays of the group whatever the function makes of its key."""

    def __init__(self, function: Any, by: list[str], is_all: bool) -> None:
        self.function = function
        self.by = by
        self.is_all = is_all

    def __call__(self, key: Any, records: Any) -> Any:
        made = functools.reduce(self.function, records)
        if self.is_all and len(self.by) == 1:
            # Of one column the value alone is a record, too.
            return (key,)
        if isinstance(made, dict):
            made = {**made, **dict(zip(self.by, key if len(self.by) > 1 else (key,), strict=True))}
        return (made,)


_WHOLE = ("i64?", "u64?", "bool?")
"""Where values may be missing, types of which numpy has no value for one that is, and would make floats."""


def _array(column: Any, kind: str) -> Any:
    """An array of numpy that may be written to; of whole numbers and bools some of which may be missing a masked one, so that all
    others stay exact."""
    if kind not in _WHOLE:
        return column.to_numpy(zero_copy_only=False, writable=True)
    import numpy as np

    mask = column.is_null().to_numpy(zero_copy_only=False)
    filled = column.fill_null(0 if kind != "bool?" else False)
    return np.ma.masked_array(filled.to_numpy(zero_copy_only=False, writable=True), mask)


def _frame(batch: Any, columns: list[tuple[str, str]]) -> Any:
    """A frame of pandas; whole numbers and bools some of which may be missing are of types that have such values."""
    if not any(kind in _WHOLE for _, kind in columns):
        return batch.to_pandas()
    import pandas as pd

    types = {"i64?": pd.Int64Dtype(), "u64?": pd.UInt64Dtype(), "bool?": pd.BooleanDtype()}
    plain = [name for name, kind in columns if kind not in _WHOLE]
    frame = batch.select(plain).to_pandas()
    for name, kind in columns:
        if kind in _WHOLE:
            frame[name] = types[kind].__from_arrow__(batch[name])
    return frame[[name for name, _ in columns]]


def _column(values: Any, kind: str | None) -> Any:
    """An Arrow array of values, of the type that the column has where that loses nothing.

    Where values may be missing NaN of numpy and pandas is one that is: whole numbers are floats there as soon as one is.
    """
    import pyarrow as pa

    kinds = {
        "string": pa.string(), "binary": pa.binary(), "i64": pa.int64(), "u64": pa.uint64(),
        "f64": pa.float64(), "bool": pa.bool_(), "timestamp": pa.timestamp("us", tz="UTC"),
    }
    nullable = kind is not None and kind.endswith("?")
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        array = values
    elif hasattr(values, "mask") and hasattr(values, "filled"):
        # A masked array of numpy.
        import numpy as np

        array = pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values), from_pandas=nullable)
    else:
        array = pa.array(values, from_pandas=nullable)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    wanted = kinds.get((kind or "").removesuffix("?"))
    if pa.types.is_integer(array.type):
        # As floats, too, where all of them are ones; an error else.
        return array.cast(wanted) if wanted in (kinds["i64"], kinds["u64"], kinds["f64"]) else array
    is_float = nullable and pa.types.is_floating(array.type)
    return array.cast(wanted) if is_float and wanted in (kinds["i64"], kinds["u64"]) else array


def begin(function: Any) -> tuple[Any, Any]:
    """What is called with records, and what is called when there are no more: of a class an object that is made now, and of an
    object that has a `finish` a copy, because each worker has a state of its own."""
    if isinstance(function, Batches):
        called, finish = begin(function.function)
        batches = Batches(called, function.batch_format, function.columns, function.given)
        if finish is None:
            return batches, None

        def finished() -> Any:
            made = finish()
            return None if made is None else batches.taken(made)

        return batches, finished
    if isinstance(function, Reduced):
        called, finish = begin(function.function)
        return Reduced(called, function.by, function.is_all), finish
    if isinstance(function, type):
        made = function()
        return made, getattr(made, "finish", None)
    if _finishes(function):
        made = copy.deepcopy(function)
        return made, made.finish
    return function, None


def _finishes(function: Any) -> bool:
    return callable(getattr(function, "finish", None))


def about(function: Any) -> tuple[str, bool]:
    """Its name, and whether each worker has an object of its own: of a class, or of an object with a `finish`."""
    if isinstance(function, (Batches, Reduced)):
        return about(function.function)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name.rsplit("<locals>.", 1)[-1], isinstance(function, type) or _finishes(function)


Function = Callable[..., Any]
