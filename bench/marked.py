"""The part of a page that programs write, between two marks."""

import csv

from results import RUNS, last_start
from shell import ROOT, fail, say


def kept(path, text, script, check):
    """Has the page at `path` say `text`; to `check`, fails instead if it says something else."""
    name = path.relative_to(ROOT)
    if not check:
        path.write_text(text)
        return say(f"{name} has now what bench/runs/ gives")
    if path.read_text() != text:
        fail(f"{name} has not what bench/runs/ gives\n\nWrite it with bench/{script} --write.")
    say(f"{name} has what bench/runs/ gives: bench/{script}")


def replaced(path, begin, end, block):
    """The text of the page at `path` with `block` between the marks `begin` and `end`."""
    text = path.read_text()
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        fail(f"{path.name} has not one {begin} and one {end} after it")
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{block}\n{end}{after}"


def of_newest(kind, table):
    """What `table` makes of the rows of the file of `kind` that began last, of a commit that can be looked up, and of its path."""
    found = []
    for path in sorted(RUNS.glob(f"*-{kind}.csv")):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        if rows and "dirty" not in path.name:
            found.append((last_start(rows), path, rows))
    if not found:
        return "Not measured yet."
    _, path, rows = max(found, key=lambda one: one[0])
    return table(rows, path)
