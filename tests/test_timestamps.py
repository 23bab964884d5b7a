"""Columns of times, held against Python's own `datetime`, Arrow and DuckDB."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sortmill as sm

UTC = timezone.utc
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
US = timedelta(microseconds=1)
MEMORY = "128 MiB"


def moment(draw: random.Random) -> datetime:
    """A time of the years 1 to 9999, a day from either end so that every zone has it."""
    span = (LAST - FIRST - timedelta(days=2)) // US
    at = FIRST + timedelta(days=1) + draw.randrange(span) * US
    return at.replace(microsecond=draw.choice([0, at.microsecond, at.microsecond // 1000 * 1000]))


def said(draw: random.Random, at: datetime) -> str:
    """The same time in words of some zone, or of none."""
    zone = draw.choice([None, UTC, timezone(timedelta(minutes=draw.randrange(-1439, 1440)))])
    there = at.astimezone(zone).isoformat(draw.choice("T "), draw.choice(["auto", "microseconds"])) if zone else None
    text = at.replace(tzinfo=None).isoformat() if there is None else there
    if draw.random() < 0.3:
        text = text.replace("+00:00", draw.choice(["Z", "z"]))
    if "." in text and draw.random() < 0.3:
        # Digits behind the sixth are cut off.
        text = text.replace(text[text.index("."):][:7], text[text.index("."):][:7] + "999")
    return text


def meant(text: str) -> datetime:
    """What Python takes a text for; without a zone it is UTC."""
    at = datetime.fromisoformat(text.upper())
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)


def test_text_is_what_python_takes_it_for(tmp_path: Path, draw: random.Random) -> None:
    texts = [said(draw, moment(draw)) for _ in range(4000)]
    texts += ["0001-01-01", "9999-12-31T23:59:59.999999Z", "1969-12-31 23:59:59.5", "2024-02-29"]
    texts += ["2026-11-23T01:30", "2026-11-23T01:30+01", "2026-11-23t01:30:00-0130"]
    wanted = [meant(text) for text in texts]
    (tmp_path / "in.csv").write_text("at,n\n" + "".join(f"{text},{n}\n" for n, text in enumerate(texts)))
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"at": text, "n": n}) + "\n" for n, text in enumerate(texts)))
    table = sm.Pipeline().read_csv(tmp_path / "in.csv", {"at": datetime, "n": int})
    assert table.schema == {"at": "timestamp", "n": "i64"}
    found = [record["at"] for record in table.collect(memory=MEMORY)]
    assert found == wanted and all(at.tzinfo is UTC for at in found)
    lines = sm.Pipeline().read_jsonl(tmp_path / "in.jsonl", {"at": datetime | None})
    assert lines.schema == {"at": "timestamp?"}
    assert [record["at"] for record in lines.collect(memory=MEMORY)] == wanted
    parsed = sm.Pipeline().from_iter(texts, {"at": str})
    for formula in [sm.timestamp("at"), sm.parse("at", datetime)]:
        assert [record["at"] for record in parsed.with_columns(at=formula).collect(memory=MEMORY)] == wanted
    numbers = parsed.with_columns(at=sm.timestamp("at")).with_columns(us=sm.micros("at")).select("us")
    since_1970 = [(at - datetime(1970, 1, 1, tzinfo=UTC)) // US for at in wanted]
    assert [record["us"] for record in numbers.collect(memory=MEMORY)] == since_1970

    # What is written is RFC 3339 in UTC, which Python and DuckDB read as what it was.
    table.write_csv(tmp_path / "out.csv")
    table.select("at").write_jsonl(tmp_path / "out.jsonl")
    table.select("at").write_text(tmp_path / "out.txt")
    table._pipeline.run(memory=MEMORY)
    written = (tmp_path / "out.txt").read_text().splitlines()
    assert written == [at.isoformat().replace("+00:00", "Z") for at in wanted]
    assert [json.loads(line)["at"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == written
    assert (tmp_path / "out.csv").read_text() == "at,n\n" + "".join(f"{at},{n}\n" for n, at in enumerate(written))
    query = f"SELECT epoch_us(\"at\") FROM read_csv('{tmp_path}/out.csv', types={{'at': 'TIMESTAMPTZ'}}) ORDER BY n"
    with duckdb.connect() as base:
        assert [us for (us,) in base.execute(query).fetchall()] == since_1970


NO_TIMES = ["2026-02-30", "23.11.2026", "2026-11-23T01:30:00+25:00", "10000-01-01", "0001-01-01T00:00:00+00:01"]


@pytest.mark.parametrize("bad", NO_TIMES)
def test_what_is_no_time(tmp_path: Path, bad: str) -> None:
    (tmp_path / "in.csv").write_text(f"n,at\n1,2026-01-01\n2,{bad}\n")
    table = sm.Pipeline().read_csv(tmp_path / "in.csv", types={"at": datetime})
    with pytest.raises(sm.InputError) as caught:
        table.collect(memory=MEMORY, threads=1)
    assert caught.value.file == str(tmp_path / "in.csv") and caught.value.offset == 18
    assert f'line 3: column at: "{bad}" is no value of type timestamp' in str(caught.value.cause)
    with pytest.raises(sm.UsageError, match="at is of type timestamp, and no number"):
        table.group_by("n").agg(a=sm.sum("at"))
    with pytest.raises(sm.UsageError, match="bool, datetime or 'u64'"):
        sm.Pipeline().read_csv(tmp_path / "in.csv", types={"at": date})  # type: ignore[dict-item]


def table_of(draw: random.Random, count: int) -> pa.Table:
    """Groups and times, of which some are missing and some come often."""
    often = [moment(draw) for _ in range(20)]
    times = [draw.choice([None, draw.choice(often), moment(draw)]) for _ in range(count)]
    names = [draw.choice("abc") for _ in range(count)]
    return pa.table({"name": names, "at": pa.array(times, pa.timestamp("us", tz="UTC")), "n": range(count)})


def test_arrow_in_and_out(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 10_000)
    table = sm.Pipeline().from_arrow(whole)
    assert table.schema == {"name": "string?", "at": "timestamp?", "n": "i64?"}
    found = pa.table(table.collect_arrow(memory=MEMORY, temp=tmp_path))
    assert found.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert found.equals(whole)
    assert pl.DataFrame(table.collect_arrow(memory=MEMORY, temp=tmp_path))["at"].equals(pl.DataFrame(whole)["at"])

    # Other units, zones and days: the same points in time.
    near = [datetime(2026, 1, 1 + n % 28, n % 24, 30, n % 60, 123456, UTC) for n in range(100)]
    for unit, cut in [("s", 1_000_000), ("ms", 1000), ("us", 1), ("ns", 1)]:
        for zone in [None, "UTC", "Asia/Kathmandu"]:
            times = [at.replace(microsecond=at.microsecond // cut * cut) for at in near]
            naive = pa.array([at.replace(tzinfo=None) for at in times], pa.timestamp(unit))
            given = naive if zone is None else pa.array(times, pa.timestamp(unit, tz=zone))
            records = sm.Pipeline().from_arrow(pa.table({"at": given})).collect(memory=MEMORY)
            assert [record["at"] for record in records] == times
    # Nanoseconds are cut off, in front of 1970 too.
    odd = pa.table({"at": pa.array([1999, -1, -1000], pa.timestamp("ns"))})
    assert [record["at"] for record in sm.Pipeline().from_arrow(odd).collect(memory=MEMORY)] == [
        datetime(1970, 1, 1, tzinfo=UTC) + us * US for us in [1, -1, -1]
    ]
    for days in [pa.date32(), pa.date64()]:
        of_days = pa.table({"at": pa.array([date(1, 1, 1), date(2026, 11, 23)], days)})
        records = sm.Pipeline().from_arrow(of_days).collect(memory=MEMORY)
        assert [record["at"] for record in records] == [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC)]
    beyond = pa.table({"at": pa.array([0, 2**50], pa.timestamp("s"))})
    with pytest.raises(sm.InputError, match="a time that is not in the years 1 to 9999, in row 1 of the batch"):
        sm.Pipeline().from_arrow(beyond).collect(memory=MEMORY)


def test_sort_and_groups_as_arrow_and_duckdb_have_them(tmp_path: Path, draw: random.Random) -> None:
    whole = table_of(draw, 5000)
    table = sm.Pipeline().from_arrow(whole)
    for descending in [False, True]:
        for nulls_last in [False, True]:
            in_order = table.sort("at", descending=descending, nulls_last=nulls_last).select("n")
            found = in_order.collect(memory=MEMORY, temp=tmp_path)
            words = f"{'DESC' if descending else 'ASC'} NULLS {'LAST' if nulls_last else 'FIRST'}"
            with duckdb.connect() as base:
                base.register("t", whole)
                wanted = base.execute(f"SELECT n FROM t ORDER BY \"at\" {words}, n").fetchall()
            assert [record["n"] for record in found] == [n for (n,) in wanted]
    [best] = table.top(1, by="at").collect(memory=MEMORY)
    assert best["at"] == pc.max(whole["at"]).as_py()

    groups = table.group_by("name", order="sorted").agg(
        least=sm.min("at"), most=sm.max("at"), first=sm.first("at"), there=sm.count("at"), about=sm.approx_count_distinct("at")
    )
    assert groups.schema["least"] == "timestamp?" and groups.schema["there"] == "u64"
    result = groups.collect(memory=MEMORY, temp=tmp_path)
    different = table.group_by("name", order="sorted").agg(n=sm.count_distinct("at")).collect(memory=MEMORY, temp=tmp_path)
    for one, other, name in zip(result, different, "abc", strict=True):
        times = whole.filter(pc.equal(whole["name"], name))["at"]
        ends = pc.min_max(times).as_py()
        exact = pc.count_distinct(times).as_py()
        assert one["about"] == pytest.approx(exact, rel=0.1)
        assert one | {"about": 0} == {
            "name": name, "least": ends["min"], "most": ends["max"], "first": times[0].as_py(),
            "there": pc.count(times).as_py(), "about": 0,
        }
        assert other == {"name": name, "n": exact}
    by_time = table.group_by("at").agg(n=sm.count()).collect(memory=MEMORY, temp=tmp_path)
    wanted_counts = whole.group_by("at").aggregate([("n", "count")]).to_pylist()
    assert {record["at"]: record["n"] for record in by_time} == {record["at"]: record["n_count"] for record in wanted_counts}


@pytest.mark.parametrize("processes", [0, 2])
def test_functions(tmp_path: Path, draw: random.Random, processes: int) -> None:
    whole = table_of(draw, 3000)
    records = whole.to_pylist()
    columns: dict[str, Any] = {"name": str, "at": datetime | None, "n": int}

    def run(table: sm.Table) -> list[dict[str, Any]]:
        return table.collect(memory="256 MiB", temp=tmp_path, processes=processes)

    table = sm.Pipeline().from_iter(records, columns)
    assert run(table.map(lambda record: record, columns=columns)) == records
    # Of any zone, and of none as if it were UTC.
    zone = timezone(timedelta(hours=-3, minutes=-30))
    there = [one for one in records if one["at"] is not None]
    late = table.filter(lambda record: record["at"] is not None and record["at"].utcoffset() == timedelta(0))
    assert run(late) == there
    moves: list[Callable[[datetime], datetime]] = [lambda at: at.astimezone(zone), lambda at: at.replace(tzinfo=None)]
    for move in moves:
        moved = late.map(lambda record: {"at": move(record["at"])}, columns={"at": datetime})
        assert run(moved) == [{"at": one["at"]} for one in there]
    # Batches of each kind look at times as their library has them.
    assert run(table.map_batches(lambda batch: batch, columns)) == records

    def of_numpy(batch: dict[str, Any]) -> dict[str, Any]:
        assert batch["at"].dtype == np.dtype("datetime64[us]")
        return {"at": batch["at"] + np.timedelta64(1, "s")}

    def of_pandas(frame: pd.DataFrame) -> pd.DataFrame:
        assert str(frame["at"].dtype) == "datetime64[us, UTC]"
        return pd.DataFrame({"at": frame["at"] + pd.Timedelta(seconds=1)})

    early = late.filter(lambda record: 1700 < record["at"].year < 2200)
    wanted = [{"at": one["at"] + timedelta(seconds=1)} for one in there if 1700 < one["at"].year < 2200]
    assert wanted
    assert run(early.map_batches(of_numpy, {"at": datetime}, batch_format="numpy")) == wanted
    assert run(early.map_batches(of_pandas, {"at": datetime}, batch_format="pandas")) == wanted

    def last(name: str, group: Any) -> Any:
        times = [record["at"] for record in group]
        yield {"name": name, "at": times[-1], "n": len(times)}

    found = run(table.group_by("name").apply(last, sort="at", columns=columns).sort("name"))
    for one in found:
        times = sorted(record["at"] for record in there if record["name"] == one["name"])
        assert one["at"] == times[-1]
    with pytest.raises(sm.FunctionError, match="(?s)datetime"):
        run(table.map(lambda record: {"at": 5}, columns={"at": datetime}))
    with pytest.raises(sm.FunctionError, match="not in the years 1 to 9999 of UTC"):
        run(table.map(lambda record: {"at": datetime.max.replace(tzinfo=zone)}, columns={"at": datetime}))


def test_sessions_and_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin = datetime(2026, 11, 23, 1, 30, tzinfo=UTC)
    clicks = [("ann", begin + timedelta(minutes=minutes)) for minutes in [50, 0, 10, 41, 40]]
    table = sm.Pipeline().from_iter(clicks, {"user": str, "at": datetime})
    gaps: list[int | timedelta] = [timedelta(minutes=20), 20 * 60 * 1_000_000]
    for gap in gaps:
        numbered = table.group_by("user").sessions("at", gap).collect(memory=MEMORY, temp=tmp_path)
        assert [(record["at"] - begin, record["session"]) for record in numbered] == [
            (timedelta(minutes=minutes), session) for minutes, session in [(0, 0), (10, 0), (40, 1), (41, 1), (50, 1)]
        ]
    with pytest.raises(sm.UsageError, match="a timedelta is between times"):
        table.group_by("at").sessions("user", timedelta(1))
    table.show(2)
    assert capsys.readouterr().out.splitlines() == [
        "user  at", "----  --------------------", "ann   2026-11-23T02:20:00Z", "ann   2026-11-23T01:30:00Z", "...",
    ]


def test_expressions_compare_times(draw: random.Random) -> None:
    times = [None if draw.random() < 0.1 else moment(draw) for _ in range(500)]
    border = moment(draw)
    table = sm.Pipeline().from_iter(list(enumerate(times)), {"n": int, "at": datetime | None})
    later = sorted(one["n"] for one in table.filter(sm.col("at") >= border).collect(memory=MEMORY))
    assert later == [n for n, at in enumerate(times) if at is not None and at >= border]
    filled = table.with_columns(at=sm.col("at").fill_null(border.astimezone(timezone(timedelta(hours=5)))))
    assert {one["n"]: one["at"] for one in filled.collect(memory=MEMORY)} == {n: at or border for n, at in enumerate(times)}
    with pytest.raises(sm.UsageError, match="takes numbers, and not type timestamp"):
        table.with_columns(at=sm.col("at") + 1)
    with pytest.raises(sm.UsageError, match="not timestamp and string"):
        table.filter(sm.col("at") == "2026-11-23")


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1), "us": US}


def test_numbers_are_times(draw: random.Random, tmp_path: Path) -> None:
    """Clicks have milliseconds since 1970, and nothing made times of them."""
    for unit, length in UNITS.items():
        ends = [(FIRST - EPOCH) // length, (LAST - EPOCH) // length, 0, -1]
        numbers = [None, *ends, *((moment(draw) - EPOCH) // length for _ in range(500))]
        table = sm.Pipeline().from_iter(numbers, {"n": int | None})
        made = table.with_columns(at=sm.from_epoch("n", unit=unit))
        assert made.schema == {"n": "i64?", "at": "timestamp?"}
        assert [one["at"] for one in made.collect(memory=MEMORY)] == [None if n is None else EPOCH + n * length for n in numbers]
        # And back.
        back = made.with_columns(n=sm.micros("at") // (length // US)).select("n").collect(memory=MEMORY)
        assert [one["n"] for one in back] == numbers
        (tmp_path / "in").write_text(f"5\n{ends[1] + 1}\n")
        beyond = sm.Pipeline().read_csv(tmp_path / "in", {"n": int}, header=False).with_columns(at=sm.from_epoch("n", unit))
        with pytest.raises(sm.InputError, match="column at: .* is not in the years 1 to 9999") as caught:
            beyond.collect(memory=MEMORY)
        assert caught.value.offset == 2
    unsigned = sm.Pipeline().from_iter([7], {"n": "u64"}).with_columns(at=sm.from_epoch(sm.col("n") * 2))
    assert unsigned.collect(memory=MEMORY) == [{"n": 7, "at": EPOCH + timedelta(seconds=14)}]
    table = sm.Pipeline().from_iter([(1.5, "5")], {"f": float, "s": str})
    with pytest.raises(sm.UsageError, match="f is of type f64, and no whole number"):
        table.with_columns(at=sm.from_epoch("f"))
    assert table.with_columns(at=sm.from_epoch(sm.parse("s", int))).select("at").head(1) == [{"at": EPOCH + timedelta(seconds=5)}]
    with pytest.raises(sm.UsageError, match="cannot be one of type timestamp; from_epoch makes one"):
        sm.Pipeline().from_iter([1], {"n": int}).with_columns(at=sm.col("n").cast(datetime))
    with pytest.raises(sm.UsageError, match="unit is 's', 'ms' or 'us', not 'ns'"):
        sm.from_epoch("n", unit="ns")


def test_times_are_cut(draw: random.Random) -> None:
    lengths = {
        "1us": US, "250ms": timedelta(milliseconds=250), "1s": timedelta(seconds=1), "15m": timedelta(minutes=15),
        "1h": timedelta(hours=1), "7h": timedelta(hours=7), "1d": timedelta(days=1), "10d": timedelta(days=10),
        "1w": timedelta(weeks=1), "2w": timedelta(weeks=2),
    }
    drawn = [moment(draw) for _ in range(500)]
    times = [None, EPOCH, EPOCH - US, *(at for at in drawn if at.year > 1)]
    table = sm.Pipeline().from_iter(times, {"at": datetime | None})
    made = table.with_columns(**{every: sm.col("at").truncate(every) for every in lengths})
    assert made.schema["1h"] == "timestamp?"
    found = made.collect(memory=MEMORY)
    for every, length in lengths.items():
        begin = datetime(1970, 1, 5, tzinfo=UTC) if every.endswith("w") else EPOCH
        wanted = [None if at is None else begin + (at - begin) // length * length for at in times]
        assert [one[every] for one in found] == wanted, every
        if every in ("15m", "1h", "1d", "1w"):
            kind = pl.Datetime("us", "UTC")
            assert pl.Series(times, dtype=kind).dt.truncate(every).equals(pl.Series(wanted, dtype=kind)), every
        if not every.endswith("w"):
            same = table.with_columns(at=sm.col("at").truncate(length)).collect(memory=MEMORY)
            assert [one["at"] for one in same] == wanted
    hours = table.with_columns(hour=sm.col("at").truncate("1h")).group_by("hour").agg(n=sm.count())
    model: dict[datetime | None, int] = {}
    for at in times:
        hour = None if at is None else at.replace(minute=0, second=0, microsecond=0)
        model[hour] = model.get(hour, 0) + 1
    assert {one["hour"]: one["n"] for one in hours.collect(memory=MEMORY)} == model
    wrong: list[Any] = ["1mo", "h", "0h", "1 h", "1h30m", timedelta(0), -US]
    for every in wrong:
        with pytest.raises(sm.UsageError, match="is no length of time: .* .months and years are not all as long"):
            table.with_columns(at=sm.col("at").truncate(every))
    with pytest.raises(sm.UsageError, match="truncate takes a length of time, as '15m' or a timedelta, not 3600"):
        sm.col("at").truncate(3600)  # type: ignore[arg-type]
    numbers = sm.Pipeline().from_iter([1], {"n": int})
    with pytest.raises(sm.UsageError, match="n is of type i64, and no timestamp"):
        numbers.with_columns(at=sm.col("n").truncate("1h"))
    early = sm.Pipeline().from_iter([FIRST], {"at": datetime}).with_columns(at=sm.col("at").truncate("7h"))
    with pytest.raises(sm.InputError, match="0001-01-01T00:00:00Z cut to 7h is not in the years 1 to 9999"):
        early.collect(memory=MEMORY)


def test_times_are_moved_and_taken_from_each_other(draw: random.Random) -> None:
    pairs = [(draw.choice([None, moment(draw)]), moment(draw)) for _ in range(500)]
    border, by = datetime(2000, 2, 29, 12, tzinfo=UTC), timedelta(days=1, hours=-5, microseconds=7)
    one, other = sm.col("one"), sm.col("other")
    table = sm.Pipeline().from_iter(pairs, {"one": datetime | None, "other": datetime})
    made = table.with_columns(
        later=one + by, earlier=other - by, turned=by + other, apart=other - one, since=other - border, until=border - other,
        is_near=abs(other - border) < timedelta(days=365 * 1000) // US,
    )
    kinds = made.schema
    assert [kinds[name] for name in ("later", "earlier", "apart", "since")] == ["timestamp?", "timestamp", "i64?", "i64"]
    for record, (a, b) in zip(made.collect(memory=MEMORY), pairs, strict=True):
        assert record == {
            "one": a, "other": b, "later": a and a + by, "earlier": b - by, "turned": b + by, "apart": a and (b - a) // US,
            "since": (b - border) // US, "until": (border - b) // US, "is_near": abs(b - border) < timedelta(days=365 * 1000),
        }
    last = sm.Pipeline().from_iter([LAST], {"at": datetime})
    for length in (US, timedelta.max):
        with pytest.raises(sm.InputError, match="9999-12-31T23:59:59.999999Z and .* microseconds is not in the years 1 to 9999"):
            last.with_columns(at=sm.col("at") + length).collect(memory=MEMORY)
    with pytest.raises(sm.InputError, match="is not in the years"):
        last.with_columns(at=sm.col("at") + timedelta.min).collect(memory=MEMORY)
    with pytest.raises(sm.UsageError, match=r"(?s)takes numbers, and not type timestamp.*moved by a timedelta"):
        table.with_columns(x=one + 1)
    with pytest.raises(sm.UsageError, match="takes numbers, and not type timestamp"):
        table.with_columns(x=one + other)
    with pytest.raises(sm.UsageError, match="what a length of time takes is of type i64, and no timestamp"):
        table.with_columns(x=(one - other) + by)
    with pytest.raises(sm.UsageError, match=r"timedelta\(microseconds=1\)"):
        (one - other) > by  # type: ignore[operator]
    with pytest.raises(sm.UsageError, match="a timedelta is added to a time and taken from it"):
        by - one  # type: ignore[operator]


FORMATS = [
    "%d/%b/%Y:%H:%M:%S %z", "%Y-%m-%d %H:%M:%S.%f", "%d.%m.%Y", "%Y%m%d%H%M%S%f", "%m/%d/%Y %H.%M%z", "at %H:%M on %b %d, %Y (100%%)",
]


@pytest.mark.parametrize("format", FORMATS)
def test_formats_of_times_are_those_of_strptime(format: str, draw: random.Random, tmp_path: Path) -> None:
    texts = []
    for _ in range(500):
        zone = timezone(timedelta(minutes=draw.randrange(-1439, 1440)))
        # Some C libraries write years below 1000 with fewer digits: 1000 begins a day later in some zones.
        at = moment(draw)
        texts.append(at.replace(year=max(1001, at.year), day=min(28, at.day)).astimezone(zone).strftime(format))

    def meant_by(text: str) -> datetime:
        at = datetime.strptime(text, format)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)

    table = sm.Pipeline().from_iter(texts, {"at": str})
    wanted = [meant_by(text) for text in texts]
    for formula in (sm.timestamp("at", format=format), sm.parse("at", datetime, format=format)):
        made = table.with_columns(at=formula)
        assert made.schema == {"at": "timestamp"}
        assert [one["at"] for one in made.collect(memory=MEMORY)] == wanted
    missing = sm.Pipeline().from_iter(["", None, texts[0]], {"at": str | None}).with_columns(at=sm.timestamp("at", format=format))
    assert [one["at"] for one in missing.collect(memory=MEMORY)] == [None, None, wanted[0]]
    empty = sm.Pipeline().from_iter(["", texts[0]], {"at": str}).with_columns(at=sm.parse("at", datetime | None, format=format))
    assert empty.schema == {"at": "timestamp?"}
    assert [one["at"] for one in empty.collect(memory=MEMORY)] == [None, wanted[0]]
    for text in [texts[0] + "x", texts[0][:-1] + "?", ""]:
        (tmp_path / "in").write_text(f"{texts[0]}\n{text}?\n")
        wrong = sm.Pipeline().read_text(tmp_path / "in").with_columns(at=sm.timestamp("line", format=format))
        with pytest.raises(sm.InputError, match="column at: .* is no value of type timestamp as") as caught:
            wrong.collect(memory=MEMORY)
        assert caught.value.offset == len(texts[0]) + 1


def test_what_is_no_format_of_times() -> None:
    table = sm.Pipeline().from_iter(["1"], {"at": str})
    for format, cause in [("%Y-%m", "it has %Y, one of %m and %b, and %d"), ("%Y-%m-%d %p", "one of Y m b d"), ("%Y %Y-%m-%d", "twice")]:
        with pytest.raises(sm.UsageError, match=cause):
            table.with_columns(at=sm.timestamp("at", format=format))
    with pytest.raises(sm.UsageError, match="a format is text, and one of times"):
        sm.parse("at", int, format="%Y-%m-%d")
    with pytest.raises(sm.UsageError, match="a format is text, and one of times"):
        sm.timestamp("at", format=3)  # type: ignore[arg-type]
