"""Aggregates that need a group in order, of several columns at once, held against plain Python and numpy."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import sortmill as sm

COLUMNS: dict[str, Any] = {
    "group": str | None, "small": int | None, "big": "u64", "part": float | None, "name": str, "raw": bytes | None,
    "is_on": bool | None, "at": datetime | None,
}
NUMBERS = ("small", "big", "part")


def records_of(draw: random.Random, count: int) -> list[dict[str, Any]]:
    start = datetime(2026, 11, 24, tzinfo=timezone.utc)
    values: dict[str, Any] = {
        "group": lambda: draw.choice(["a", "b\0c", "", None, f"g{int(draw.paretovariate(0.8)) % 50}"]),
        "small": lambda: draw.choice([None, draw.randrange(-5, 5), draw.randrange(-(2**63), 2**63)]),
        "big": lambda: draw.randrange(2 ** draw.randrange(1, 65)),
        "part": lambda: draw.choice([None, 0.0, -0.0, 0.5, draw.gauss(0, 1e9)]),
        "name": lambda: "n" * draw.randrange(4) + str(draw.randrange(20)),
        "raw": lambda: draw.choice([None, draw.randbytes(draw.randrange(3))]),
        "is_on": lambda: draw.choice([None, True, False]),
        "at": lambda: draw.choice([None, start + timedelta(microseconds=draw.randrange(30))]),
    }
    return [{name: make() for name, make in values.items()} for _ in range(count)]


def wanted_of(records: list[dict[str, Any]], asked: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for out, (kind, column, *rest) in asked.items():
        values = [record[column] for record in records if record[column] is not None]
        if kind == "count_distinct":
            made[out] = len(set(values))
        elif kind == "quantile":
            made[out] = float(np.quantile(np.array(values, dtype=float), rest[0])) if values else None
        elif kind == "first":
            made[out] = records[0][column]
        elif kind == "max":
            made[out] = max(values, default=None)
        else:
            made[out] = len(records)
    return made


@pytest.mark.parametrize("order", ["grouped", "sorted"])
def test_any_columns_in_one_agg(draw: random.Random, order: Literal["grouped", "sorted"]) -> None:
    make: dict[str, Any] = {
        "count_distinct": sm.count_distinct, "quantile": sm.quantile, "first": sm.first, "max": sm.max,
        "count": lambda _: sm.count(),
    }
    for _ in range(6):
        records = records_of(draw, draw.choice([0, 1, 40, 5000]))
        asked: dict[str, tuple[Any, ...]] = {"d": ("count_distinct", "group"), "f": ("first", draw.choice(list(COLUMNS)))}
        for number in range(draw.randrange(1, 9)):
            kind = draw.choice(list(make))
            if kind == "quantile":
                asked[f"x{number}"] = (kind, draw.choice(NUMBERS), draw.choice([0.0, 0.25, 0.5, 0.99, 1.0]))
            else:
                names = [name for name in COLUMNS if kind != "max" or name in ("small", "big", "at")]
                asked[f"x{number}"] = (kind, draw.choice(names))
        by = draw.choice([["group"], ["name", "group"], ["is_on"]])
        table = sm.Pipeline().from_iter(records, COLUMNS)
        aggregates = {out: make[kind](*rest) for out, (kind, *rest) in asked.items()}
        found = table.group_by(*by, order=order).agg(**aggregates).collect(memory="64 MiB")
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            groups[tuple(record[name] for name in by)].append(record)
        seen = {tuple(record[name] for name in by): record for record in found}
        assert len(seen) == len(found) and seen.keys() == groups.keys()
        for key, group in groups.items():
            for out, value in wanted_of(group, asked).items():
                got = seen[key][out]
                if isinstance(value, float) and isinstance(got, float):
                    assert math.isclose(got, value, rel_tol=1e-12), (key, out, asked[out], got, value)
                else:
                    assert got == value, (key, out, asked[out], got, value)
        if order == "sorted":
            keys = [[(value is None, value) for value in (record[name] for name in by)] for record in found]
            assert all(one <= other for one, other in zip(keys, keys[1:]))


def test_a_group_larger_than_memory(tmp_path: Path) -> None:
    """Nine of ten records are of one group, whose values of both columns come in order all the same."""
    count = 400_000
    with (tmp_path / "in.csv").open("w") as file:
        file.write("group,user,ms,pad\n")
        for number in range(count):
            group = "hot" if number % 10 else f"g{number % 70}"
            file.write(f"{group},u{number * 7919 % 100_003},{number * 31 % 99_991},{'x' * 100}\n")
    table = sm.Pipeline().read_csv(tmp_path / "in.csv", {"group": str, "user": str, "ms": int, "pad": str})
    made = table.group_by("group").agg(
        users=sm.count_distinct("user"), half=sm.median("ms"), pads=sm.count_distinct("pad"), last=sm.first("pad"), n=sm.count()
    )
    hot = {record["group"]: record for record in made.collect(memory="40 MiB", temp=tmp_path)}["hot"]
    numbers = [number for number in range(count) if number % 10]
    assert hot == {
        "group": "hot",
        "users": len({number * 7919 % 100_003 for number in numbers}),
        "half": float(np.median([number * 31 % 99_991 for number in numbers])),
        "pads": 1,
        "last": "x" * 100,
        "n": len(numbers),
    }
