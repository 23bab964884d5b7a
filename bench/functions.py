"""How fast batches pass through functions of Python, and what it costs when their processes are killed:
`make bench-functions`.

    .venv/bin/python bench/functions.py    runs all (a quarter of an hour, 25 GB of disk) and writes a file to bench/runs/
    python3 bench/functions.py --write     writes docs/measuring.md's table from the newest such file
    python3 bench/functions.py --check     fails where the table is not what that file gives

A text passes through a function that answers what it is given, cases in turn, and what comes out must be the text. A process
worked for a function from when it was asked until it had answered; what it works on in a second is the text over that.
"""

import argparse
import csv
import hashlib
import os
import signal
import tempfile
from pathlib import Path
from statistics import median

from machine import machine_facts
from marked import kept, of_newest, replaced
from results import REDUCED_RUNS, RUNS
from shell import GIB, ROOT, fail, gb, say
from table import in_cells, spread

PAGE = ROOT / "docs" / "measuring.md"
BEGIN, END = "<!-- functions: begin -->", "<!-- functions: end -->"
BYTES, BATCHES, LINE_BYTES = 10**9, 10_000, 100
# In this process there are none; without a function nothing is worked.
NONE, HERE, ONE, TWO = "no function", "empty, this process", "empty, 1 process", "empty, 2 processes"
WHOLE, KILLED = "empty, undisturbed", "empty, killed at each hundredth"
# Batches as large as they are made where nothing else is asked for, and such that are a tenth of that.
LARGE, LARGE_KILLED = f"{WHOLE}, batches of 1 MB", f"{KILLED}, batches of 1 MB"
PROCESSES = {NONE: 0, HERE: 0, ONE: 1, TWO: 2, WHOLE: 2, KILLED: 2, LARGE: 2, LARGE_KILLED: 2}
TIMES_THE_TEXT = {LARGE: 10, LARGE_KILLED: 10}
UNDISTURBED = {KILLED: WHOLE, LARGE_KILLED: LARGE}
COLUMNS = ["case", "date", "started", "commit", "round", "bytes", "batches", "processes", "wall_s", "busy_s", "died", "load_1min",
           "cpu", "clock_hz", "cores", "memory_total_bytes", "kernel", "file_system"]
GB_S_ASKED, KILLED_ASKED = 1, 1.3


def empty(batch):
    """Makes of a batch the same."""
    return batch


def dies_at_times(batch):
    """The same, but its process dies at each hundredth batch that it is handed."""
    state = dies_at_times.__dict__
    state["count"] = state.get("count", 0) + 1
    if state["count"] == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--write", action="store_true", help="write the table of docs/measuring.md")
    flags.add_argument("--check", action="store_true", help="fail where that is out of date")
    flags.add_argument("--bytes", type=int, default=BYTES, help="of text [default: 1 GB]")
    flags.add_argument("--rounds", type=int, default=5)
    flags = flags.parse_args()
    if flags.check or flags.write:
        kept(PAGE, expected(), "functions.py", flags.check)
    else:
        run_all(flags)


def run_all(flags):
    large = ROOT / "large"
    large.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=large) as name:
        flags.cores, flags.folder = os.cpu_count() or 1, Path(name)
        facts = machine_facts(flags)
        texts = {times: Text(flags.folder / f"text-{times}", times * flags.bytes) for times in (1, 10)}
        rows = []
        for number in range(1, flags.rounds + 1):
            for case in PROCESSES:
                row = run(case, texts[TIMES_THE_TEXT.get(case, 1)]) | {"round": number}
                say(f"{case}: {row['wall_s']:.2f} s, {row['busy_s']:.2f} s of it in functions, {row['died']} died")
                rows.append({name: row.get(name, facts.get(name)) for name in COLUMNS})
    folder = RUNS if flags.bytes == BYTES else REDUCED_RUNS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{facts['date']}-{facts['commit']}-functions.csv"
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(table(rows, path))
    say(f"wrote {path.name}")


class Text:
    """Lines of 100 bytes that do not repeat."""

    def __init__(self, path, byte_count):
        self.path = path
        with open(path, "w") as file:
            for number in range(byte_count // LINE_BYTES):
                file.write(f"{number:015} {number * 2654435761 % 2**32:010} ".ljust(LINE_BYTES - 1, "x") + "\n")
        self.bytes, self.digest = path.stat().st_size, digest(path)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(case, text):
    import sortmill as sm

    is_of_many = case in {*UNDISTURBED, *UNDISTURBED.values()}
    job = sm.Pipeline()
    table = job.read_text(text.path)
    if case != NONE:
        size = max(1, text.bytes // LINE_BYTES // BATCHES) if is_of_many else 16384
        table = table.map_batches(dies_at_times if case in UNDISTURBED else empty, pure=True, batch_size=size)
    out = text.path.parent / "out"
    table.write_text(out)
    report = job.run(memory="512 MiB", temp=text.path.parent, processes=PROCESSES[case])
    if digest(out) != text.digest:
        fail(f"{case}: not the same came out")
    out.unlink()
    return {"case": case, "bytes": text.bytes, "batches": BATCHES if is_of_many else None,
            "processes": PROCESSES[case], "died": report.processes.get("died", 0),
            "wall_s": round(sum(phase["report"]["wall_ns"] for phase in report.phases) / 1e9, 3),
            "busy_s": round(sum(one["busy_ns"] for one in report.functions) / 1e9, 3),
            "load_1min": os.getloadavg()[0]}


def expected():
    return replaced(PAGE, BEGIN, END, of_newest("functions", table))


def table(rows, path):
    of = {case: [row for row in rows if row["case"] == case] for case in PROCESSES}
    of = {case: mine for case, mine in of.items() if mine}
    lines = [in_cells(["case", "job s", "GB/s of a process", "job over undisturbed", "asked"]), "|---|---|---|---|---|"]
    for case, mine in of.items():
        rates = [float(row["bytes"]) / float(row["busy_s"]) / 1e9 for row in mine if float(row["busy_s"])]
        over = []
        if case in UNDISTURBED:
            over = [float(row["wall_s"]) / float(whole["wall_s"]) for row, whole in zip(mine, of[UNDISTURBED[case]])]
        asked = ""
        if over:
            asked = f"at most {KILLED_ASKED}, {verdict(median(over) <= KILLED_ASKED)}"
        elif rates and case in (HERE, ONE, TWO):
            asked = f"at least {GB_S_ASKED} GB/s, {verdict(median(rates) >= GB_S_ASKED)}"
        lines.append(in_cells([case, spread([float(row["wall_s"]) for row in mine], 2), spread(rates, 2) if rates else "",
                               spread(over, 2) if over else "", asked]))
    first, died = rows[0], [int(row["died"]) for case in UNDISTURBED for row in of.get(case, [])]
    large = ", ten times that in batches of 1 MB" if LARGE in of else ""
    lines += ["", f"`bench/runs/{path.name}`: {gb(int(first['bytes']))} of lines in 512 MiB{large}, batches of 16384 of them or, where",
              f"processes are killed and beside that, {BATCHES:,} batches ({min(died)} to {max(died)} processes were killed and "
              f"replaced); {max(int(row['round']) for row in rows)} rounds,",
              f"median (least - most); {first['date']}, commit {first['commit']}, {first['cpu']}, {first['cores']} cores, "
              f"{float(first['memory_total_bytes']) / GIB:.1f} GiB, Linux {first['kernel']}."]
    return "\n".join(lines)


def verdict(is_reached):
    return "yes" if is_reached else "**no**"


if __name__ == "__main__":
    main()
