"""Whether skew, order and long records cost more than they must: `make bench-shapes`.

    python3 bench/shapes.py                                   every shape, three rounds (40 minutes, 20 GB of disk)
    python3 bench/shapes.py --shapes sorted,hot --rounds 1 --bytes 1000000000

A shape of keys is sorted between two sorts of uniform keys, of the same format, sizes and count, in the same memory;
what counts is its time over the mean of theirs. Sorted and reversed data, and pairs of Pareto's sizes, are also held
against the floor of the disk (floor.py): for the former that of one pass. Each run is as in measure.py, from a cold
page cache to a synced output, which must pass `sortmill check` with the input's count and checksum.
Writes bench/runs/<date>-<commit>-shapes.csv, a line for each run, and prints a table.
"""

import argparse
import csv
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from compare import be_the_only_one
from disk import open_disk
from floor import Budget, floor
from machine import machine_facts
from measure import drop_caches, measure, warm_memory
from results import RUNS
from shell import GIB, ROOT, SORTMILL, command, fail, gb, say

FIXED = ("--format", "fixed:100", "--key", "0:10")
DISK_FILE_BYTES = 4 << 30
OVER_UNIFORM_MAX, OVER_ONE_PASS_MAX, OVER_FLOOR_MAX = 1.25, 1.2, 1.3


@dataclass(frozen=True)
class Shape:
    name: str
    gen: tuple
    sort: tuple = FIXED
    # What F is taken of: nothing, one pass, or what the memory asks for.
    floor: str | None = None
    # Over those of the flags --bytes and --memory: as the issue of Pareto's sizes is about larger ones.
    times_bytes: int = 1
    times_memory: int = 1


UNIFORM = Shape("uniform", ("records",))
SHAPES = [
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
    Shape("pareto", ("pareto", "--largest", "500MB"), ("--format", "kv"), "memory", 2, 2),
]
COLUMNS = ["shape", "date", "commit", "round", "bytes", "memory_bytes", "wall_s", "uniform_s", "cpu_s", "peak_anon_bytes",
           "distribute_s", "sort_s", "largest_over_mean", "over_lower_bound", "floor_s", "drift", "cpu", "cores",
           "kernel", "file_system"]


def main():
    asked = parse_flags()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lock = be_the_only_one(asked.folder.parent)
    shutil.rmtree(asked.folder, ignore_errors=True)
    asked.folder.mkdir(parents=True)
    try:
        rows = Bench(asked).run()
    finally:
        shutil.rmtree(asked.folder, ignore_errors=True)
        lock.close()
    print(table(rows))


def parse_flags():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [shape.name for shape in SHAPES]
    words.add_argument("--shapes", type=lambda text: text.split(","), default=names, help=f"of {','.join(names)}")
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--bytes", type=int, default=5 * 10**9)
    words.add_argument("--memory", type=int, default=GIB, help="bytes; it should be a fifth of --bytes")
    asked = words.parse_args()
    if unknown := [name for name in asked.shapes if name not in names]:
        words.error(f"unknown shape {unknown[0]!r}, there are {', '.join(names)}")
    asked.folder = Path(os.environ.get("BENCH_DIR", ROOT / "large" / "bench")).resolve() / "sortmill-bench"
    asked.cores = len(os.sched_getaffinity(0))
    return asked


class Bench:
    def __init__(self, asked):
        self.asked, self.facts = asked, machine_facts(asked)
        self.path = RUNS / f"{self.facts['date']}-{self.facts['commit']}-shapes.csv"
        self.disk = open_disk(asked.folder, DISK_FILE_BYTES, 3, None)
        self.rows = []

    def run(self):
        uniform = self.generate(UNIFORM)
        for round_number in range(1, self.asked.rounds + 1):
            before_s = self.sort(UNIFORM, uniform)["wall_s"]
            for shape in [shape for shape in SHAPES if shape.name in self.asked.shapes]:
                data = self.generate(shape)
                row = self.sort(shape, data)
                data.unlink()
                after_s = self.sort(UNIFORM, uniform)["wall_s"]
                row |= {"round": round_number, "uniform_s": round((before_s + after_s) / 2, 3)}
                before_s = after_s
                self.keep(row)
        return self.rows

    def generate(self, shape):
        path = self.asked.folder / f"in.{shape.gen[0]}"
        byte_count = self.asked.bytes * shape.times_bytes
        size = [str(byte_count // 100)] if shape.gen[0] == "records" else ["--bytes", str(byte_count)]
        command([SORTMILL, "gen", *shape.gen, *size, path])
        os.sync()
        return path

    def sort(self, shape, data):
        """One run, with the disk's rates around it where a floor is asked for; the output is checked and deleted."""
        output, temp = self.asked.folder / "out", self.asked.folder / "temp"
        memory = self.asked.memory * shape.times_memory
        temp.mkdir()
        drop_caches()
        command([SORTMILL, "--version"])
        before = self.disk.rates() if shape.floor else None
        warm_memory(memory + GIB)
        words = [SORTMILL, "sort", *shape.sort, "--memory", str(memory), "--temp", temp, "-o", output,
                 "--report", temp / "report.json", data]
        row = measure(words, memory, self.asked.folder, self.asked.folder / "log")
        if row["exit_status"] != 0:
            fail(f"{shape.name}: {(self.asked.folder / 'log').read_text()[-500:]}")
        after = self.disk.rates() if shape.floor else None
        report = json.loads((temp / "report.json").read_text())
        byte_count = data.stat().st_size
        if checked(shape, data)[1:] != checked(shape, output)[1:] or not checked(shape, output)[0]:
            fail(f"{shape.name}: the output is wrong")
        moved, parts = report["bytes"], report["partitions"]
        row |= {f"{phase['name']}_s": round(phase["wall_ns"] / 1e9, 3) for phase in report["phases"]}
        row |= {"shape": shape.name, "bytes": byte_count, "memory_bytes": memory,
                "largest_over_mean": round(parts["bytes_max"] * parts["count"] / byte_count, 3),
                "over_lower_bound": round((moved["kernel_read"] + moved["kernel_written"]) / moved["lower_bound"], 4)}
        if shape.floor:
            budget = Budget.of("fixed", byte_count // 100, self.asked.cores, self.facts["clock_hz"])
            fits = byte_count if shape.floor == "one pass" else memory
            least = floor(byte_count, fits, before.best(after), budget)
            row |= {"floor_s": round(least.total_s, 3), "drift": round(before.drift(after), 4)}
        output.unlink()
        shutil.rmtree(temp)
        os.sync()
        return row

    def keep(self, row):
        row = {name: row.get(name, self.facts.get(name)) for name in COLUMNS}
        is_new = not self.path.exists()
        with open(self.path, "a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append(row)
        say(f"{row['shape']}, {gb(row['bytes'])}: {row['wall_s']:.1f} s, {row['wall_s'] / row['uniform_s']:.2f} of uniform")


def checked(shape, path):
    """(in order, records, checksum), as `sortmill check` sees it."""
    done = subprocess.run([SORTMILL, "check", *shape.sort, path], capture_output=True, text=True)
    found = [re.search(rf"^{word}: (\S+)", done.stdout, re.MULTILINE) for word in ("records", "checksum")]
    if done.returncode not in (0, 1) or not all(found):
        fail(f"check {path}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.returncode == 0, *(one.group(1) for one in found)


def table(rows):
    """Medians over the rounds, and whether what was asked for was reached."""
    lines = ["| shape | wall s | over uniform | over F | core-s per GB | memory GB | largest over mean | I/O over least | |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name in dict.fromkeys(row["shape"] for row in rows):
        mine = [row for row in rows if row["shape"] == name]

        def median(of):
            return statistics.median(map(of, mine))

        over_uniform = median(lambda row: row["wall_s"] / row["uniform_s"])
        shape = next(shape for shape in SHAPES if shape.name == name)
        over_floor = median(lambda row: row["wall_s"] / row["floor_s"]) if shape.floor else None
        if shape.floor:
            reached = over_floor <= (OVER_ONE_PASS_MAX if shape.floor == "one pass" else OVER_FLOOR_MAX)
        else:
            reached = over_uniform <= OVER_UNIFORM_MAX
        lines.append(
            f"| {name} | {median(lambda row: row['wall_s']):.1f} "
            f"| {'' if shape.times_bytes > 1 else f'{over_uniform:.2f}'} | {f'{over_floor:.2f}' if over_floor else ''} "
            f"| {median(lambda row: row['cpu_s'] / row['bytes'] * 1e9):.2f} "
            f"| {median(lambda row: row['peak_anon_bytes'] / 1e9):.2f} "
            f"| {median(lambda row: row['largest_over_mean']):.2f} | {median(lambda row: row['over_lower_bound']):.3f} "
            f"| {'yes' if reached else '**no**'} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
