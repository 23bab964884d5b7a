"""Sorts, groups and reduces data far larger than memory.

`Pipeline` begins a program of a few lines; `sort` is all that the command line can do. docs/python.md has a tutorial.
"""

from ._errors import Error, FunctionError, InputError, MemoryLimitError, SpaceError, UsageError
from ._functions import Counter, counter
from ._pipeline import ArrowResult, Groups, Pipeline, Table
from ._report import Report
from ._sort import sort
from ._sortmill import __version__
from ._verbs import (
    Aggregate,
    Parts,
    count,
    fields,
    first,
    max,
    mean,
    min,
    ngrams,
    split,
    sum,
    words,
)

__all__ = [
    "Aggregate",
    "ArrowResult",
    "Counter",
    "Error",
    "FunctionError",
    "Groups",
    "InputError",
    "MemoryLimitError",
    "Parts",
    "Pipeline",
    "Report",
    "SpaceError",
    "Table",
    "UsageError",
    "__version__",
    "count",
    "counter",
    "fields",
    "first",
    "max",
    "mean",
    "min",
    "ngrams",
    "sort",
    "split",
    "sum",
    "words",
]
