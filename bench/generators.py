"""How fast each kind of test data is made, for each core: `make bench-generators`.

    python3 bench/generators.py            runs all (some minutes, no disk) and writes a file to bench/runs/
    python3 bench/generators.py --write    writes docs/generators.md's table from the newest such file
    python3 bench/generators.py --check    fails where the table is not what that file gives

One thread makes the data and another hands them to /dev/null, kinds in turn, so that what is told is what the
processor gives: bytes over the time that it worked for the process, in user mode and in the kernel.
"""

import argparse
import csv
import os
import subprocess
import time
from statistics import median

from machine import machine_facts
from marked import kept, of_newest, replaced
from results import RUNS
from shell import GIB, ROOT, SORTMILL, fail, gb, say
from table import in_cells, spread

PAGE = ROOT / "docs" / "generators.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
KINDS = ["records", "zipf", "sorted", "pareto", "empty", "text", "numbers", "csv", "json", "clicks", "graph",
         "graph --format fixed", "graph --kind power-law", "graph --kind power-law --format fixed"]
COLUMNS = ["kind", "date", "started", "commit", "round", "bytes", "wall_s", "cpu_s", "load_1min", "cpu", "clock_hz", "cores",
           "memory_total_bytes", "kernel"]
MB_S_ASKED = 500


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--write", action="store_true", help="write the table of docs/generators.md")
    flags.add_argument("--check", action="store_true", help="fail where that is out of date")
    flags.add_argument("--bytes", type=int, default=2 * 10**9, help="of each kind [default: 2 GB]")
    flags.add_argument("--rounds", type=int, default=5)
    flags = flags.parse_args()
    if flags.check or flags.write:
        kept(PAGE, expected(), "generators.py", flags.check)
    else:
        run_all(flags)


def run_all(flags):
    flags.cores, flags.folder = os.cpu_count() or 1, ROOT
    facts = machine_facts(flags)
    path = RUNS / f"{facts['date']}-{facts['commit']}-generators.csv"
    rows = []
    for number in range(1, flags.rounds + 1):
        for kind in KINDS:
            row = run(kind, flags.bytes) | {"round": number}
            say(f"{kind}: {row['bytes'] / row['cpu_s'] / 1e6:.0f} MB/s")
            rows.append({name: row.get(name, facts.get(name)) for name in COLUMNS})
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    say(f"wrote {path.name}")


def run(kind, byte_count):
    size = [str(byte_count // 100)] if kind == "records" else ["--bytes", str(byte_count)]
    words = [str(SORTMILL), "gen", *kind.split(), *size, "/dev/null", "--threads", "1"]
    start = time.monotonic()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        fail(f"gen {kind}: {said[-500:]}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"kind": kind, "bytes": byte_count, "wall_s": round(wall_s, 3), "cpu_s": round(cpu_s, 3),
            "load_1min": os.getloadavg()[0]}


def expected():
    return replaced(PAGE, BEGIN, END, of_newest("generators", table))


def table(rows, path):
    kinds = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(float(row["bytes"]) / float(row["cpu_s"]) / 1e6)
    lines = [in_cells(["kind", "MB/s per core", ""]), "|---|---|---|"]
    for kind, rates in kinds.items():
        lines.append(in_cells([f"`{kind}`", spread(rates, 0), "yes" if median(rates) >= MB_S_ASKED else "**no**"]))
    first = rows[0]
    lines += ["", f"Asked: at least {MB_S_ASKED} MB/s for each core. `bench/runs/{path.name}`: "
              f"{gb(int(first['bytes']))} of each to /dev/null by one thread,",
              f"{max(int(row['round']) for row in rows)} rounds, median (least - most), over the processor's time; "
              f"{first['date']}, commit {first['commit']}, {first['cpu']},",
              f"{first['cores']} cores, {float(first['memory_total_bytes']) / GIB:.1f} GiB, Linux {first['kernel']}."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
