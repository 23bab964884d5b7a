"""Expressions of columns: what operators and functions make of them, record by record and without Python."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ._errors import UsageError
from ._instead import hinted
from ._numbers import whole
from ._sortmill import Expr as _Expr
from ._verbs import ColumnType, columns_of


class Expr:
    """What is computed of the values of a record: `col("price") * col("count") + 1`.

    Whole numbers stay whole and are exact: what a `u64`, or with an `int` in it an `int`, cannot hold is an `InputError`, as is
    a remainder by 0. Beside a float all are floats, and `/` always makes one, as IEEE 754 has it. Of `None` it is `None`.
    Conditions are joined by `&`, `|` and `~`. A `timedelta` is added to a time, or taken from it; the difference of two times is an
    `int`, in microseconds.
    """

    def __init__(self, expr: _Expr) -> None:
        self._expr = expr

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name)

    def cast(self, type: ColumnType) -> Expr:
        """The same as a value of another type: of floats the whole part, of `False` and `True` 0 and 1, as `str` the text in a CSV.

        A number that the type does not hold is an `InputError`, and what is `None` stays so. What text says tells `parse`, and what a
        time is as a number `micros`.
        """
        (name,) = (name for _, name in columns_of({"cast": type}))
        return Expr(self._expr.cast(name.removesuffix("?")))

    def sqrt(self) -> Expr:
        """The square root of a number, a float; NaN of one below zero."""
        return self._unary("sqrt")

    def is_null(self) -> Expr:
        """Whether it is `None`."""
        return self._unary("is_null")

    def fill_null(self, other: Operand) -> Expr:
        """The same, and `other` where it is `None`."""
        return self._binary("fill_null", other)

    def truncate(self, every: str | timedelta) -> Expr:
        """Of a time the beginning of the hour, day and so on that it is in: `truncate("1h")`.

        `every` is a whole number and a unit, `us`, `ms`, `s`, `m`, `h`, `d` or `w`, or a `timedelta`. Multiples are counted from 1970 in
        UTC; those of `w` are of weeks that begin on Mondays, from 1970-01-05 on.
        """
        text = f"{_micros_of(every)}us" if isinstance(every, timedelta) else every
        if not isinstance(text, str):
            raise UsageError(f"truncate takes a length of time, as '15m' or a timedelta, not {every!r}")
        return Expr(self._expr.function("truncate", text, 0))

    def is_in(self, values: Iterable[Operand]) -> Expr:
        """Whether it is one of `values`, as `==` has it; to look among many takes no longer than among few."""
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise UsageError(f"is_in takes a list of values, not {values!r}")
        return Expr(self._expr.is_in([expr(value)._expr for value in values]))

    def __add__(self, other: Operand | timedelta) -> Expr:
        if isinstance(other, timedelta):
            return Expr(self._expr.offset_by(_micros_of(other)))
        return self._binary("+", other)

    def __radd__(self, other: Operand | timedelta) -> Expr:
        if isinstance(other, timedelta):
            return self + other
        return expr(other)._binary("+", self)

    def __sub__(self, other: Operand | timedelta) -> Expr:
        if isinstance(other, timedelta):
            return Expr(self._expr.offset_by(-_micros_of(other)))
        return self._binary("-", other)

    def __rsub__(self, other: Operand) -> Expr:
        return expr(other)._binary("-", self)

    def __mul__(self, other: Operand) -> Expr:
        return self._binary("*", other)

    def __rmul__(self, other: Operand) -> Expr:
        return expr(other)._binary("*", self)

    def __truediv__(self, other: Operand) -> Expr:
        return self._binary("/", other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return expr(other)._binary("/", self)

    def __floordiv__(self, other: Operand) -> Expr:
        return self._binary("//", other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return expr(other)._binary("//", self)

    def __mod__(self, other: Operand) -> Expr:
        return self._binary("%", other)

    def __rmod__(self, other: Operand) -> Expr:
        return expr(other)._binary("%", self)

    def __and__(self, other: Operand) -> Expr:
        return self._binary("and", other)

    def __rand__(self, other: Operand) -> Expr:
        return expr(other)._binary("and", self)

    def __or__(self, other: Operand) -> Expr:
        return self._binary("or", other)

    def __ror__(self, other: Operand) -> Expr:
        return expr(other)._binary("or", self)

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return self._binary("==", other)

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return self._binary("!=", other)

    def __lt__(self, other: Operand) -> Expr:
        return self._binary("<", other)

    def __le__(self, other: Operand) -> Expr:
        return self._binary("<=", other)

    def __gt__(self, other: Operand) -> Expr:
        return self._binary(">", other)

    def __ge__(self, other: Operand) -> Expr:
        return self._binary(">=", other)

    def __neg__(self) -> Expr:
        return self._unary("-")

    def __abs__(self) -> Expr:
        return self._unary("abs")

    def __invert__(self) -> Expr:
        return self._unary("not")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise UsageError("an expression is true or false of each record only: join conditions by &, | and ~, with parentheses")

    def __repr__(self) -> str:
        return "<an expression of columns>"

    def _unary(self, symbol: str) -> Expr:
        return Expr(self._expr.unary(symbol))

    def _binary(self, symbol: str, other: Operand) -> Expr:
        return Expr(self._expr.binary(symbol, expr(other)._expr))


Operand = Expr | bool | int | float | str | bytes | datetime
"""What an expression may stand beside: another, or a value."""


def expr(value: Operand) -> Expr:
    """An expression as it is, or a value as one."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, datetime):
        return Expr(_Expr.time(value))
    if isinstance(value, timedelta):
        raise UsageError(
            "a timedelta is added to a time and taken from it; beside numbers, as the difference of two times is one, stands "
            "timedelta(...) // timedelta(microseconds=1)"
        )
    if value is None:
        raise UsageError("None stands in if_else alone: is_null() tells where a value is missing, and fill_null() what stands there then")
    if not isinstance(value, (bool, int, float, str, bytes)) and hasattr(value, "item"):
        # A number of numpy.
        value = value.item()
    if not isinstance(value, (bool, int, float, str, bytes)):
        raise UsageError(f"{value!r} is neither an expression nor a number, text, bytes, bool or datetime")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise UsageError(f"{value} is no number of 64 bits")
    return Expr(_Expr.literal(value))


def col(name: str) -> Expr:
    """The value of a column."""
    return Expr(_Expr.column(name))


def lit(value: bool | int | float | str | bytes | datetime) -> Expr:
    """A value, the same in each record. A whole number is an `int`, but beside values of `u64` one of these if it can be."""
    return expr(value)


def if_else(condition: Expr, then: Operand | None, otherwise: Operand | None) -> Expr:
    """The one where `condition` is true, and else, also where it is `None`, the other. Only that one is computed.

    `None` as one of both is a value that is missing, of the type of the other.
    """
    one, other = (_Expr.null() if value is None else expr(value)._expr for value in (then, otherwise))
    return Expr(_Expr.if_else(expr(condition)._expr, one, other))


def list_length(column: str) -> Expr:
    """How many numbers a list has that `Groups.pack` made."""
    return col(column)._unary("list_length")


def parse(column: str | Expr, type: ColumnType, *, format: str | None = None) -> Expr:
    """The value of a type that text says; a text that says none is an `InputError`.

    Of `None` it is `None`, and of an empty text, too, where values may be missing, as with `int | None`. A `format` is one of times, as
    `timestamp` has it.
    """
    (name,) = (name for _, name in columns_of({"parse": type}))
    if format is None:
        return Expr(_of(column).function("parse", name, 0))
    if name not in ("timestamp", "timestamp?") or not isinstance(format, str):
        raise UsageError(f"a format is text, and one of times: parse('x', datetime, format='%d/%b/%Y'), not of {type!r} {format!r}")
    parsed = _of(column).function("parse_time", format, 0)
    return Expr(parsed.or_null() if name == "timestamp?" else parsed)


def timestamp(column: str | Expr, *, format: str | None = None) -> Expr:
    """The date, or date and time, that text says as RFC 3339 has it: a `datetime` in UTC. The same as `parse(column, datetime)`.

    Between date and time stands a space or a `T`; without a zone it is UTC, and of the seconds six digits behind the point count.
    Of `None` it is `None`, and of an empty text of a column where values may be missing, too.

    A `format` is what `strptime` takes: `%Y`, `%m`, `%d`, `%H`, `%M`, `%S` of as many digits as they have, `%f` of one to six, `%b` of
    three letters in English, `%z`, `%%`, and anything else as it is: `"%d/%b/%Y:%H:%M:%S %z"`. It has a year, a month and a day.
    """
    return parse(column, datetime, format=format)


def from_epoch(column: str | Expr, unit: str = "s") -> Expr:
    """The time so many seconds, milliseconds or microseconds (`"s"`, `"ms"`, `"us"`) after 1970 began in UTC, a `datetime`.

    They are whole numbers, of a column or an expression. A time that is not in the years 1 to 9999 is an `InputError`; of `None` it is
    `None`. `micros` is the other way.
    """
    if not isinstance(unit, str) or unit not in _UNITS:
        raise UsageError(f"unit is 's', 'ms' or 'us', not {unit!r}; of others // and * make one")
    return Expr(_of(column).function("from_epoch", "", _UNITS[unit]))


_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Microseconds of each unit."""


def _micros_of(length: timedelta) -> int:
    """A length of time in microseconds, as long as 64 bits hold it: no time is that far from another."""
    micros = length // timedelta(microseconds=1)
    return max(-(2**63) + 1, min(micros, 2**63 - 1))


def micros(column: str | Expr) -> Expr:
    """Of a column of `datetime` the microseconds since 1970 in UTC, an `int`; of `None` it is `None`."""
    return Expr(_of(column).function("micros", "", 0))


def hash(column: str | Expr, *, seed: int = 0) -> Expr:
    """A hash of the value (XXH3, 64 bits), the same on every machine, and of values that are one group, as -0.0 and 0.0; of `None` it is
    `None`."""
    return Expr(_of(column).function("hash", "", whole("seed", seed)))


class Matches(Expr):
    """Whether a regular expression is found in a column, or not."""

    def __init__(self, column: str | Expr, pattern: str, invert: bool) -> None:
        found = Expr(_of(column).function("matches", pattern, 0))
        super().__init__((~found if invert else found)._expr)
        self.of = (column, pattern, invert) if isinstance(column, str) else None


def matches(column: str | Expr, pattern: str, *, invert: bool = False) -> Matches:
    """Whether a regular expression is found in a column; with `invert` whether it is not. Of `None` it is `None`, so that `filter` has
    these neither way."""
    return Matches(column, pattern, invert)


def _of(column: str | Expr) -> _Expr:
    """What a function is of: a column, by its name, or an expression."""
    if isinstance(column, str):
        return _Expr.column(column)
    if isinstance(column, Expr):
        return column._expr
    raise UsageError(f"a function is of a column's name or an expression, not of {column!r}")
