"""Whether skew, order, long records and pipes cost more than they must: `make bench-shapes`.

    python3 bench/shapes.py                                        all four sets (an hour and three quarters, 20 GB of disk)
    python3 bench/shapes.py --resume                               goes on with this commit's file where it was cut off
    python3 bench/shapes.py --sets skew --shapes sorted,hot --rounds 1 --bytes 1000000000
    python3 bench/shapes.py --write                                docs/tuning.md's table, from bench/runs/ alone
    python3 bench/shapes.py --check                                fails where it differs

Four sets of runs:

  skew    5 GB in 1 GiB, three rounds. A shape of keys is sorted between two sorts of uniform keys, of the same format,
          sizes and count, in the same memory; what counts is its time over the mean of theirs. Sorted and reversed
          data, and pairs of Pareto's sizes, are also held against the floor of the disk (floor.py): for the former
          that of one pass.
  streams The same by a pipe, of shapes whose beginning says little about the rest, beside uniform keys by a pipe.
  pipes   5 GB in 1 GiB, three rounds: gen, sort and check alone and joined by pipes.
  small   every kind of data, 1 GB in 128 MiB, once, in a memory cgroup of what is promised: that and 5 % and 64 MiB.

Each run is as in measure.py, from a cold page cache to a synced output, which must pass `sortmill check` with the
input's count and checksum. A line for each run goes to bench/runs/<date>-<commit>-shapes.csv.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import shape_table
from compare import alone_in
from marked import kept
from shape_runs import ShapeRuns
from shell import GIB, ROOT

FIXED = ("--format", "fixed:100", "--key", "0:10")
KV, LINES = ("--format", "kv"), ()
MIB = 1 << 20


@dataclass(frozen=True)
class Shape:
    name: str
    gen: tuple
    sort: tuple = FIXED
    # What F is taken of: nothing, one pass, or what the memory asks for.
    floor: str | None = None
    # Over the bytes and the memory of the set: the issue of Pareto's sizes is about larger ones.
    times_bytes: int = 1
    times_memory: int = 1
    # Of keys, so that uniform keys are what to compare it with.
    is_of_keys: bool = True


UNIFORM = Shape("uniform", ("records",))
OF_KEYS = [
    *(Shape(f"zipf {exponent}", ("zipf", "--exponent", exponent)) for exponent in ("0.5", "1", "1.5", "2")),
    Shape("100 distinct", ("distinct", "--distinct", "100")),
    Shape("two", ("two",)),
    Shape("one", ("one",)),
    Shape("hot, 99 %", ("hot",)),
    Shape("sorted", ("sorted",), floor="one pass"),
    Shape("reversed", ("reversed",), floor="one pass"),
    Shape("organ pipe", ("organ-pipe",)),
    Shape("sorted blocks", ("blocks",)),
    Shape("sorted but last", ("sorted-but-last",)),
    Shape("drift", ("drift",)),
    Shape("prefix of 50", ("prefix", "--record-bytes", "50"), ("--format", "fixed:100", "--key", "0:60")),
    Shape("last byte", ("last-byte",)),
    Shape("sample killer", ("sample-killer",)),
]
SKEW = [*OF_KEYS, Shape("pareto", ("pareto", "--largest", "500MB"), KV, "memory", 2, 2, is_of_keys=False)]
STREAMS = [shape for shape in OF_KEYS if shape.name in ("sorted", "reversed", "organ pipe", "drift")]
STREAMS.append(Shape("sample killer", ("sample-killer", "--after", "1GB")))
SMALL = [
    UNIFORM,
    *OF_KEYS,
    Shape("pareto", ("pareto", "--largest", "32MB"), KV, is_of_keys=False),
    Shape("empty", ("empty",), KV, is_of_keys=False),
    Shape("text", ("text",), LINES, is_of_keys=False),
    Shape("numbers", ("numbers",), LINES, is_of_keys=False),
    Shape("csv", ("csv",), LINES, is_of_keys=False),
]
SETS = ("skew", "streams", "pipes", "small")


def main():
    asked = parse_flags()
    if asked.check or asked.write:
        return kept(shape_table.TUNING, shape_table.expected(), "shapes.py", asked.check)
    with alone_in(asked.folder):
        runs = ShapeRuns(asked, UNIFORM)
        if "skew" in asked.sets:
            runs.skew([shape for shape in SKEW if wanted(asked, shape)])
        if "streams" in asked.sets:
            runs.skew([shape for shape in STREAMS if wanted(asked, shape)], "streams")
        if "pipes" in asked.sets:
            runs.pipes(UNIFORM)
        if "small" in asked.sets:
            runs.small([shape for shape in SMALL if wanted(asked, shape)])
    print(shape_table.tables(runs.rows()))


def wanted(asked, shape):
    return asked.shapes is None or shape.name in asked.shapes


def parse_flags():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = list(dict.fromkeys(shape.name for shape in SKEW + SMALL))
    words.add_argument("--sets", type=lambda text: text.split(","), default=SETS, help=f"of {','.join(SETS)}")
    words.add_argument("--shapes", type=lambda text: text.split(","), help=f"of {','.join(names)}".replace("%", "%%"))
    words.add_argument("--rounds", type=int, default=3, help="of all but small; default 3")
    words.add_argument("--bytes", type=int, default=5 * 10**9, help="of all but small; default 5 GB")
    words.add_argument("--memory", type=int, default=GIB, help="bytes; it should be a fifth of --bytes")
    words.add_argument("--small-bytes", type=int, default=10**9, help="of small; default 1 GB")
    words.add_argument("--small-memory", type=int, default=128 * MIB)
    words.add_argument("--resume", action="store_true", help="go on with this commit's file")
    words.add_argument("--write", action="store_true", help="write docs/tuning.md's table from bench/runs/")
    words.add_argument("--check", action="store_true", help="fail where it differs from bench/runs/")
    asked = words.parse_args()
    if unknown := [name for name in asked.shapes or [] if name not in names]:
        words.error(f"unknown shape {unknown[0]!r}, there are {', '.join(names)}")
    if unknown := [name for name in asked.sets if name not in SETS]:
        words.error(f"unknown set {unknown[0]!r}, there are {', '.join(SETS)}")
    asked.folder = Path(os.environ.get("BENCH_DIR", ROOT / "large" / "bench")).resolve() / "sortmill-bench"
    asked.cores = len(os.sched_getaffinity(0))
    asked.is_whole = (asked.bytes, asked.memory, asked.small_bytes, asked.small_memory) == (
        5 * 10**9, GIB, 10**9, 128 * MIB)
    return asked


if __name__ == "__main__":
    main()
