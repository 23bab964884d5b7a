"""Sorts, groups and reduces data far larger than memory.

`Pipeline` begins a program of a few lines; `sort` is the command `sortmill sort` into a file. docs/python.md has a tutorial.
"""

from ._drawn import Drawing
from ._errors import Error, FunctionError, InputError, MemoryLimitError, SampleWarning, SpaceError, UsageError
from ._express import Expr, Matches, col, from_epoch, hash, if_else, list_length, lit, matches, micros, parse, timestamp
from ._functions import Counter, counter
from ._groups import Groups
from ._pipeline import ArrowResult, Pipeline, Table
from ._report import Report
from ._sort import sort
from ._sortmill import __version__
from ._verbs import (
    Aggregate,
    ColumnType,
    Parts,
    approx_count_distinct,
    approx_quantile,
    count,
    count_distinct,
    extract,
    fields,
    first,
    max,
    mean,
    median,
    min,
    ngrams,
    quantile,
    split,
    string_agg,
    sum,
    words,
)

__all__ = [
    "Aggregate",
    "ArrowResult",
    "ColumnType",
    "Counter",
    "Drawing",
    "Error",
    "Expr",
    "FunctionError",
    "Groups",
    "InputError",
    "Matches",
    "MemoryLimitError",
    "Parts",
    "Pipeline",
    "Report",
    "SampleWarning",
    "SpaceError",
    "Table",
    "UsageError",
    "__version__",
    "approx_count_distinct",
    "approx_quantile",
    "col",
    "count",
    "count_distinct",
    "counter",
    "extract",
    "fields",
    "first",
    "from_epoch",
    "hash",
    "if_else",
    "list_length",
    "lit",
    "matches",
    "max",
    "mean",
    "median",
    "micros",
    "min",
    "ngrams",
    "parse",
    "quantile",
    "sort",
    "split",
    "string_agg",
    "sum",
    "timestamp",
    "words",
]
