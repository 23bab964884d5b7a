"""What bench/runs/ says of shapes, as Markdown, and docs/tuning.md's block of it: writes it, or fails where it differs.

Everything is the median of the rounds; ratios are taken within one round.
"""

from collections import Counter
from statistics import median

from cases import memory_bytes_max
from marked import replaced
from results import DRIFT_MAX, RUNS
from shape_runs import read
from shell import GIB, ROOT
from table import in_cells, spread

TUNING = ROOT / "docs" / "tuning.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
OVER_UNIFORM_MAX, OVER_ONE_PASS_MAX, OVER_FLOOR_MAX, OVER_SLOWEST_MAX = 1.25, 1.2, 1.3, 1.2
# Of these F is that of one pass.
IN_ORDER = ("sorted", "reversed")
ALONE, JOINED = ("gen alone", "sort alone", "check alone"), "joined"


def expected():
    """The page with a table of each set, of the newest file that has it, of a commit that can be looked up; of a day, that
    with most rounds, and of these the last."""
    files = [(path, read(path)) for path in sorted(RUNS.glob("*-shapes.csv"))]
    fit = [(path, rows) for path, rows in files if rows and "dirty" not in str(rows[0]["commit"])]
    newest = {name: max((file for file in of_set(fit, name)), key=age, default=None) for name in MAKERS}
    blocks = []
    for path in dict.fromkeys(file[0] for file in newest.values() if file):
        rows = [row for file in newest.values() if file and file[0] == path for row in file[1]]
        blocks.append(f"{tables(rows)}\n\n{provenance(path, rows)}")
    return replaced(TUNING, BEGIN, END, "\n\n".join(blocks) or "Not measured yet.")


def of_set(files, name):
    found = [(path, [row for row in rows if row["set"] == name]) for path, rows in files]
    return [(path, rows) for path, rows in found if rows]


def age(file):
    _, rows = file
    return str(rows[0]["date"]), max(row["round"] for row in rows), rows[-1].get("ended") or ""


def tables(rows):
    sets = {name: [row for row in rows if row["set"] == name] for name in MAKERS}
    return "\n\n".join(MAKERS[name](found) for name, found in sets.items() if found)


def skew_table(rows):
    first = rows[0]
    lines = [f"{size_words(first)} (Pareto's sizes: twice both), beside uniform keys of the same format and count:", "",
             in_cells(["shape", "wall s", "over uniform", "over F", "over F of memory", "core-s per GB", "largest over mean partition",
                       "peak memory over limit", "own I/O over least", ""]), "|" + "---|" * 10]
    for name, mine in by_shape(rows).items():
        over_uniform = [row["wall_s"] / row["uniform_s"] for row in mine]
        over_floor = [row["wall_s"] / row["floor_s"] for row in mine if row["floor_s"]]
        over_memory = [row["wall_s"] / row["floor_memory_s"] for row in mine if row.get("floor_memory_s")]
        is_pareto = name == "pareto"
        if over_floor:
            reached = median(over_floor) <= (OVER_ONE_PASS_MAX if name in IN_ORDER else OVER_FLOOR_MAX)
        else:
            reached = median(over_uniform) <= OVER_UNIFORM_MAX
        reached = reached and all(row["peak_anon_bytes"] <= memory_bytes_max(row["memory_bytes"]) for row in mine)
        unsteady = any(row["drift"] and row["drift"] > DRIFT_MAX for row in mine)
        lines.append(in_cells([
            name, of(mine, "wall_s", 1), "" if is_pareto else spread(over_uniform, 2),
            (spread(over_floor, 2) + (" ~" if unsteady else "")) if over_floor else "",
            spread(over_memory, 2) if over_memory else "",
            f"{median(row['cpu_s'] / row['bytes'] * 1e9 for row in mine):.2f}", of(mine, "largest_over_mean", 2),
            peak(mine), of(mine, "over_lower_bound", 3), "yes" if reached else "**no**"]))
    asked = (f"Asked: at most {OVER_UNIFORM_MAX} of uniform; sorted and reversed at most {OVER_ONE_PASS_MAX} F of one "
             f"pass, Pareto's sizes {OVER_FLOOR_MAX} F. ~: the disk's\nrates around a run differed by more than "
             f"{100 * DRIFT_MAX:.0f} %. What F of memory is, says [measuring.md](measuring.md).")
    return "\n".join([*lines, "", asked])


def streams_table(rows):
    lines = [f"By a pipe, {size_words(rows[0])}, beside uniform keys by a pipe:", "",
             in_cells(["shape", "wall s", "over uniform", "core-s per GB", "largest over mean partition",
                       "peak memory over limit", "own I/O over least"]), "|" + "---|" * 7]
    for name, mine in by_shape(rows).items():
        lines.append(in_cells([
            name, of(mine, "wall_s", 1), spread([row["wall_s"] / row["uniform_s"] for row in mine], 2),
            f"{median(row['cpu_s'] / row['bytes'] * 1e9 for row in mine):.2f}", of(mine, "largest_over_mean", 2),
            peak(mine), of(mine, "over_lower_bound", 3)]))
    return "\n".join(lines)


def pipes_table(rows):
    rounds = {}
    for row in rows:
        rounds.setdefault(row["round"], {})[row["shape"]] = row["wall_s"]
    whole = [walls for walls in rounds.values() if {*ALONE, JOINED} <= walls.keys()]
    if not whole:
        return ""
    over = [walls[JOINED] / max(walls[name] for name in ALONE) for walls in whole]
    reached = "yes" if median(over) <= OVER_SLOWEST_MAX else "**no**"
    walls = [spread([walls[name] for walls in whole], 1) for name in (*ALONE, JOINED)]
    return "\n".join([
        f"`gen | sort | check`, {size_words(rows[0])}:", "",
        in_cells(["gen alone s", "sort alone s", "check alone s", "joined s",
                  f"over the slowest (asked {OVER_SLOWEST_MAX})", ""]), "|---|---|---|---|---|---|",
        in_cells([*walls, spread(over, 2), reached])])


def small_table(rows):
    first = rows[0]
    group_mib = f"{first['cgroup_limit_bytes'] / (1 << 20):.0f} MiB"
    lines = [f"Every kind, {size_words(first)}, in a memory cgroup of {group_mib}, which is that and 5 % and 64 MiB;\n"
             "each output was checked; yes: it kept within that:", "",
             in_cells(["shape", "wall s", "largest over mean partition", "peak memory over limit",
                       "own I/O over least", ""]), "|---|---|---|---|---|---|"]
    for name, mine in by_shape(rows).items():
        fits = all(row["peak_anon_bytes"] <= memory_bytes_max(row["memory_bytes"]) for row in mine)
        lines.append(in_cells([name, of(mine, "wall_s", 1), of(mine, "largest_over_mean", 2), peak(mine),
                               of(mine, "over_lower_bound", 3), "yes" if fits else "**no**"]))
    return "\n".join(lines)


def by_shape(rows):
    found = {}
    for row in rows:
        found.setdefault(row["shape"], []).append(row)
    return found


def of(rows, name, digits):
    return spread([row[name] for row in rows], digits)


def peak(rows):
    return f"{max(row['peak_anon_bytes'] / row['memory_bytes'] for row in rows):.2f}"


def size_words(row):
    memory = row["memory_bytes"]
    words = f"{memory // GIB} GiB" if memory % GIB == 0 else f"{memory // (1 << 20)} MiB"
    return f"{row['bytes'] / 1e9:.2g} GB in {words}"


def provenance(path, rows):
    row = rows[0]
    of_each = Counter((row["set"], row["shape"]) for row in rows if row["set"] != "small").values()
    least, most = min(of_each, default=1), max(of_each, default=1)
    rounds = f"{most} rounds" if least == most else f"{least} to {most} rounds"
    over = "one round" if most == 1 else f"{rounds}, median (least - most)"
    return (f"`bench/runs/{path.name}`: {over};\n{row['date']}, commit "
            f"{row['commit']}, {row['cpu']}, {row['cores']} cores, {row['memory_total_bytes'] / GIB:.1f} GiB, "
            f"Linux {row['kernel']}, {row['file_system']}")


MAKERS = {"skew": skew_table, "streams": streams_table, "pipes": pipes_table, "small": small_table}
