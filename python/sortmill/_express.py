"""Expressions of columns: what operators make of them, record by record and without Python."""

from __future__ import annotations

from datetime import datetime

from ._errors import UsageError
from ._sortmill import Expr as _Expr
from ._verbs import ColumnType, columns_of


class Expr:
    """What is computed of the values of a record: `col("price") * col("count") + 1`.

    Whole numbers stay whole and are exact: what a `u64`, or with an `int` in it an `int`, cannot hold is an `InputError`, as is
    a remainder by 0. Beside a float all are floats, and `/` always makes one, as IEEE 754 has it. Of `None` it is `None`.
    Conditions are joined by `&`, `|` and `~`.
    """

    def __init__(self, expr: _Expr) -> None:
        self._expr = expr

    def cast(self, type: ColumnType) -> Expr:
        """The same as a value of another type: of floats the whole part, of `False` and `True` 0 and 1.

        A number that the type does not hold is an `InputError`. What text says tells `parse`.
        """
        (name,) = (name for _, name in columns_of({"cast": type}))
        return Expr(self._expr.cast(name))

    def is_null(self) -> Expr:
        """Whether it is `None`."""
        return self._unary("is_null")

    def fill_null(self, other: Operand) -> Expr:
        """The same, and `other` where it is `None`."""
        return self._binary("fill_null", other)

    def __add__(self, other: Operand) -> Expr:
        return self._binary("+", other)

    def __radd__(self, other: Operand) -> Expr:
        return expr(other)._binary("+", self)

    def __sub__(self, other: Operand) -> Expr:
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


def if_else(condition: Expr, then: Operand, otherwise: Operand) -> Expr:
    """The one where `condition` is true, and else, also where it is `None`, the other. Only that one is computed."""
    return Expr(_Expr.if_else(expr(condition)._expr, expr(then)._expr, expr(otherwise)._expr))


def list_length(column: str) -> Expr:
    """How many numbers a list has that `Groups.pack` made."""
    return col(column)._unary("list_length")
