"""What verbs take: what makes records of a column, and aggregates of a group. Data, nothing more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from ._errors import UsageError

_TYPES: dict[object, str] = {
    str: "string",
    bytes: "binary",
    int: "i64",
    float: "f64",
    bool: "bool",
    datetime: "timestamp",
}
_NAMES = frozenset([*_TYPES.values(), "u64"])

ColumnType = type[str] | type[bytes] | type[int] | type[float] | type[bool] | type[datetime] | str | UnionType
"""A column's type: `str`, `bytes`, `int` (64 bits, signed), `float`, `bool`, `datetime` (of the standard library, in UTC, to the
microsecond), or a name, of which `"u64"` has no type.

Where values may be missing it is `int | None`, or a name with a question mark: `"i64?"`, `"u64?"`.
"""


def columns_of(columns: Mapping[str, ColumnType]) -> list[tuple[str, str]]:
    """Names and names of types, with a question mark where values may be missing."""
    if not isinstance(columns, Mapping):
        raise UsageError(f"columns are names with their types, as {{'city': str, 'n': int}}, not {columns!r}")
    made = []
    for name, kind in columns.items():
        known = _name_of(kind)
        if known is None:
            raise UsageError(
                f"column {name}: {kind!r} is no type; try str, bytes, int, float, bool, datetime or 'u64', "
                "or int | None where values may be missing"
            )
        made.append((name, known))
    return made


def _name_of(kind: Any) -> str | None:
    if isinstance(kind, str):
        return kind if kind.removesuffix("?") in _NAMES else None
    if get_origin(kind) in (Union, UnionType):
        kinds = [one for one in get_args(kind) if one is not NoneType]
        of = _name_of(kinds[0]) if len(kinds) == 1 else None
        return None if of is None else f"{of}?"
    return _TYPES.get(kind) if isinstance(kind, type) else None


Keep = str | Sequence[str]
"""One or several columns that stay in front of those that are made."""


def _kept(keep: Keep) -> tuple[str, ...]:
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"keep names columns that stay, not {keep!r}")
    return names


@dataclass(frozen=True)
class Parts:
    """A built-in function from one column to a record for each part of it."""

    kind: str
    column: str
    name: str | None = None
    lower: bool = False
    count: int = 1
    by: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()


def words(column: str, *, lower: bool = False, name: str = "word", keep: Keep = ()) -> Parts:
    """Each word: letters and digits of any script that stand together. Behind the columns to `keep`, as of all these functions."""
    return Parts("words", column, name, lower, keep=_kept(keep))


def ngrams(column: str, count: int, *, lower: bool = False, name: str = "ngram", keep: Keep = ()) -> Parts:
    """Each row of `count` words that follow one another, with spaces between."""
    return Parts("ngrams", column, name, lower, count, keep=_kept(keep))


def split(column: str, by: str, *, name: str = "part", keep: Keep = ()) -> Parts:
    """What stands between the places where `by` is, empty parts too."""
    return Parts("split", column, name, by=by, keep=_kept(keep))


def fields(column: str, by: str, columns: Mapping[str, ColumnType], *, keep: Keep = ()) -> Parts:
    """One record of what stands between the places where `by` is, each part read as its column's type."""
    return Parts("fields", column, by=by, columns=tuple(columns_of(columns)), keep=_kept(keep))


def extract(column: str, pattern: str, columns: Mapping[str, ColumnType], *, keep: Keep = ()) -> Parts:
    """One record of the parts in parentheses of a regular expression where it is first found, each read as its column's type.

    Records where it is not found are left out; a part in parentheses that took no part is empty, or `None` where values may
    be missing. The expression is one of Rust's crate `regex`: no look-around and no backreferences, in time linear in the text.
    """
    return Parts("extract", column, by=pattern, columns=tuple(columns_of(columns)), keep=_kept(keep))


@dataclass(frozen=True)
class Aggregate:
    """What is computed of a group."""

    kind: str
    column: str = ""
    fraction: float = 0.0
    separator: str = ""


def count(column: str | None = None) -> Aggregate:
    """How many records there are; of a column, how many values that are not `None`."""
    return Aggregate("count") if column is None else Aggregate("count_values", column)


def sum(column: str) -> Aggregate:
    """The exact sum, whatever the order; of floats the float nearest to it.

    As with every aggregate of a column but `first`, values that are `None` take no part, and of none at all it is `None`.
    """
    return Aggregate("sum", column)


def min(column: str) -> Aggregate:
    """The least value."""
    return Aggregate("min", column)


def max(column: str) -> Aggregate:
    """The greatest value."""
    return Aggregate("max", column)


def mean(column: str) -> Aggregate:
    """The exact sum over the count."""
    return Aggregate("mean", column)


def first(column: str) -> Aggregate:
    """The value in the first record, in the order of the input."""
    return Aggregate("first", column)


def count_distinct(column: str) -> Aggregate:
    """How many different values there are, exactly, however many.

    The engine puts each group in the order of this column. Where an `agg` has `count_distinct`, `quantile` or `string_agg` of several
    columns, or `first` beside them, each record is brought together once more for each of these columns.
    """
    return Aggregate("count_distinct", column)


def string_agg(column: str, separator: str = ",", *, distinct: bool = False) -> Aggregate:
    """The texts of a column in the order of their bytes, with `separator` between each two; with `distinct` each different one once.

    What SQL calls `string_agg(column, separator ORDER BY column)`. The engine puts each group in the order of this column, as for
    `count_distinct`. All texts of a group together may have a tenth of the memory, over one more than the threads: 17 MiB of 512 MiB
    with two; more is a `MemoryLimitError`. For more there is `apply(fn, sort=column)`.
    """
    if not isinstance(separator, str):
        raise UsageError(f"string_agg: what stands between texts is a text, not {separator!r}")
    if not isinstance(distinct, bool):
        raise UsageError(f"string_agg: distinct is True or False, not {distinct!r}")
    return Aggregate("string_agg_distinct" if distinct else "string_agg", column, separator=separator)


def approx_count_distinct(column: str) -> Aggregate:
    """About how many different values there are, with a standard error of 1.6 %, in 4 KiB for each group."""
    return Aggregate("approx_count_distinct", column)


def quantile(column: str, fraction: float) -> Aggregate:
    """The number that a fraction (0 to 1) of a column's numbers lie below, exactly, as a float; of groups of any size.

    Between two numbers it lies on the line from one to the other, as with numpy. The engine puts each group in order; several
    quantiles of a column cost no more than one.
    """
    return Aggregate("quantile", column, fraction)


def approx_quantile(column: str, fraction: float) -> Aggregate:
    """About what `quantile` is, in at most 64 KiB for each group and without an order within groups.

    To 0.8 % of the number that is nearest in order, where the greatest number is at most a billion times the least and both have
    one sign, to 1.6 % up to 10^18; just as `quantile` where at most 2048 numbers differ.
    """
    return Aggregate("approx_quantile", column, fraction)


def median(column: str) -> Aggregate:
    """The number in the middle: `quantile(column, 0.5)`."""
    return quantile(column, 0.5)
