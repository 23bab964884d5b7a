"""What the disk gives while the processors are at work.

    python3 bench/disk_beside_work.py [DIR]       default large/bench, which git ignores; two minutes, 8 GB of disk

`sortmill bench disk`, by turns with none, one and all processors kept busy by a loop that touches no memory. On a
machine of one's own the rates are alike. On a virtual one whose host counts the work of its disk against the processors it
lent, they are not: there a job cannot have both in full, which the floor of floor.py does not know.
Raw results are appended to bench/runs/<date>-<commit>-disk-beside-work.csv.
"""

import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from results import RUNS, append_rows
from shell import ROOT, SORTMILL, command

ROUNDS = 3
WORDS = ["--seconds", "2", "--rounds", "1", "--block", "4MiB", "--depth", "8", "--bytes", "4GiB", "--json"]
WAYS = {(True, False): "read", (False, True): "write", (True, True): "both"}


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "large" / "bench")
    folder.mkdir(parents=True, exist_ok=True)
    cores = len(os.sched_getaffinity(0))
    commit = command(["git", "rev-parse", "--short", "HEAD"]).stdout.strip()
    rows = []
    for turn in range(1, ROUNDS + 1):
        for busy in sorted({0, 1, cores}):
            told = {"commit": commit, "round": turn, "busy": busy, "cores": cores}
            rows += [{**told, **row} for row in rates(folder, busy)]
    path = RUNS / f"{datetime.date.today()}-{commit}-disk-beside-work.csv"
    append_rows(path, rows)
    print(f"MB/s, median of {ROUNDS} rounds (least - most)")
    for busy in sorted({0, 1, cores}):
        for way in WAYS.values():
            of = [sum(row[f"{kind}_bytes_per_s"] for kind in ("read", "write")) / 1e6 for row in rows
                  if (row["busy"], row["way"]) == (busy, way)]
            print(f"{busy} busy, {way:<5} {statistics.median(of):6.0f} ({min(of):.0f} - {max(of):.0f})")
    print(path)


def rates(folder, busy):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        found = json.loads(command([SORTMILL, "bench", "disk", folder, *WORDS]).stdout)["rows"]
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    for row in found:
        yield {"way": WAYS[bool(row["reading"]), bool(row["writing"])],
               **{f"{kind}_bytes_per_s": (row[f"{kind}_bytes_per_s"] or {"median": 0})["median"]
                  for kind in ("read", "write")}}


if __name__ == "__main__":
    main()
