"""How long fio takes to move the bytes that a sort of 10 GB moves, beside that sort and beside F: what no sort can do sooner here.

    python3 bench/same_bytes.py [DIR] [--rounds 3] [--memory GB ...]       default large/same-bytes, which git ignores

F is made of rates of a second or two. Fio moves what a job moves, phase by phase, and does nothing else with it:

    distribute   reads the input, writes what does not fit in memory to reserved, new space
    sort         reads that back, writes the output over it

direct, io_uring, requests of 1 MiB from and to buffers in huge pages that are used again and again (8 of them each way, which the
cache of the host holds), both ways at once or one after the other: all of one, then all of the other, which no sort can do that
has less memory than data. From a cold page cache; `sortmill bench disk` before and after, as for any figure over F.

Files (20 GB) are deleted at the end. Raw results are appended to bench/runs/<date>-<commit>-same-bytes.csv. Needs fio, and root for
the page cache and huge pages.
"""

import argparse
import json
import os
from pathlib import Path

from disk import OwnDiskBench, reserve_huge_pages
from floor import Budget, floor
from machine import machine_facts
from measure import drop_caches, warm_memory
from results import RUNS, append_rows
from shell import GIB, ROOT, SORTMILL, command, fail, say
from table import spread

DATA_BYTES, RECORD_BYTES = 10 * 10**9, 100
HUGE_PAGES = 128
FIO_DEPTH = 8
# Whether both ways go at once.
FIO_WAYS = {"fio, both at once": True, "fio, one after the other": False}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "large" / "same-bytes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs="+", default=[1, 4, 8], metavar="GB")
    asked = parser.parse_args()
    asked.cores = len(os.sched_getaffinity(0))
    command(["make", "--no-print-directory", "build"])
    asked.folder.mkdir(parents=True, exist_ok=True)
    facts = machine_facts(asked)
    out = RUNS / f"{facts['date']}-{facts['commit']}-same-bytes.csv"
    rows = []
    try:
        command([SORTMILL, "gen", "records", DATA_BYTES // RECORD_BYTES, asked.folder / "in.bin"])
        for number in range(1, asked.rounds + 1):
            for memory in asked.memory:
                new = one_round(asked.folder, memory * 10**9, facts)
                rows += [{**facts, "round": number, **row} for row in new]
                append_rows(out, rows[-len(new):])
    finally:
        reserve_huge_pages(0)
        for name in ("in.bin", "out.bin", "fio.bin", "report.json"):
            (asked.folder / name).unlink(missing_ok=True)
        asked.folder.rmdir()
    show(rows)
    print(out)


def one_round(folder, memory_bytes, facts):
    """A row for each who moved these bytes, with the floor of the rates before and after all of them."""
    disk = OwnDiskBench(folder, 2 * GIB, 3)
    before = disk.rates_around()
    spilled, took = sort(folder, memory_bytes)
    took = {"sortmill": took} | {name: move(folder, spilled, at_once) for name, at_once in FIO_WAYS.items()}
    after = disk.rates_around()
    best = before.best(after)
    budget = Budget.of("fixed", DATA_BYTES // RECORD_BYTES, facts["cores"], facts["clock_hz"])
    floors = [floor(DATA_BYTES, memory_bytes, rates, budget) for rates in (best.rates, best.memory)]
    say(f"{memory_bytes / 1e9:.0f} GB: F {floors[0].total_s:.1f} s, of memory {floors[1].total_s:.1f}; "
        + ", ".join(f"{who} {sum(seconds):.1f}" for who, seconds in took.items()))
    return [{"memory_bytes": memory_bytes, "who": who, "spilled_bytes": spilled, "distribute_s": round(distribute_s, 2),
             "sort_s": round(sort_s, 2), "floor_distribute_s": round(floors[0].distribute_s, 2),
             "floor_sort_s": round(floors[0].sort_s, 2), "floor_s": round(floors[0].total_s, 2),
             "floor_memory_s": round(floors[1].total_s, 2), "drift": round(before.rates.drift(after.rates), 3)}
            for who, (distribute_s, sort_s) in took.items()]


def sort(folder, memory_bytes):
    """Bytes of temporary data, and how long both phases took."""
    drop_caches()
    warm_memory(memory_bytes + GIB)
    report, out = folder / "report.json", folder / "out.bin"
    command([SORTMILL, "sort", "--format", f"fixed:{RECORD_BYTES}", "--key", "0:10", "--memory", memory_bytes, "--temp", folder,
             "--no-probe", "-q", "--report", report, "-o", out, folder / "in.bin"])
    told = json.loads(report.read_text())
    out.unlink()
    wall_s = {phase["name"]: phase["wall_ns"] / 1e9 for phase in told["phases"]}
    return told["bytes"]["temp_written"], (wall_s["distribute"], wall_s["sort"])


def move(folder, spilled, at_once):
    """How long fio takes for the bytes of both phases."""
    moved = folder / "fio.bin"
    command(["fallocate", "-l", DATA_BYTES, moved])
    if not reserve_huge_pages(HUGE_PAGES):
        fail("root has to reserve huge pages; from small ones fio gets less than half")
    took = []
    for source, read, written in ((folder / "in.bin", DATA_BYTES, spilled), (moved, spilled, DATA_BYTES)):
        drop_caches()
        jobs = [["--name=read", f"--filename={source}", "--rw=read", f"--size={read}"],
                ["--name=write", f"--filename={moved}", "--rw=write", f"--size={written}"]]
        took.append(fio_s(*jobs) if at_once else sum(map(fio_s, jobs)))
    moved.unlink()
    return took


def fio_s(*jobs):
    """Seconds until the last of them is done, without fio's own start."""
    words = ["fio", "--direct=1", "--ioengine=io_uring", "--bs=1M", f"--iodepth={FIO_DEPTH}", "--mem=mmaphuge", "--fallocate=none",
             "--overwrite=0", "--output-format=json"]
    told = json.loads(command([*words, *(word for job in jobs for word in job)]).stdout)["jobs"]
    return max(job[way]["runtime"] for job in told for way in ("read", "write")) / 1000


def show(rows):
    print("seconds over F, medians (least - most); F of memory over F")
    for memory in sorted({row["memory_bytes"] for row in rows}):
        of = [row for row in rows if row["memory_bytes"] == memory]
        over = {who: [(row["distribute_s"] + row["sort_s"]) / row["floor_s"] for row in of if row["who"] == who]
                for who in ("sortmill", *FIO_WAYS)}
        over["F of memory"] = [row["floor_memory_s"] / row["floor_s"] for row in of if row["who"] == "sortmill"]
        for who, ratios in over.items():
            print(f"{memory / 1e9:.0f} GB  {who:<26} {spread(ratios, 2)}")


if __name__ == "__main__":
    main()
