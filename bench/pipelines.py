"""A day's pipelines, with GNU's programs and with Sortmill, side by side: `make bench-pipelines`.

    python3 bench/pipelines.py                        all cases (5 GB in 1 GiB, three rounds: two hours, 20 GB of disk)
    python3 bench/pipelines.py --cases "uniq -c" --small-rounds 0 --rounds 1 --resume    adds to this commit's raw results
    python3 bench/pipelines.py --bytes 500000000 --memory 100000000 --cases "uniq -c;shuffle" --rounds 1
    python3 bench/pipelines.py --write                docs/drop-in.md's table, from bench/runs/ alone
    python3 bench/pipelines.py --check                fails where it differs

Each round runs a case with each program, one after the other, as in measure.py: from a cold page cache to a synced
output, both with the same memory (GNU's -S) and as many threads as there are cores (--parallel). Outputs are compared
byte for byte, those of shuffles by records and checksum. `shuf` has no limit on its memory, and gets what it takes. Small
inputs come warm, many times, and go to standard output. A line for each run goes to
bench/runs/<date>-<commit>-pipelines.csv, of other sizes to large/runs. `--resume` leaves out what has its lines there.
"""

import argparse
import csv
import hashlib
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pipeline_table
from compare import alone_in
from contestants import VENV_PYTHON, version, why_missing
from machine import machine_facts
from marked import kept
from measure import CGROUP_SPARE_BYTES, drop_caches, measure, warm_memory
from pipeline_table import COLUMNS, DUCKDB, GNU, OURS
from results import REDUCED_RUNS, RUNS
from shape_runs import Made, checked
from shell import GIB, ROOT, SORTMILL, command, fail, gb, say

BYTES, MEMORY, ROUNDS, SMALL_ROUNDS = 5 * 10**9, GIB, 3, 41
GEN = f"'{SORTMILL}' gen"
# How an input of {bytes} bytes is made as {path}.
DATA = {
    "words": GEN + " text --words 1 --bytes {bytes} '{path}'",
    "hundredth": GEN + " records --ascii {hundredth} '{path}.one' && "
                       "for copy in $(seq 100); do cat '{path}.one'; done > '{path}' && rm '{path}.one'",
    "records": GEN + " records --ascii {records} '{path}'",
    "numbers": GEN + " numbers --bytes {bytes} '{path}'",
    "columns": GEN + " csv --bytes {bytes} '{path}'",
    "sizes": GEN + " numbers --bytes {bytes} - | LC_ALL=C sed 's/0$/K/; s/1$/M/; s/2$/G/' > '{path}'",
    "versions": GEN + " numbers --bytes {bytes} - | LC_ALL=C sed 's/^/file-/; s/$/.tar.gz/' > '{path}'",
    "hundred files": "mkdir '{path}' && " + GEN + " records --ascii --files 100 {records} '{path}' && "
                     "for part in '{path}'/*; do '" + str(SORTMILL) + "' sort -q -o \"$part\" \"$part\"; done",
}


@dataclass(frozen=True)
class Case:
    name: str
    data: str
    # What stands behind `sort` and `sortmill`; of GNU's, what its output goes through.
    gnu: str
    ours: str
    behind: str = ""
    is_shuffle: bool = False


def sorting(flags, data, name=None):
    return Case(name or f"sort {flags}", data, flags, f"sort {flags}")


CASES = [
    Case("uniq -c", "words", "", "uniq -c", " | LC_ALL=C uniq -c"),
    Case("count --by-count", "words", "", "count --by-count",
         " | LC_ALL=C uniq -c | LC_ALL=C sort {means} -k1,1nr -k2"),
    Case("uniq -c, nothing twice", "records", "", "uniq -c", " | LC_ALL=C uniq -c"),
    sorting("-u", "hundredth", "sort -u, 1 % distinct"),
    Case("top 1000", "records", "", "top 1000", " | head -n 1000"),
    Case("shuffle", "records", "", "shuffle", is_shuffle=True),
    sorting("-n", "numbers"),
    sorting("-g", "numbers"),
    sorting("-t, -k3,3n", "columns"),
    sorting("-t, -k3,3 -k1,1nr", "columns"),
    sorting("-h", "sizes"),
    sorting("-V", "versions"),
    sorting("-m", "hundred files", "sort -m, 100 files"),
]
SMALL_BYTES = [0, 1000, 10_000, 100_000, 1_000_000, 10_000_000]


def main():
    asked = parse_flags()
    if asked.check or asked.write:
        return kept(pipeline_table.PAGE, pipeline_table.expected(), "pipelines.py", asked.check)
    with alone_in(asked.folder):
        runs = Runs(asked)
        for name in dict.fromkeys(case.data for case in asked.cases):
            runs.large(name, [case for case in asked.cases if case.data == name])
        if asked.small_rounds:
            runs.small()
    print(pipeline_table.tables(runs.rows))


class Runs:
    def __init__(self, asked):
        self.asked, self.facts, self.rows = asked, machine_facts(asked), []
        is_whole = (asked.bytes, asked.memory) == (BYTES, MEMORY)
        folder = RUNS if is_whole else REDUCED_RUNS
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{self.facts['date']}-{self.facts['commit']}-pipelines.csv"
        is_there = self.path.exists()
        if is_there and asked.resume:
            self.rows = pipeline_table.read(self.path)
        elif is_there and is_whole:
            fail(f"{self.path.name} is there already\n\nDelete it to measure again, or go on with --resume.")
        self.versions = {GNU: version("gnu"), OURS: version("sortmill")}
        self.without_duckdb = why_missing("duckdb")
        if self.without_duckdb:
            say(f"without DuckDB: {self.without_duckdb}")
        else:
            self.versions[DUCKDB] = version("duckdb")
        if not self.rows:
            with open(self.path, "w", newline="") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writeheader()
        self.before = {(row["case"], row["bytes"], row["round"]) for row in self.rows}

    def keep(self, rows):
        """Adds what belongs together, so that what was cut off is done again as a whole."""
        rows = [{name: row.get(name, self.facts.get(name)) for name in COLUMNS} for row in rows]
        self.rows += rows
        with open(self.path, "a", newline="") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(rows)

    def large(self, data, cases):
        """All rounds of the cases that have this input."""
        rounds = [(case, number) for number in range(1, self.asked.rounds + 1) for case in cases
                  if (case.name, number) not in {(name, number) for name, _, number in self.before}]
        if not rounds:
            return
        path = self.asked.folder / "in"
        say(f"making {gb(self.asked.bytes)} of {data}")
        make(data, path, self.asked.bytes)
        byte_count = sum(part.stat().st_size for part in ([path] if path.is_file() else path.iterdir()))
        os.sync()
        for case, number in rounds:
            self.round(case, path, byte_count, number)
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def round(self, case, path, byte_count, number):
        outputs, rows = {}, []
        programs = [GNU, OURS, *([DUCKDB] if case.is_shuffle and not self.without_duckdb else [])]
        # Who goes first has the disk as the one before left it: in turns.
        for program in programs if number % 2 else programs[::-1]:
            output, temp = self.asked.folder / "out", self.asked.folder / "temp"
            temp.mkdir()
            drop_caches()
            warm_memory(self.asked.memory + GIB)
            spare = 3 * byte_count if (program, case.is_shuffle) == (GNU, True) else CGROUP_SPARE_BYTES
            log = self.asked.folder / "log"
            words = ["bash", "-c", f"set -o pipefail; {self.script(case, program, path, output, temp)}"]
            row = measure(words, self.asked.memory, self.asked.folder, log, spare)
            # A writer whose reader has had enough ends by SIGPIPE.
            if row["exit_status"] not in ((0, 141) if "head" in case.behind else (0,)):
                if program == DUCKDB:
                    self.without_duckdb = "it failed"
                    say(f"without DuckDB: {log.read_text()[-500:]}")
                    shutil.rmtree(temp)
                    continue
                fail(f"{case.name}, {program}: {log.read_text()[-500:]}")
            outputs[program] = Made(output, *checked(Plain, output)[1:]).checksum if case.is_shuffle else hash_of(output)
            row |= {"case": case.name, "program": program, "version": self.versions[program], "round": number,
                    "bytes": byte_count, "memory_bytes": self.asked.memory}
            rows.append(row)
            say(f"{case.name}, {program}: {row['wall_s']:.1f} s")
            output.unlink()
            shutil.rmtree(temp)
        if len(set(outputs.values())) != 1:
            fail(f"{case.name}: the outputs differ: {outputs}")
        self.keep(rows)

    def script(self, case, program, path, output, temp):
        files = f"'{path}'/*" if path.is_dir() else f"'{path}'"
        means = f"-S {self.asked.memory // 1024}K --parallel={self.asked.cores} -T '{temp}'"
        if program == OURS:
            return f"'{SORTMILL}' {case.ours} -q --memory {self.asked.memory} -T '{temp}' -o '{output}' {files}"
        if program == DUCKDB:
            return (f"'{VENV_PYTHON}' '{ROOT}/bench/peers/duckdb_shuffle.py' --memory {self.asked.memory} "
                    f"--threads {self.asked.cores} --temp '{temp}' -o '{output}' {files}")
        if case.is_shuffle:
            return f"shuf -o '{output}' {files}"
        return f"LC_ALL=C sort {means} {case.gnu} {files}{case.behind.format(means=means)} > '{output}'"

    def small(self):
        """Small inputs to standard output: from the page cache, both programs in turns."""
        for byte_count in SMALL_BYTES:
            path = self.asked.folder / "small"
            make("records", path, byte_count)
            words = {GNU: ["sort", path], OURS: [SORTMILL, "sort", "-q", path]}
            made_bytes = path.stat().st_size
            for number in range(1, self.asked.small_rounds + 1):
                if ("small", made_bytes, number) not in self.before:
                    self.keep([{"case": "small", "program": program, "version": self.versions[program],
                                "round": number, "bytes": made_bytes, "wall_s": round(timed(line), 5)}
                               for program, line in words.items()])
            path.unlink()


class Plain:
    """Whole lines, for `checked`."""
    sort = ()


def make(data, path, byte_count):
    if data == "records" and byte_count < 100:
        path.touch()
        return
    script = DATA[data].format(path=path, bytes=byte_count, records=byte_count // 100, hundredth=byte_count // 10_000)
    command(["bash", "-c", f"set -eo pipefail; {script}"])


def timed(words):
    start = time.perf_counter()
    subprocess.run([str(word) for word in words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   env={**os.environ, "LC_ALL": "C"})
    return time.perf_counter() - start


def hash_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parse_flags():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [case.name for case in CASES]
    words.add_argument("--cases", type=lambda text: text.split(";"), default=names,
                       help=f"some of them, with semicolons between: {'; '.join(names)}".replace("%", "%%"))
    words.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    words.add_argument("--bytes", type=int, default=BYTES, help="default 5 GB")
    words.add_argument("--memory", type=int, default=MEMORY, help="bytes; default 1 GiB")
    words.add_argument("--small-rounds", type=int, default=SMALL_ROUNDS,
                       help=f"of each small input; default {SMALL_ROUNDS}, 0 for none")
    words.add_argument("--resume", action="store_true", help="add to this commit's raw results what they lack")
    words.add_argument("--write", action="store_true", help="write docs/drop-in.md's table from bench/runs/")
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
