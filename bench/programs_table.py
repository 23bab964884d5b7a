"""What bench/runs/ says of programs on pipelines, as Markdown, and the blocks of it in docs/measuring.md and, shorter, in the
README: writes them, or fails where they differ.

Times are the median of the rounds with the least and the most; ratios are taken within one round. The floor is that of the
disk, F(D, M) of floor.py without a CPU budget for what was brought together (D on its way in, what of that does not fit M out
and in again, the output out), or the program's written CPU budget, if it has one and that is larger. Of PageRank both are an
iteration's, and so is the time that is held against them.
"""

import csv
from statistics import median

import results
from floor import Rates, phase_s, program_budget_s
from marked import replaced
from results import RUNS
from shell import GIB, ROOT
from table import in_cells, rounds_words, spread

PAGE = ROOT / "docs" / "measuring.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- programs: begin -->", "<!-- programs: end -->"
RATES = ["read_alone", "write_alone", "mixed_read", "mixed_write"]
COLUMNS = ["case", "program", "version", "date", "started", "commit", "round", "bytes", "memory_bytes", "output_bytes", "brought_bytes",
           "temp_written_bytes", "records", "brought_records", "output_records", "iteration_s", "read_bytes", "exit_status", "wall_s", "cpu_s", "peak_anon_bytes", "own_read_bytes", "own_written_bytes",
           *(f"{rate}_bytes_per_s" for rate in RATES), "cpu", "clock_hz", "cores", "memory_total_bytes", "kernel",
           "file_system"]
OURS = "sortmill"
# What has to be reached: at least so many times the fastest other, or one of them; at most so many times the floor.
TIMES_FASTEST = {"word count": (("duckdb", "polars", "chdb", "pyspark"), 2.0), "shuffle": (("duckdb",), 2.5)}
OVER_FLOOR = {"5-grams": 1.25, "sessions": 1.2, "shuffle": 1.15, "distinct": 1.2, "group counts": 1.2, "pagerank": 1.3}
# At most so many times the time of another case.
OVER_CASE = {"group counts, 30 % hot": ("group counts", 1.25)}


def expected():
    """{page: its text with the table of each case in the newest file that has it, of commits that can be looked up}"""
    files = {path: read(path) for path in sorted(RUNS.glob("*-programs.csv"))}
    # Files that do not tell when they began are older than those of the same day that do.
    files = dict(sorted(((path, rows) for path, rows in files.items() if rows), key=lambda file: results.last_start(file[1])))
    newest = {}
    for path, rows in files.items():
        if "dirty" not in str(rows[0]["commit"]):
            newest |= {row["case"]: path for row in rows}
    shown = {path: [row for row in rows if newest.get(row["case"]) == path] for path, rows in files.items()}
    rows = [row for case, path in newest.items() for row in files[path] if row["case"] == case]
    block = short = "Not measured yet."
    if rows:
        block = "\n\n".join([tables(rows), *(provenance(path, rows) for path, rows in shown.items() if rows)])
        short = summary(rows)
    return {PAGE: replaced(PAGE, BEGIN, END, block), README: replaced(README, BEGIN, END, short)}


def read(path):
    words = {"case", "program", "version"}
    with open(path, newline="") as file:
        return [{name: text if name in words else results.value(name, text) for name, text in line.items()}
                for line in csv.DictReader(file)]


def summary(rows):
    """A line for each program: what it took, and the fastest of the others."""
    lines = [in_cells(["program", "GB", "memory GiB", "s", "over the floor", "fastest other s"]), "|" + "---|" * 6]
    for case in dict.fromkeys(row["case"] for row in rows):
        ours = of(rows, case, OURS)
        one = next(iter(ours.values()))
        names = dict.fromkeys(row["program"] for row in rows if row["case"] == case and not row["program"].startswith(OURS))
        others = [(median(row["wall_s"] for row in of(rows, case, name).values()), name) for name in names if of(rows, case, name)]
        fastest = "{1} {0:.1f}".format(*min(others)) if others else ""
        lines.append(in_cells([
            case, f"{one['bytes'] / 1e9:.2g}", f"{one['memory_bytes'] / GIB:.2g}",
            f"{median(row['wall_s'] for row in ours.values()):.1f}",
            f"{median(time_s(row) / floor_s(row) for row in ours.values()):.2f}", fastest]))
    return "\n".join(lines)


def tables(rows):
    heads = ["", "GB", "memory GiB", "wall s", "core-s per GB", "peak GB", "disk GB", "over the floor", "others s", "must reach", "reached"]
    lines = [in_cells(heads), "|" + "---|" * len(heads)]
    for case in dict.fromkeys(row["case"] for row in rows):
        ours = of(rows, case, OURS)
        one = next(iter(ours.values()))
        names = dict.fromkeys(row["program"] for row in rows if row["case"] == case)
        others = {name: of(rows, case, name) for name in names if name != OURS}
        shown = ", ".join(f"{name} {walls(found)}" if found else f"{name} failed" for name, found in others.items())
        musts = verdicts(rows, case, ours, others)
        lines.append(in_cells([
            case, f"{one['bytes'] / 1e9:.2g}", f"{one['memory_bytes'] / GIB:.2g}", walls(ours),
            f"{median(row['cpu_s'] / row['bytes'] * 1e9 for row in ours.values()):.2f}",
            middle_gb(ours, lambda row: row["peak_anon_bytes"]),
            middle_gb(ours, lambda row: row["own_read_bytes"] + row["own_written_bytes"]),
            over_floor_words(ours), shown,
            "; ".join(must for must, _ in musts), "; ".join(reached for _, reached in musts)]))
    return "\n".join(lines)


def middle_gb(ours, of_row):
    return f"{median(map(of_row, ours.values())) / 1e9:.2f}"


def verdicts(rows, case, ours, others):
    """[(what must be reached, whether it was)]"""
    found = []
    if case in TIMES_FASTEST:
        names, least = TIMES_FASTEST[case]
        over = [min(others[name][number]["wall_s"] for name in names if number in others.get(name, {})) / row["wall_s"]
                for number, row in ours.items() if any(number in others.get(name, {}) for name in names)]
        found.append((f"{least:g} times the fastest other", judged(over, lambda value: value >= least)))
    if case in OVER_FLOOR:
        over = [time_s(row) / floor_s(row) for row in ours.values()]
        found.append((f"{OVER_FLOOR[case]:g} of the floor", judged(over, lambda value: value <= OVER_FLOOR[case])))
    if case in OVER_CASE:
        other, most = OVER_CASE[case]
        base = of(rows, other, OURS)
        over = [row["wall_s"] / base[number]["wall_s"] for number, row in ours.items()
                if number in base and base[number]["commit"] == row["commit"]]
        found.append((f"{most:g} of {other}", judged(over, lambda value: value <= most)))
    return found


def judged(over, is_met):
    if not over:
        return "not measured"
    return f"{'yes' if is_met(median(over)) else '**no**'}, {spread(over, 2)}"


def over_floor_words(ours):
    """How many times its floor it took, and which of the two that is."""
    binds = "processors" if any(floor_s(row) > disk_floor_s(row) for row in ours.values()) else "disk"
    return f"{spread([time_s(row) / floor_s(row) for row in ours.values()], 2)}, {binds}"


def time_s(row):
    """What is held against the floor: the time of an iteration, if the program has some."""
    return row.get("iteration_s") or row["wall_s"]


def floor_s(row):
    """The larger of the time that the disk alone needs and the CPU budget, if one is written."""
    return max(disk_floor_s(row), cpu_budget_s(row) or 0)


def disk_floor_s(row):
    """The time that the disk alone needs."""
    rates = Rates(*(row[f"{rate}_bytes_per_s"] for rate in RATES))
    spilled = max(0, row["brought_bytes"] - row["memory_bytes"])
    read = row.get("read_bytes") or row["bytes"]
    return phase_s(read, spilled, rates, 0) + phase_s(spilled, row["output_bytes"], rates, 0)


def cpu_budget_s(row):
    """None where none is written, or the run did not tell its counts."""
    if row.get("records") is None:
        return None
    return program_budget_s(row["case"], row["cores"], row.get("clock_hz"), byte=row["bytes"], record=row["records"],
                            brought=row["brought_records"], out=row["output_records"])


def of(rows, case, program):
    """{round: row} of the runs that ended well."""
    return {row["round"]: row for row in rows
            if (row["case"], row["program"], row["exit_status"]) == (case, program, 0)}


def walls(found):
    return spread([row["wall_s"] for row in found.values()], 1)


def provenance(path, rows):
    row = rows[0]
    pairs = sorted({(row["program"], row["version"]) for row in rows})
    versions = ", ".join(f"{program} {number}" for program, number in pairs)
    cases = ", ".join(dict.fromkeys(row["case"] for row in rows))
    return (f"{cases}: `bench/runs/{path.name}`, {rounds_words(rows)}; {versions};\n"
            f"{row['date']}, commit {row['commit']}, {row['cpu']}, {row['cores']} cores, "
            f"{row['memory_total_bytes'] / GIB:.1f} GiB, Linux {row['kernel']}, {row['file_system']}")
