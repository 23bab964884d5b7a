"""Times programs on Python's pipelines, beside DuckDB, Polars, chDB and PySpark or against the disk: `make bench-programs`.

    python3 bench/programs.py                         all cases (10 GB and less, three rounds: two hours, 40 GB of disk)
    python3 bench/programs.py --cases distinct --rounds 1 --resume    adds to this commit's raw results
    python3 bench/programs.py --scale 0.02 --cases "word count;distinct" --rounds 1
    python3 bench/programs.py --write                 the tables of docs/measuring.md and README.md, from bench/runs/ alone
    python3 bench/programs.py --check                 fails where it differs

Each round runs a case with each program, one after the other, as in measure.py: from a cold page cache to a synced
output, all with the same memory and as many threads as there are cores; the programs' own files are warm. Ours is
bench/our_programs.py, Python text included, of the package that is built into .venv. Outputs are compared: as they are,
or where no order was asked for, in the order of their lines. Before each case the disk's rates are taken, for the floor F
(floor.py). A line for each run goes to bench/runs/<date>-<commit>-programs.csv, of other scales to large/runs. `--resume`
leaves out what has its lines there.

PageRank is the example of the Rust library, five rounds of it, and beside it that of examples/, whose output must be the same
bytes. Both have 512 MiB at any scale. What is held against the floor is one round: the mean of the five.
"""

import argparse
import csv
import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pagerank
import programs_table
from compare import alone_in
from contestants import VENV_PYTHON, pinned, warm_program, why_missing
from disk import open_disk
from machine import machine_facts
from marked import kept
from measure import drop_caches, measure, warm_memory
from programs_table import COLUMNS, OURS
from results import REDUCED_RUNS, RUNS
from shell import GIB, ROOT, SORTMILL, command, fail, gb, say

GEN = f"'{SORTMILL}' gen"
# How an input of {bytes} bytes is made as {path}.
DATA = {
    "text": GEN + " text --bytes {bytes} '{path}'",
    # Lines are documents, each with its name.
    "documents": GEN + " text --bytes {bytes} - | LC_ALL=C awk -v OFS='\\t' '{{ print \"d\" NR, $0 }}' > '{path}'",
    "csv": GEN + " csv --bytes {bytes} '{path}'",
    "clicks": GEN + " clicks --bytes {bytes} '{path}'",
    "records": GEN + " records --ascii {records} '{path}'",
    "edges": GEN + " graph --bytes {bytes} '{path}'",
    "graph of degree 12": GEN + f" graph {{records}} --degree {pagerank.DEGREE} '{{path}}'",
    # Three of ten records under one key; the others as they were.
    "hot edges": GEN + " graph --bytes {bytes} - | LC_ALL=C awk -F'\\t' -v OFS='\\t' "
                       "'{{ if (NR % 10 < 3) $2 = \"hot\"; print }}' > '{path}'",
}


@dataclass(frozen=True)
class Case:
    name: str
    data: str
    program: str
    bytes: int
    memory: int
    peers: tuple = ()
    is_ordered: bool = False
    record_bytes: int = 100


CASES = [
    Case("word count", "text", "word-count", 2 * 10**9, 2 * GIB, ("duckdb", "polars", "chdb", "pyspark"), is_ordered=True),
    Case("grep", "text", "grep", 2 * 10**9, 2 * GIB, ("duckdb", "polars"), is_ordered=True),
    Case("inverted index", "documents", "inverted-index", 10**8, GIB // 2, ("duckdb",), is_ordered=True),
    Case("5-grams", "text", "5-grams", 10**9, GIB // 2),
    Case("sessions", "clicks", "sessions", 10**10, 2 * GIB),
    Case("shuffle", "records", "shuffle", 10**10, 2 * GIB, ("duckdb",)),
    Case("distinct", "edges", "distinct", 2 * 10**9, 2 * GIB, ("duckdb", "polars")),
    Case("group counts", "edges", "group-counts", 2 * 10**9, 2 * GIB, ("duckdb", "polars")),
    Case("groups of CSV", "csv", "csv-groups", 2 * 10**9, 2 * GIB, ("duckdb", "polars")),
    Case("pagerank", "graph of degree 12", "pagerank", 20_000_000 * pagerank.VERTEX_BYTES, GIB // 2, (pagerank.IN_PYTHON,),
         is_ordered=True, record_bytes=pagerank.VERTEX_BYTES),
    Case("group counts, 30 % hot", "hot edges", "group-counts", 2 * 10**9, 2 * GIB, ("duckdb", "polars")),
]
PEERS = ("duckdb", "polars", "chdb", "pyspark")
DISK_BYTES = 2 * GIB
DISK_SECONDS = 4


def main():
    asked = parse_flags()
    if asked.check or asked.write:
        for page, text in programs_table.expected().items():
            kept(page, text, "programs.py", asked.check)
        return None
    with alone_in(asked.folder):
        runs = Runs(asked)
        for case in asked.cases:
            runs.case(case)
    print(programs_table.tables(runs.rows))


class Runs:
    def __init__(self, asked):
        self.asked, self.rows = asked, []
        self.facts = machine_facts(asked)
        is_whole = asked.scale == 1
        folder = RUNS if is_whole else REDUCED_RUNS
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{self.facts['date']}-{self.facts['commit']}-programs.csv"
        is_there = self.path.exists()
        if is_there and asked.resume:
            self.rows = programs_table.read(self.path)
        elif is_there and is_whole:
            fail(f"{self.path.name} is there already\n\nDelete it to measure again, or go on with --resume.")
        self.before = {(row["case"], row["round"]) for row in self.rows}
        self.missing = {name: why_missing(name) for name in PEERS}
        for name, reason in self.missing.items():
            if reason:
                say(f"without {name}: {reason}")
        self.versions = {OURS: version("sortmill", "__version__")}
        self.versions |= {name: pinned(name).split("==")[1] for name, reason in self.missing.items() if not reason}
        self.versions[pagerank.IN_PYTHON] = self.versions[OURS]
        self.disk = open_disk(asked.folder, DISK_BYTES, DISK_SECONDS)
        if not self.rows:
            with open(self.path, "w", newline="") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writeheader()

    def case(self, case):
        rounds = [number for number in range(1, self.asked.rounds + 1) if (case.name, number) not in self.before]
        if not rounds:
            return
        path, byte_count = self.asked.folder / "in", int(case.bytes * self.asked.scale)
        say(f"making {gb(byte_count)} of {case.data}")
        script = DATA[case.data].format(path=path, bytes=byte_count, records=byte_count // case.record_bytes)
        command(["bash", "-c", f"set -eo pipefail; {script}"])
        os.sync()
        rates = self.disk.rates()
        for number in rounds:
            outputs, rows = {}, []
            names = [OURS, *(name for name in case.peers if not self.missing.get(name))]
            # Who goes first has the disk as the one before left it: in turns.
            for name in names if number % 2 else names[::-1]:
                row, outputs[name] = self.run(case, name, path)
                row |= {"case": case.name, "program": name, "version": self.versions[name], "round": number}
                row |= {f"{rate}_bytes_per_s": round(value) for rate, value in vars(rates).items()}
                rows.append(row)
                say(f"{case.name}, {name}: {row['wall_s']:.1f} s")
            if len({output for output in outputs.values() if output}) > 1:
                fail(f"{case.name}: the outputs differ: {outputs}")
            self.keep(rows)
        path.unlink()

    def run(self, case, name, path):
        """The row of one run, and what tells its output from another, or nothing where it failed."""
        asked = self.asked
        is_rank = case.program == "pagerank"
        memory = case.memory if is_rank else max(int(case.memory * asked.scale), 256 << 20)
        output, temp, log = asked.folder / "out", asked.folder / "temp", asked.folder / "log"
        temp.mkdir()
        drop_caches()
        self.warm(name)
        warm_memory(memory + GIB)
        if is_rank:
            words = pagerank.words(name, path, output, temp)
        else:
            program = ["our_programs.py", case.program] if name == OURS else self.peer(case, name)
            words = [VENV_PYTHON, ROOT / "bench" / program[0], *program[1:], "--memory", memory, "--threads", asked.cores,
                     "--temp", temp, "-o", output, path]
        row = measure(words, memory, asked.folder, log)
        row |= {"bytes": path.stat().st_size, "memory_bytes": memory}
        made = None
        if row["exit_status"] == 0:
            row["output_bytes"] = output.stat().st_size
            made = told(output, case)
        elif name == OURS or is_rank:
            fail(f"{case.name}: {log.read_text()[-500:]}")
        if is_rank:
            row |= pagerank.of_rounds(log.read_text(), temp)
        elif name == OURS:
            row |= self.of_report(json.loads(Path(f"{output}.report").read_text()))
        for left in (output, Path(f"{output}.report")):
            left.unlink(missing_ok=True)
        shutil.rmtree(temp)
        return row, made

    @staticmethod
    def warm(name):
        """The data are read cold, the programs are not."""
        if name in PEERS:
            warm_program(name)
        else:
            version("sortmill", "__version__")

    @staticmethod
    def peer(case, name):
        if case.program == "shuffle":
            return [f"peers/{name}_shuffle.py"]
        return [f"peers/{name}_programs.py", "--setting", case.program]

    @staticmethod
    def of_report(phases):
        reports = [phase["report"] for phase in phases]
        first = reports[0]["fingerprints"]
        return {"brought_bytes": first["distributed"]["bytes"], "records": first["input"]["records"],
                "brought_records": first["distributed"]["records"],
                "output_records": reports[-1]["fingerprints"]["written"]["records"],
                "temp_written_bytes": sum(report["bytes"]["temp_written"] for report in reports)}

    def keep(self, rows):
        """Adds what belongs together, so that what was cut off is done again as a whole."""
        rows = [{name: row.get(name, self.facts.get(name)) for name in COLUMNS} for row in rows]
        self.rows += rows
        with open(self.path, "a", newline="") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(rows)


def told(output, case):
    """A hash of what came out: of a shuffle its bytes but for how lines end, elsewhere its lines, sorted if they may be."""
    if case.program == "shuffle":
        with open(output, "rb") as file:
            parts = iter(lambda: file.read(1 << 24), b"")
            counts = [(part.count(b"\n"), len(part) - part.count(b"\r")) for part in parts]
        return tuple(map(sum, zip(*counts)))
    path = output
    if not case.is_ordered:
        path = output.with_name("sorted")
        command([SORTMILL, "sort", "-q", "-o", path, output])
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if path != output:
        path.unlink()
    return found


def version(module, name):
    script = f"import {module}; print({module}.{name})"
    done = subprocess.run([VENV_PYTHON, "-c", script], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{module} is not in .venv; `make bench-programs` builds it first\n{done.stderr[-300:]}")
    return done.stdout.strip()


def parse_flags():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [case.name for case in CASES]
    words.add_argument("--cases", type=lambda text: text.split(";"), default=names,
                       help=f"some of them, with semicolons between: {'; '.join(names)}".replace("%", "%%"))
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--scale", type=float, default=1.0, help="of bytes and memory; default 1")
    words.add_argument("--resume", action="store_true", help="add to this commit's raw results what they lack")
    words.add_argument("--write", action="store_true", help="write the tables of docs/measuring.md and README.md from bench/runs/")
    words.add_argument("--check", action="store_true", help="fail where it differs from bench/runs/")
    asked = words.parse_args()
    if unknown := [name for name in asked.cases if name not in names]:
        words.error(f"unknown case {unknown[0]!r}, there are: {'; '.join(names)}")
    asked.cases = [case for case in CASES if case.name in asked.cases]
    asked.folder = Path(os.environ.get("BENCH_DIR", ROOT / "large" / "bench")).resolve() / "sortmill-bench"
    asked.cores = len(os.sched_getaffinity(0))
    return asked


if __name__ == "__main__":
    main()
