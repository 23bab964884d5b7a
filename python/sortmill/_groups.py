"""Groups of a table's records, and what is made of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Never

from ._asked import aggregates_of, flag, function_of, named, order_of, timeout_of
from ._errors import UsageError
from ._functions import Record, Reduced
from ._instead import hinted
from ._numbers import whole
from ._verbs import Aggregate, ColumnType, columns_of

if TYPE_CHECKING:
    from ._pipeline import Table


class Groups:
    """The records of a table in groups."""

    def __init__(self, table: Table, by: list[str], in_order: bool = False) -> None:
        self._table = table
        self._by = (by, in_order)

    def __repr__(self) -> str:
        return f"<groups of records by {', '.join(self._by[0])}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name)

    def agg(self, *unnamed: Never, **aggregates: Aggregate) -> Table:
        """A record for each group: its columns, then one for each aggregate under its name here."""
        named("agg", unnamed, "n=sm.count()")
        return self._table._next(self._table._table.aggregate(self._by, aggregates_of(aggregates)))

    def reduce(
        self,
        function: Callable[[Record, Record], Record] | type[Any],
        *,
        associative: bool = True,
        pure: bool = False,
        timeout: float | None = None,
    ) -> Table:
        """A record for each group: what an associative function makes of its first two, of that and the third, and so on.

        Records are dictionaries of all columns, and so is what the function answers; the columns that groups are made by keep
        their values. The order of the input is kept, so the function need not be commutative. Associative it must be, or the
        results are wrong without a word: records of a group that lie near each other in the input are reduced before they are
        brought together, if no verb in front of this one brings records together. A function that is not, as one that counts
        calls, needs `associative=False`. `pure`, `timeout` and what becomes of a class are those of `apply`.
        """
        by, _ = self._by
        reduced = ("reduce", Reduced(function_of("reduce", function), by, by == list(self._table.columns)))
        how = (flag("pure", pure), timeout_of(timeout), flag("associative", associative))
        return self._table._next(self._table._table.apply(self._by, [], reduced, None, how))

    def apply(
        self,
        function: Callable[[Any, Iterator[Record]], Iterable[Any] | None] | type[Any],
        *,
        columns: Mapping[str, ColumnType],
        sort: str | Sequence[str] = (),
        descending: bool | Sequence[bool] = False,
        nulls_last: bool | Sequence[bool] = False,
        pure: bool = False,
        timeout: float | None = None,
    ) -> Table:
        """What a function makes of each group: of its key and an iterator of its records, as dictionaries.

        The key is the value of the column that groups are made by, or a tuple of several. Records come in the order of the
        columns `sort`, equal ones in that of the input; the engine sorts them. Only those that were asked for last are in
        memory, so a group may be of any size. The function answers any number of records of `columns`, or of values if
        that is one column; a generator may begin before it has seen all.

        Of a class each partition of groups has an object, made without arguments, and that is called: what it keeps is known to all
        groups of the partition. It has no `finish`.

        A worker process that dies takes the groups along that it was given last; of a function that is declared `pure` they
        are given to another one, from the first record of the one that was open, unless more than 1 MiB of that came in
        batches before. `timeout` is for what is handed over at once, about 256 KiB of records.
        """
        applied = ("apply", function_of("apply", function))
        order, made = order_of(sort, descending, nulls_last), columns_of(columns)
        how = (flag("pure", pure), timeout_of(timeout), False)
        return self._table._next(self._table._table.apply(self._by, order, applied, made, how))

    def pack(self, column: str, *, name: str) -> Table:
        """A record for each group: its columns, and as `name` (bytes) all values of `column`, a `"u64"`, as a list in rising order.

        A list takes about as many bytes as the differences between its numbers have, and 16 MiB at most. `Table.unpack` makes
        records of it again, `list_length` counts it.
        """
        return self._table._next(self._table._table.pack(self._by, column, name))

    def sessions(self, time: str, gap: int | timedelta, *, name: str = "session") -> Table:
        """All records, group by group in the order of the integers or times in `time`, with the number of their session, from 0.

        A session of a group ends where the next record comes more than `gap` later: of times a `timedelta`, or microseconds.
        """
        if isinstance(gap, timedelta):
            if not self._table.columns.get(time, "timestamp").startswith("timestamp"):
                raise UsageError(f"{time} is of type {self._table.columns[time]}, and a timedelta is between times")
            gap //= timedelta(microseconds=1)
        gap = whole("gap", gap)
        return self._table._next(self._table._table.sessions(self._by, time, gap, name))
