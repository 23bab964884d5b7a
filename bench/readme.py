"""README's measured block and its plot, from bench/runs/ alone: writes them, or fails where they differ."""

from results import is_fit_to_show, newest
from cases import BY_NAME, CASES
from marked import replaced
from plot import plot
from shell import ROOT, fail, say
from table import WITH_SYNC, Measured, tables

README = ROOT / "README.md"
PLOT = ROOT / "docs" / "floor.svg"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
AIM = 1.05


def write_readme():
    for path, text in expected().items():
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text)
    say("README.md and its plot are now what bench/runs/ gives")


def check_readme():
    for path, text in expected().items():
        found = path.read_text() if path.exists() else None
        if found != text:
            fail(f"{path.relative_to(ROOT)} is not what bench/runs/ gives\n\nWrite it with bench/run.sh --readme.")
    say("README.md and its plot are what bench/runs/ gives")


def expected():
    """{path: its whole text, or None where it must not be}."""
    files = newest(is_fit=is_fit_to_show)
    sweep = files.get("memory-sweep")
    return {README: replaced(README, BEGIN, END, block(files)), PLOT: sweep_plot(*sweep) if sweep else None}


def block(files):
    shown = tables(list(files.values()))
    with_sync = "; F with sync is F\nwhere the output is on the disk itself, not only in a cache of its" if WITH_SYNC in shown else ""
    parts = ["From a cold page cache to a synced output, contestants alternating (`make bench`); the median of the "
             "rounds (least to\nmost). F is the time that the disk and a written CPU budget ask of any such sort, "
             "[docs/measuring.md](docs/measuring.md);\nF of memory is F of a disk whose requests come from and go to "
             f"more memory than a cache holds{with_sync}. Own I/O is what the\nprocess had the disk do, over the least that "
             "any sort within this memory must."]
    if "memory-sweep" in files:
        parts.append("![Time over F against memory](docs/floor.svg)")
    parts.append(shown)
    missing = [case.name for case in CASES if case.name not in files]
    if missing:
        parts.append(f"Not measured yet at full size: {', '.join(missing)}.")
    return "\n\n".join(parts)


def sweep_plot(path, rows):
    measured = Measured(path, rows)
    found = {memory: measured.over_floor(memory) for memory in measured.rounds}
    return plot(found, BY_NAME["memory-sweep"].target.over_floor_max, AIM)
