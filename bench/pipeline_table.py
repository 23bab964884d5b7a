"""What bench/runs/ says of a day's pipelines, as Markdown, and docs/drop-in.md's block of it: writes it, or fails where it
differs.

Times are the median of the rounds with the least and the most; ratios are taken within one round.
"""

import csv
from statistics import median

import results
from marked import replaced
from results import RUNS
from shell import GIB, ROOT
from table import in_cells, rounds_words, spread

PAGE = ROOT / "docs" / "drop-in.md"
BEGIN, END = "<!-- pipelines: begin -->", "<!-- pipelines: end -->"
COLUMNS = ["case", "program", "version", "date", "commit", "round", "bytes", "memory_bytes", "exit_status", "wall_s",
           "cpu_s", "peak_anon_bytes", "own_read_bytes", "own_written_bytes", "cpu", "clock_hz", "cores",
           "memory_total_bytes", "kernel", "file_system"]
GNU, OURS, DUCKDB = "GNU", "sortmill", "DuckDB"
# At least so many times GNU's; of small inputs, each size.
ASKED = {"uniq -c": 4, "sort -u, 1 % distinct": 4, "shuffle": 2.5, "sort -n": 3, "sort -g": 3, "sort -h": 3,
         "sort -V": 3, "sort -t, -k3,3n": 3, "sort -t, -k3,3 -k1,1nr": 3, "sort -m, 100 files": 3}
SMALL_ASKED = 1


def expected():
    """The page with both tables, of each case the newest file of a commit that can be looked up: a table for each file."""
    files = [(path, read(path)) for path in sorted(RUNS.glob("*-pipelines.csv"))]
    fit = [(path, rows) for path, rows in files if rows and "dirty" not in str(rows[0]["commit"])]
    blocks = []
    for table, of_table in ((large_table, large_rows), (small_table, small_rows)):
        told = set()
        for path, rows in reversed(fit):
            new = [row for row in of_table(rows) if row["case"] not in told]
            told |= {row["case"] for row in new}
            if new:
                blocks.append(f"{table(new)}\n\n{provenance(path, new)}")
    return replaced(PAGE, BEGIN, END, "\n\n".join(blocks) or "Not measured yet.")


def read(path):
    words = {"case", "program", "version"}
    with open(path, newline="") as file:
        return [{name: text if name in words else results.value(name, text) for name, text in line.items()}
                for line in csv.DictReader(file)]


def large_rows(rows):
    return [row for row in rows if row["case"] != "small"]


def small_rows(rows):
    return [row for row in rows if row["case"] == "small"]


def tables(rows):
    return "\n\n".join(made for made in (large_table(large_rows(rows)), small_table(small_rows(rows))) if made)


def large_table(rows):
    if not rows:
        return ""
    memory = rows[0]["memory_bytes"]
    lines = [f"{rows[0]['bytes'] / 1e9:.2g} GB, both with {memory / GIB:.2g} GiB (`shuf` with what it takes):", "",
             in_cells(["", "GNU s", "sortmill s", "GNU over sortmill", "asked", "core-s per GB", "peak memory",
                       "others"]),
             "|" + "---|" * 8]
    for name in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == name]
        gnu, ours, duckdb = (of_program(mine, program) for program in (GNU, OURS, DUCKDB))
        if not gnu or not ours:
            continue
        byte_count = mine[0]["bytes"]
        if abs(byte_count / rows[0]["bytes"] - 1) > 0.01:
            name = f"{name} ({byte_count / 1e9:.2g} GB)"
        over = [gnu[number]["wall_s"] / ours[number]["wall_s"] for number in gnu.keys() & ours.keys()]
        others = f"DuckDB {walls(duckdb)} s" if duckdb else ""
        cpu = median(row["cpu_s"] / row["bytes"] * 1e9 for row in ours.values())
        peaks = [max(row["peak_anon_bytes"] for row in of.values()) / GIB for of in (gnu, ours)]
        lines.append(in_cells([name, walls(gnu), walls(ours), spread(over, 2),
                               judged(median(over), ASKED.get(mine[0]["case"])), f"{cpu:.2f}",
                               "{:.1f} and {:.1f} GiB".format(*peaks), others]))
    return "\n".join(lines)


def small_table(rows):
    if not rows:
        return ""
    lines = ["Small inputs, from the page cache to `/dev/null`; the median of many runs in turns:", "",
             in_cells(["", "GNU ms", "sortmill ms", "GNU over sortmill", "asked"]), "|---|---|---|---|---|"]
    for byte_count in dict.fromkeys(row["bytes"] for row in rows):
        mine = [row for row in rows if row["bytes"] == byte_count]
        gnu, ours = (median(row["wall_s"] for row in mine if row["program"] == program) for program in (GNU, OURS))
        lines.append(in_cells([size_words(byte_count), f"{gnu * 1e3:.1f}", f"{ours * 1e3:.1f}", f"{gnu / ours:.2f}",
                               judged(gnu / ours, SMALL_ASKED if byte_count else None)]))
    return "\n".join(lines)


def judged(value, asked):
    if asked is None:
        return ""
    return f"{asked:g}, " + ("yes" if value >= asked else "**no**")


def of_program(rows, program):
    """{round: row}"""
    return {row["round"]: row for row in rows if row["program"] == program}


def walls(of):
    return spread([row["wall_s"] for row in of.values()], 1)


def size_words(byte_count):
    if byte_count == 0:
        return "nothing: start and end"
    return f"{byte_count // 10**6} MB" if byte_count >= 10**6 else f"{byte_count // 1000} kB"


def provenance(path, rows):
    row = rows[0]
    versions = dict(sorted((row["program"], row["version"]) for row in rows))
    told = ", ".join(f"{program} {number}" for program, number in versions.items())
    over = rounds_words(rows) if large_rows(rows) else f"{max(row['round'] for row in rows)} rounds"
    return (f"`bench/runs/{path.name}`: {over}; {told};\n{row['date']}, commit "
            f"{row['commit']}, {row['cpu']}, {row['cores']} cores, {row['memory_total_bytes'] / GIB:.1f} GiB, "
            f"Linux {row['kernel']}, {row['file_system']}")
