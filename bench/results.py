"""bench/runs/: one CSV file per case and commit, a line per run, appended when the run has ended.

Lines of one (memory, round, attempt) belong together. A round whose disk rates differed is repeated as a new
attempt, and all attempts stay in the file; which one counts is decided here, when they are read.
Round 0 holds the runs that choose between a contestant's settings, and what the disk tools say.
"""

import csv
import json
import re

from cases import BY_NAME
from shell import ROOT

RUNS = ROOT / "bench" / "runs"
# Where runs of fewer records than the case has go: git ignores it.
REDUCED_RUNS = ROOT / "large" / "runs"

RATES = ("read_alone", "write_alone", "mixed_read", "mixed_write")
COLUMNS = [
    "case", "date", "started", "commit", "round", "attempt", "contestant", "setting", "records", "data_bytes",
    "memory_bytes", "failure", "exit_status", "wall_s", "cpu_s", "user_s", "system_s", "peak_anon_bytes",
    "peak_rss_bytes", "peak_cgroup_bytes", "cgroup_limit_bytes", "own_read_bytes", "own_written_bytes",
    "device_read_bytes", "device_written_bytes", "distribute_s", "sort_s", "floor_s", "floor_distribute_s",
    "floor_sort_s", "floor_memory_s", "floor_synced_s", "drift", "disk_tool",
    *(f"{rate}_{when}" for when in ("before", "after", "memory_before", "memory_after") for rate in RATES),
    "synced_before", "synced_after",
    "checksum", "caches_dropped", "memory_warm_bytes", "load_1min", "cpu", "clock_hz", "cores",
    "memory_total_bytes", "kernel", "file_system", "version",
]
# Never numbers, though a commit or a checksum may look like one.
WORDS = {"case", "date", "started", "commit", "contestant", "setting", "failure", "checksum", "cpu", "kernel",
         "file_system", "disk_tool", "version", "versions"}
# The part by which two rates of the disk may differ around one run.
DRIFT_MAX = 0.10
ROUNDS_MIN = 3


def append(path, row):
    path.parent.mkdir(parents=True, exist_ok=True)
    append_rows(path, [row], COLUMNS)


def append_rows(path, rows, columns=None):
    """Appends rows, with a heading where the file is new; of the columns that the first one has if none are named."""
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, columns or rows[0], lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def append_report(path, report):
    """Beside the CSV, a line of JSON per run of ours: its own account of it, without where this checkout lies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".reports.jsonl"), "a") as file:
        file.write(json.dumps(report).replace(f"{ROOT}/", "") + "\n")


def read(path):
    """The file's lines, numbers as numbers and what is empty as None."""
    with open(path, newline="") as file:
        return [of_old_form({name: value(name, text) for name, text in line.items()}) for line in csv.DictReader(file)]


def value(name, text):
    if not text or name in WORDS:
        return text or None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def of_old_form(row):
    """Files up to 2026-11-22 knew one case, and a floor from the mixed rates alone, which is not the same F. Other
    tools' files lie here too."""
    if "case" in row or "contestant" not in row:
        return row
    row |= {name: None for name in COLUMNS if name not in row or name.startswith("floor")}
    version = re.search(rf"{row['contestant']}==([\d.]+)", row["versions"])
    return row | {"case": "binary-2gib", "attempt": 1, "started": row["date"], "version": version and version.group(1)}


def attempts(rows, memory_bytes, round_number, contestants):
    """The attempts at this round that are whole, each as {contestant: row}, first to last."""
    found = {}
    for row in rows:
        if (row["memory_bytes"], row["round"]) == (memory_bytes, round_number):
            found.setdefault(row["attempt"], {})[row["contestant"]] = row
    return [found[key] for key in sorted(found) if set(contestants) <= set(found[key])]


def drift(attempt):
    """The largest of its runs', or None where no rates were taken."""
    return max((row["drift"] for row in attempt.values() if row["drift"] is not None), default=None)


def is_steady(attempt):
    return drift(attempt) is not None and drift(attempt) <= DRIFT_MAX


def is_finished(tries, repeats_max):
    """Where nobody took rates, one attempt is enough."""
    return len(tries) > repeats_max or any(is_steady(attempt) or drift(attempt) is None for attempt in tries)


def counted(rows, memory_bytes, contestants):
    """Of each round the attempt with the least drift: the first steady one, if there is one."""
    rounds = sorted({row["round"] for row in rows if row["memory_bytes"] == memory_bytes and row["round"] > 0})
    all_tries = (attempts(rows, memory_bytes, round_number, contestants) for round_number in rounds)
    return [min(tries, key=lambda attempt: drift(attempt) or 0) for tries in all_tries if tries]


def contestants_of(rows):
    """Those of the case who ran, in its order; one who took no part is left out rather than awaited."""
    ran = {row["contestant"] for row in rows if row["round"] > 0}
    return [name for name in BY_NAME[rows[0]["case"]].contestants if name in ran]


def newest(folder=RUNS, is_fit=lambda rows: True):
    """{case name: (path, rows)} of the newest file of each case whose rows are fit."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        rows = read(path)
        if not rows or rows[0].get("case") not in BY_NAME or not is_fit(rows):
            continue
        name = rows[0]["case"]
        if name not in found or last_start(found[name][1]) <= last_start(rows):
            found[name] = (path, rows)
    return {name: found[name] for name in BY_NAME if name in found}


def last_start(rows):
    # An old file may lack it, and is not the newest for that.
    return max(str(row.get("started") or row["date"]) for row in rows)


def is_fit_to_show(rows):
    """Whole data, cold and in a control group, a commit that can be looked up, and enough rounds at each memory."""
    case = BY_NAME[rows[0]["case"]]
    names = contestants_of(rows)
    timed = [row for row in rows if row["round"] > 0]
    return (all(row["records"] == case.record_count and str(row["caches_dropped"]) == "True"
                and row["cgroup_limit_bytes"] for row in timed)
            and not any("dirty" in str(row["commit"]) for row in rows)
            and "sortmill" in names
            and all(len(counted(rows, memory, names)) >= ROUNDS_MIN for memory in case.memories))
