"""What each stage costs: one job of binary records, ended after each stage in turn by `sort --until`.

Each run begins from a cold page cache and throws away what comes out of its last stage; the last one is the whole job,
with its output synced and named. A stage's cost is the difference to the run before, in time and in CPU: stages run
beside each other, so a stage that hides behind another costs CPU but no time, and one that disturbs it may cost more
than it takes alone. Runs alternate (forwards, then backwards) because disks drift; figures are medians of the rounds.

Raw results are appended to bench/runs/<date>-<commit>-stages-<size>.csv; a table goes to stdout. Data go to $BENCH_DIR
(default large/bench, which git ignores) and are deleted at the end. Standard library only.
"""

import argparse
import csv
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import compare
from compare import KEY_FLAGS, RECORD_BYTES, ROOT, RUNS, SORTMILL, fail, gb, say

WHOLE = "(whole job)"
STAGES = ["read", "cut", "partition", "spill", "load", "sort", "reduce", WHOLE]


def main():
    asked = parse_flags()
    require_space(asked)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    shutil.rmtree(asked.folder, ignore_errors=True)
    asked.folder.mkdir(parents=True)
    try:
        facts = compare.machine_facts(asked)
        source, _ = compare.generate(asked, False)
        rows = []
        for round_number in range(1, asked.rounds + 1):
            for stage in STAGES if round_number % 2 else STAGES[::-1]:
                row = facts | {"round": round_number, "until": stage} | run_once(asked, source, stage)
                keep(RUNS / f"{facts['date']}-{facts['commit']}-stages-{asked.data_bytes / 1e9:g}gb.csv", row)
                rows.append(row)
        print(f"{gb(asked.data_bytes)} in {asked.memory / compare.GIB:.2f} GiB, median of {asked.rounds} rounds "
              f"(least to most); GB and MB are decimal\n{compare.facts_line(facts)}\n")
        print(table(asked, rows))
    finally:
        shutil.rmtree(asked.folder, ignore_errors=True)


def parse_flags():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", 3)), help="default $ROUNDS or 3")
    words.add_argument("--records", type=int, default=10_000_000, help="of 100 bytes; default 10000000, 1 GB")
    words.add_argument("--memory", type=compare.parse_size, default=256 << 20, help="default 256MiB")
    asked = words.parse_args()
    if asked.rounds < 1 or asked.records < 1:
        words.error("--rounds and --records begin at 1")
    asked.data_bytes = asked.records * RECORD_BYTES
    asked.folder = Path(os.environ.get("BENCH_DIR", ROOT / "large" / "bench")).resolve() / "sortmill-stages"
    asked.threads = len(os.sched_getaffinity(0))
    asked.contestants = ["sortmill"]
    return asked


def require_space(asked):
    """Input, temporary data and output, and a fifth on top."""
    needed = int(1.2 * 3.1 * asked.data_bytes)
    existing = next(folder for folder in [asked.folder, *asked.folder.parents] if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        fail(f"{existing} has {gb(free)} free, this needs {gb(needed)}\n\n"
             f"Set BENCH_DIR to a folder on a larger disk, or --records to fewer than {asked.records}.")


def run_once(asked, source, stage):
    """One run from a cold page cache, timed from outside until the process has ended."""
    output, temp, log = (asked.folder / name for name in ["out.bin", "temp", "log"])
    temp.mkdir()
    words = [SORTMILL, "sort", *KEY_FLAGS, "--memory", str(asked.memory), "--temp", temp, "-o", output, source]
    words += [] if stage == WHOLE else ["--until", stage]
    is_cold = compare.drop_caches()
    compare.warm_program("sortmill")
    compare.warm_memory(asked.memory + (256 << 20))
    with open(log, "w") as log_file:
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log_file,
                                   stderr=log_file)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        fail(f"--until {stage} failed with {process.returncode}:\n{log.read_text()[-2000:]}")
    if output.exists() != (stage == WHOLE):
        fail(f"--until {stage}: an output was made, or the whole job made none")
    output.unlink(missing_ok=True)
    shutil.rmtree(temp)
    cpu = usage.ru_utime + usage.ru_stime
    say(f"{stage}: {wall:.2f} s, {cpu:.2f} CPU s")
    return {
        "wall_s": round(wall, 3),
        "cpu_s": round(cpu, 3),
        "user_s": round(usage.ru_utime, 3),
        "system_s": round(usage.ru_stime, 3),
        "caches_dropped": is_cold,
        "load_1min": os.getloadavg()[0],
    }


def keep(path, row):
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def table(asked, rows):
    lines = ["| until | s | MB/s | CPU s per GB | more s | more CPU s per GB |", "|---|---|---|---|---|---|"]
    last_wall, last_cpu = 0.0, 0.0
    for stage in STAGES:
        of_stage = [row for row in rows if row["until"] == stage]
        walls = [row["wall_s"] for row in of_stage]
        wall = statistics.median(walls)
        cpu = statistics.median(row["cpu_s"] for row in of_stage) * 1e9 / asked.data_bytes
        lines.append(f"| {stage} | {wall:.2f} ({min(walls):.2f} - {max(walls):.2f}) "
                     f"| {asked.data_bytes / wall / 1e6:.0f} | {cpu:.2f} "
                     f"| {wall - last_wall:+.2f} | {cpu - last_cpu:+.2f} |")
        last_wall, last_cpu = wall, cpu
    return "\n".join(lines)


if __name__ == "__main__":
    main()
