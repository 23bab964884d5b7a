"""What is measured: each case by its name, with its data, its memory, who takes part and what must be reached."""

from dataclasses import dataclass, field

from shell import GIB

GB = 10**9
KEY_FLAGS = ("--format", "fixed:100", "--key", "0:10")


@dataclass(frozen=True)
class Target:
    """What a case must reach. Where `either` is set, the floor suffices where a rival would ask for more."""

    over_floor_max: float | None = None
    times_rival_min: dict = field(default_factory=dict)
    times_best_rival_min: float | None = None
    # So many times what one process takes, for those of ours that are several.
    times_one_process_max: dict = field(default_factory=dict)
    either: bool = False
    cpu_s_per_gb_max: float | None = None
    cycles_per_record_max: float | None = None


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    data: str  # a key of data.py's MAKERS
    order: str  # "key" or "line": what decides
    data_bytes: int
    record_bytes: int
    memories: tuple
    flags: tuple  # of sortmill sort and sortmill check
    budget: str  # a key of floor.py's CYCLES
    contestants: tuple
    target: Target

    @property
    def record_count(self):
        return self.data_bytes // self.record_bytes


CASES = [
    Case("memory-sweep", "binary records, memory from a tenth to twice the data", "binary", "key", 10 * GB, 100,
         tuple(size * GB for size in (1, 2, 4, 8, 10, 11, 16, 20)), KEY_FLAGS, "fixed", ("sortmill",),
         Target(over_floor_max=1.2, cpu_s_per_gb_max=2.0)),
    Case("binary-2gib", "binary records", "binary", "key", 10 * GB, 100, (2 * GIB,), KEY_FLAGS, "fixed",
         ("sortmill", "chdb"),
         Target(over_floor_max=1.2, times_rival_min={"chdb": 2.2}, either=True, cpu_s_per_gb_max=2.0)),
    # Each step is a contestant: run to there and discard. It tells which one a missed figure is owed to.
    Case("steps", "binary records, run to each stage and discarded", "binary", "key", 10 * GB, 100, (2 * GIB,),
         KEY_FLAGS, "fixed",
         ("until-read", "until-cut", "until-partition", "until-spill", "until-load", "until-sort", "sortmill"),
         Target()),
    Case("ascii-2gib", "records in ASCII", "ascii", "key", 10 * GB, 100, (2 * GIB,), KEY_FLAGS, "fixed",
         ("sortmill", "chdb", "duckdb", "gnu"),
         Target(over_floor_max=1.2, times_rival_min={"chdb": 2.2, "duckdb": 3.0, "gnu": 4.0}, either=True,
                cpu_s_per_gb_max=2.0)),
    # Apart from the case above because they take two to three minutes a run.
    Case("ascii-2gib-slow", "records in ASCII, the slower peers", "ascii", "key", 10 * GB, 100, (2 * GIB,),
         KEY_FLAGS, "fixed", ("sortmill", "polars", "pyspark"), Target()),
    Case("lines-2gib", "whole lines, ASCII", "ascii", "line", 10 * GB, 100, (2 * GIB,), (), "lines",
         ("sortmill", "gnu"),
         Target(over_floor_max=1.3, times_rival_min={"gnu": 3.0}, cpu_s_per_gb_max=3.0)),
    Case("in-memory", "records in ASCII, memory four times the data", "ascii", "key", GB, 100, (4 * GIB,), KEY_FLAGS,
         "fixed", ("sortmill", "chdb", "duckdb", "polars", "gnu", "pyspark"),
         Target(over_floor_max=1.35, times_best_rival_min=3.5, cpu_s_per_gb_max=2.0)),
    Case("short-records", "binary records of 24 bytes", "short", "key", 24 * 41_666_666, 24, (4 * GIB,),
         ("--format", "fixed:24", "--key", "0:8"), "short", ("sortmill",), Target(cycles_per_record_max=200)),
    Case("local-2", "binary records, by two processes that share the memory", "binary", "key", 5 * GB, 100, (GIB,),
         KEY_FLAGS, "fixed", ("sortmill", "local-2"), Target(times_one_process_max={"local-2": 1.5})),
]
BY_NAME = {case.name: case for case in CASES}

# The same for every case: the limit and what stands beside it, and the bytes moved over the fewest possible.
MEMORY_EXTRA_PART, MEMORY_EXTRA_BYTES = 0.05, 64 << 20
MOVED_OVER_MIN_MAX = 1.02


def memory_bytes_max(limit_bytes):
    return int(limit_bytes * (1 + MEMORY_EXTRA_PART)) + MEMORY_EXTRA_BYTES
