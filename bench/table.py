"""What bench/runs/ says, as Markdown: the figures, what had to be reached, and what a missed one is owed to.

Everything is the median of the rounds with the least and the most. Ratios are taken within one round.
"""

from statistics import median

import contestants
from cases import BY_NAME, MOVED_OVER_MIN_MAX, memory_bytes_max
from floor import moved_bytes_min
from results import DRIFT_MAX, contestants_of, counted, is_steady
from shell import GIB

WITH_SYNC = "over F with sync"
HEADS = ["", "wall s", "wall over F", "over F of memory", WITH_SYNC, "CPU s per GB", "own memory GB", "own I/O over the least",
         "wall over sortmill's"]
MET, MISSED = "yes", "**no**"


def tables(files):
    """`files` are [(path, rows)], a case each."""
    found = [Measured(path, rows) for path, rows in files if any(row["round"] > 0 for row in rows)]
    steps = next((one for one in found if one.case.name == "steps"), None)
    parts = [figures([one for one in found if one is not steps]), verdicts(found, steps)]
    return "\n\n".join(part for part in [*parts, steps_table(steps), provenance(found)] if part)


class Measured:
    """A case's rounds that count, by memory."""

    def __init__(self, path, rows):
        self.path, self.rows = path, rows
        self.case = BY_NAME[rows[0]["case"]]
        self.names = contestants_of(rows)
        memories = sorted({row["memory_bytes"] for row in rows if row["round"] > 0})
        self.rounds = {memory: counted(rows, memory, self.names) for memory in memories}
        self.rounds = {memory: rounds for memory, rounds in self.rounds.items() if rounds}

    def values(self, memory, name, value):
        """`value` of each round's row of `name`, where it ran well and has one."""
        rows = (attempt[name] for attempt in self.rounds[memory])
        found = (value(row) for row in rows if not row["failure"])
        return [number for number in found if number is not None]

    def over_floor(self, memory):
        return self.values(memory, "sortmill", over_floor)

    def times(self, memory, rival):
        """Of each round, the rival's time over ours."""
        return [attempt[rival]["wall_s"] / attempt["sortmill"]["wall_s"] for attempt in self.rounds[memory]
                if "sortmill" in attempt and not attempt[rival]["failure"]]


def over_floor(row):
    return row["wall_s"] / row["floor_s"] if row["floor_s"] else None


def over_floor_of_memory(row):
    return row["wall_s"] / row["floor_memory_s"] if row.get("floor_memory_s") else None


def over_floor_with_sync(row):
    return row["wall_s"] / row["floor_synced_s"] if row.get("floor_synced_s") else None


def cpu_s_per_gb(row):
    return row["cpu_s"] * 1e9 / row["data_bytes"]


def moved_over_min(row):
    least = moved_bytes_min(row["data_bytes"], row["memory_bytes"])
    return (row["own_read_bytes"] + row["own_written_bytes"]) / least


# ---------------------------------------------------------------------------------------------------------
# The figures


def figures(found):
    lines = []
    for one in found:
        # Where one is alone, its lines are its memory sizes.
        is_alone = len(one.names) == 1
        for number, memory in enumerate(one.rounds):
            if number == 0 or not is_alone:
                words = title(one, memory) + ("" if is_alone else f", {memory_words(memory)}")
                lines.append([f"**{words}**"] + [""] * (len(HEADS) - 1))
            lines += [figures_line(one, memory, name, memory_words(memory) if is_alone else "") for name in one.names]
    if not lines:
        return ""
    # Runs of before it was taken have none, and a column of none says nothing.
    sync = HEADS.index(WITH_SYNC)
    shown = [at for at in range(len(HEADS)) if at != sync or any(line[at] not in ("", "-") for line in lines)]
    heads, *rows = (in_cells(line[at] for at in shown) for line in [HEADS, *lines])
    return "\n".join([heads, "|" + "---|" * len(shown), *rows])


def figures_line(one, memory, name, extra):
    rounds = one.rounds[memory]
    failures = [attempt[name]["failure"] for attempt in rounds if attempt[name]["failure"]]
    named = label(name, rounds[0][name]) + (f", {extra}" if extra else "")
    if failures:
        return [named, f"could not: {failures[0][:100]}", *[""] * (len(HEADS) - 2)]
    unsteady = contestants.is_ours(name) and not all(map(is_steady, rounds)) and one.values(memory, name, over_floor)
    return [
        named,
        spread(one.values(memory, name, lambda row: row["wall_s"]), 1),
        spread(one.values(memory, name, over_floor), 2) + (" ~" if unsteady else ""),
        spread(one.values(memory, name, over_floor_of_memory), 2),
        spread(one.values(memory, name, over_floor_with_sync), 2),
        spread(one.values(memory, name, cpu_s_per_gb), 2),
        spread(one.values(memory, name, lambda row: row["peak_anon_bytes"] / 1e9), 1),
        spread(one.values(memory, name, moved_over_min), 2),
        "1" if name == "sortmill" else spread(one.times(memory, name), 2),
    ]


def title(one, memory):
    row = one.rounds[memory][0][one.names[0]]
    return f"{row['data_bytes'] / 1e9:.2g} GB of {one.case.title}"


def memory_words(memory):
    for size, unit in ((GIB, "GiB"), (1 << 20, "MiB")):
        if memory % size == 0:
            return f"{memory // size} {unit}"
    return f"{memory / 1e9:.3g} GB"


def label(name, row):
    """The version of ours is its commit, which stands below."""
    about = ", ".join(part for part in [None if contestants.is_ours(name) else row["version"], row["setting"]] if part)
    return contestants.ALL[name].title + (f" ({about})" if about else "")


def spread(values, digits):
    if not values:
        return "-"
    middle = f"{median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}f} - {max(values):.{digits}f})"


def rounds_words(rows):
    """How many rounds the cases of `rows` have, and what is shown of them."""
    last = {row["case"]: row["round"] for row in sorted(rows, key=lambda row: row["round"])}
    least, most = min(last.values(), default=0), max(last.values(), default=0)
    if most <= 1:
        return "one round"
    return f"{most if least == most else f'{least} to {most}'} rounds, median (least - most)"


def in_cells(cells):
    return "| " + " | ".join(cells) + " |"


# ---------------------------------------------------------------------------------------------------------
# What had to be reached


def verdicts(found, steps):
    lines, notes = [], []
    for one in found:
        if one.case.name == "steps" or "sortmill" not in one.names:
            continue
        checks = list(checks_of(one))
        lines += [in_cells([one.case.name, asked, reached, MET if met else MISSED]) for asked, reached, met in checks]
        if not all(met for _, _, met in checks):
            notes += missed_notes(one, steps)
    if not lines:
        return ""
    table = "\n".join([in_cells(["case", "must reach", "reached", ""]), "|---|---|---|---|", *lines])
    return "\n\n".join([table, "\n".join(notes)] if notes else [table])


def checks_of(one):
    """(what is asked, what was reached, whether that is enough) of every target for which there are figures."""
    target, memories = one.case.target, list(one.rounds)
    floors = {memory: median(one.over_floor(memory)) for memory in memories if one.over_floor(memory)}
    floor_is_met = bool(floors) and max(floors.values()) <= (target.over_floor_max or 0)
    if target.over_floor_max and floors and not (target.either and target.times_rival_min):
        asked = f"at most {target.over_floor_max:g} F"
        reached = ", ".join(f"{value:.2f}" for value in floors.values())
        for words, over in (("of memory", over_floor_of_memory), ("with sync", over_floor_with_sync)):
            found = [one.values(memory, "sortmill", over) for memory in floors]
            if all(found):
                reached += f"; {words} " + ", ".join(f"{median(values):.2f}" for values in found)
        yield asked, reached, floor_is_met
    for rival, least in target.times_rival_min.items():
        for memory in memories:
            if rival in one.names and (times := one.times(memory, rival)):
                reached, asked = f"{median(times):.2f}", f"{least:g} times {contestants.ALL[rival].title}"
                if target.either and floors:
                    asked += f", or {target.over_floor_max:g} F"
                    reached += f"; {floors[memory]:.2f} F"
                yield asked, reached, median(times) >= least or (target.either and floor_is_met)
    if target.times_best_rival_min:
        for memory in memories:
            rivals = [name for name in one.names if name != "sortmill" and one.times(memory, name)]
            if rivals:
                best = min(rivals, key=lambda name: median(one.times(memory, name)))
                reached = median(one.times(memory, best))
                asked = f"{target.times_best_rival_min:g} times the best peer"
                yield asked, f"{reached:.2f} ({contestants.ALL[best].title})", reached >= target.times_best_rival_min
    for name, most in target.times_one_process_max.items():
        for memory in memories:
            if name in one.names and (times := one.times(memory, name)):
                asked = f"{contestants.ALL[name].title} at most {most:g} times one process"
                yield asked, f"{median(times):.2f}", median(times) <= most
    yield from resource_checks(one, target, memories)


def resource_checks(one, target, memories):
    if target.cpu_s_per_gb_max:
        used = [median(one.values(memory, "sortmill", cpu_s_per_gb))
                for memory in memories]
        yield (f"at most {target.cpu_s_per_gb_max:g} core-seconds per GB", f"{max(used):.2f}",
               max(used) <= target.cpu_s_per_gb_max)
    if target.cycles_per_record_max:
        used = [median(one.values(memory, "sortmill", lambda row: row["cpu_s"] * row["clock_hz"] / row["records"]))
                for memory in memories]
        yield (f"at most {target.cycles_per_record_max:g} cycles a record", f"{max(used):.0f}",
               max(used) <= target.cycles_per_record_max)
    # Of several processes of ours, too; a run to a stage moves other bytes.
    ours = [name for name in one.names if name == "sortmill" or name in target.times_one_process_max]
    over = {memory: max(peak for name in ours for peak in one.values(memory, name, lambda row: row["peak_anon_bytes"]))
            - memory_bytes_max(memory) for memory in memories}
    worst = max(over, key=over.get)
    yield ("memory at most the limit, 5 % and 64 MiB",
           f"{(over[worst] + memory_bytes_max(worst)) / 1e9:.2f} GB of {memory_words(worst)}", over[worst] <= 0)
    moved = [median(one.values(memory, name, moved_over_min)) for memory in memories for name in ours]
    yield (f"I/O at most {MOVED_OVER_MIN_MAX:g} of the least", f"{max(moved):.3f}", max(moved) <= MOVED_OVER_MIN_MAX)


# ---------------------------------------------------------------------------------------------------------
# What a missed figure is owed to


def missed_notes(one, steps):
    for memory in one.rounds:
        parts = phases_over_floor(one, memory)
        if parts:
            words = ", ".join(f"{name} {seconds:+.1f} s" for name, seconds in parts.items())
            yield f"- {one.case.name}, {memory_words(memory)}, against F: {words}."
    # Of other data the steps tell nothing.
    if steps and (steps.case.data, steps.case.data_bytes) == (one.case.data, one.case.data_bytes):
        costs = step_costs(steps)
        if costs:
            worst = max(costs, key=lambda name: costs[name][1])
            memory = memory_words(next(iter(steps.rounds)))
            yield f"- {one.case.name}: of its steps in {memory} (below), {worst} costs most, {costs[worst][1]:.1f} s."


def phases_over_floor(one, memory):
    """How much longer than its floor each phase took, and what stands beside both."""

    def over(value):
        found = one.values(memory, "sortmill", value)
        return median(found) if found else None

    if over(over_floor) is None or over(lambda row: row["distribute_s"]) is None:
        return {}
    return {
        "distribute": over(lambda row: row["distribute_s"] - row["floor_distribute_s"]),
        "sort": over(lambda row: row["sort_s"] - row["floor_sort_s"]),
        "start, commit and sync": over(lambda row: row["wall_s"] - row["distribute_s"] - row["sort_s"]),
    }


def step_costs(steps):
    """{step: (median wall time to there, more than to the step before)}."""
    costs, before = {}, 0.0
    memory = next(iter(steps.rounds), None)
    for name in steps.names if memory else []:
        walls = steps.values(memory, name, lambda row: row["wall_s"])
        if walls:
            step = name.removeprefix("until-") if name != "sortmill" else "write and commit"
            costs[step] = (median(walls), median(walls) - before)
            before = median(walls)
    return costs if len(costs) > 1 else {}


def steps_table(steps):
    costs = step_costs(steps) if steps else {}
    if not costs:
        return ""
    lines = [in_cells([name, f"{wall:.1f}", f"{more:+.1f}"]) for name, (wall, more) in costs.items()]
    return "\n".join([in_cells(["run to (`--until`)", "wall s", "more than to the step before"]), "|---|---|---|",
                      *lines])


def provenance(found):
    lines = []
    for one in found:
        row = one.rows[0]
        tries = [attempt for rounds in one.rounds.values() for attempt in rounds]
        unsteady = sum(not is_steady(attempt) for attempt in tries if one.names[0] in attempt)
        taken = any(attempt[name]["drift"] is not None for attempt in tries for name in attempt)
        words = f"- {one.case.name}: `{one.path.name}`, {max(map(len, one.rounds.values()))} rounds"
        if taken and unsteady:
            words += f", {unsteady} of {len(tries)} with a disk that drifted by more than {100 * DRIFT_MAX:.0f} % (~)"
        if not taken:
            words += ", without the rates from which F comes"
        lines.append(f"{words}; {row['date']}, commit {row['commit']}, {row['cpu']}, {row['cores']} cores, "
                     f"{row['memory_total_bytes'] / GIB:.1f} GiB, Linux {row['kernel']}, {row['file_system']}")
    return "\n".join(lines)
