"""Whether plans come true at real sizes, and how good the guess of the time left is at half time: `make bench-foreseen`.

    python3 bench/foreseen.py                              the matrix at 2 GB (10 minutes, 6 GB of disk)
    python3 bench/foreseen.py --bytes 500000000 --data fixed:100 --ratios 0.5,5

Each row is one job from a cold page cache: its dry run's plan, what its report says came of it, and what its progress
said when half of its time had passed. Writes bench/runs/<date>-<commit>-foreseen.csv and prints a table.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from data import short_records
from machine import machine_facts
from measure import drop_caches, warm_memory
from results import RUNS
from shell import GIB, ROOT, SORTMILL, command, fail, gb, say

KEYED = ("--format", "fixed:100", "--key", "0:10")
# What is sorted: how it is made, and the flags of the sort.
DATA = {
    "fixed:100": (("records",), KEYED),
    "fixed:24": (None, ("--format", "fixed:24", "--key", "0:10")),
    "lines": (("text",), ()),
    "kv": (("pareto", "--largest", "100kB"), ("--format", "kv")),
    "zipf": (("zipf", "--exponent", "1"), KEYED),
}
# Data over memory: those of the case memory-sweep, and the issue's.
RATIOS = [0.5, 0.625, 0.9, 0.91, 1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 5.0, 10.0, 40.0]
COLUMNS = ["date", "commit", "data", "bytes", "memory_bytes", "temp_foreseen", "temp_was", "moved_foreseen", "moved_was",
           "resident_foreseen", "resident_was", "passes_foreseen", "passes_was", "partitions", "divided", "merged", "wall_s",
           "distribute_s", "sort_s", "half_s", "left_foreseen_s", "left_was_s", "cpu", "cores", "kernel", "file_system"]


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--bytes", type=int, default=2 * 10**9)
    words.add_argument("--data", type=lambda text: text.split(","), default=list(DATA))
    words.add_argument("--ratios", type=lambda text: [float(one) for one in text.split(",")], default=RATIOS)
    words.add_argument("--rounds", type=int, default=1)
    asked = words.parse_args()
    asked.folder = Path(os.environ.get("BENCH_DIR", ROOT / "large")).resolve() / "foreseen"
    asked.cores = len(os.sched_getaffinity(0))
    shutil.rmtree(asked.folder, ignore_errors=True)
    asked.folder.mkdir(parents=True)
    try:
        facts = machine_facts(asked)
        rows = [row for data in asked.data for row in measured(asked, data, facts)]
    finally:
        shutil.rmtree(asked.folder, ignore_errors=True)
    print(table(rows))


def measured(asked, data, facts):
    gen, flags = DATA[data]
    path = asked.folder / "in"
    say(f"generating {data}, {gb(asked.bytes)}")
    if gen:
        kind, *rest = gen
        count = [str(asked.bytes // 100)] if kind in ("records", "zipf") else ["--bytes", str(asked.bytes)]
        command([SORTMILL, "gen", kind, *rest, *count, path])
    else:
        short_records(path, asked.bytes // 24)
    os.sync()
    out = RUNS / f"{facts['date']}-{facts['commit']}-foreseen.csv"
    is_new = not out.exists()
    with open(out, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        if is_new:
            writer.writeheader()
        for _ in range(asked.rounds):
            for ratio in asked.ratios:
                row = {**facts, "data": data} | job(asked, path, flags, int(path.stat().st_size / ratio))
                writer.writerow(row)
                file.flush()
                say(line(row))
                yield row
    path.unlink()


def job(asked, path, flags, memory_bytes):
    report, output = asked.folder / "report", asked.folder / "out"
    words = [SORTMILL, "sort", *flags, "--memory", str(memory_bytes), "-o", output, path, "--report", report]
    command([*words, "--dry-run"])
    plan = json.loads(report.read_text())["plan"]
    drop_caches()
    warm_memory(min(memory_bytes, path.stat().st_size * 11 // 10) + GIB)
    began = time.monotonic()
    running = subprocess.Popen([str(word) for word in [*words, "-q", "--progress", "json"]],
                               stderr=subprocess.PIPE, text=True)
    told = [json.loads(said) for said in running.stderr if said.startswith("{")]
    if running.wait() != 0:
        fail(f"{' '.join(map(str, words))} failed")
    wall_s = time.monotonic() - began
    found = json.loads(report.read_text())
    output.unlink()
    bytes_of = found["bytes"]
    end_s = told[-1]["elapsed_ns"] / 1e9
    half = next((one for one in told if one["elapsed_ns"] / 1e9 >= end_s / 2 and one["left_ns"] is not None), told[-1])
    moved = sum(bytes_of[one] for one in ("input_read", "sample_read", "temp_written", "temp_read", "output_written"))
    merged = found["partitions"]["merged"]
    return {
        "bytes": bytes_of["input"],
        "memory_bytes": memory_bytes,
        "temp_foreseen": plan["temp_bytes"],
        "temp_was": bytes_of["temp_written"],
        "moved_foreseen": plan["moved_bytes"],
        "moved_was": moved,
        "resident_foreseen": plan["resident_bytes"],
        "resident_was": found["memory"]["resident_bytes_peak"],
        "passes_foreseen": plan["passes"],
        "passes_was": 3 if merged else 2 if bytes_of["temp_written"] else 1,
        "partitions": found["partitions"]["count"],
        "divided": found["partitions"]["divided"],
        "merged": merged,
        "wall_s": round(wall_s, 3),
        "distribute_s": round(found["phases"][0]["wall_ns"] / 1e9, 3),
        "sort_s": round(found["phases"][1]["wall_ns"] / 1e9, 3),
        "half_s": round(half["elapsed_ns"] / 1e9, 3),
        "left_foreseen_s": round(half["left_ns"] / 1e9, 3),
        "left_was_s": round(end_s - half["elapsed_ns"] / 1e9, 3),
    }


def off(foreseen, was):
    return f"{100 * (foreseen / was - 1):+.1f} %" if was else ("0" if not foreseen else "-")


def line(row):
    return " | ".join(cells(row))


def cells(row):
    of_input = 100 * (row["temp_foreseen"] - row["temp_was"]) / row["bytes"]
    return [
        row["data"], f"{row['bytes'] / row['memory_bytes']:.2f}", f"{row['temp_was'] / 1e9:.3f}",
        off(row["temp_foreseen"], row["temp_was"]), f"{of_input:+.2f} %", off(row["moved_foreseen"], row["moved_was"]),
        off(row["resident_foreseen"], row["resident_was"]), f"{row['passes_foreseen']}, {row['passes_was']}",
        f"{row['wall_s']:.1f}", off(row["left_foreseen_s"], row["left_was_s"]),
    ]


def table(rows):
    heads = ["data", "over memory", "temporary GB", "foreseen", "of the input", "moved", "memory", "passes", "wall s",
             "time left at half time"]
    lines = [heads, ["---"] * len(heads), *map(cells, rows)]
    return "\n".join("| " + " | ".join(each) + " |" for each in lines)


if __name__ == "__main__":
    sys.exit(main())
