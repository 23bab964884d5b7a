"""Ranks the vertices of a graph by their links, with a damping of 0.85: pagerank.py EDGES OUTPUT.txt FOLDER [ROUNDS]

An edge is a line of source and target, two whole numbers with a tab between. Lists of targets are packed once and stay in FOLDER.
Groups come in the same order every time, so a round reads lists and sums side by side (`paste`), and only shares of ranks are
brought together: whole numbers of `PARTS`, so that no order changes a sum. No function of Python's is called for any of them."""

import sys

import sortmill as sm

DAMPING, TOLERANCE, MEMORY, PARTS = 0.85, 1e-9, "512 MiB", 2.0**62
EDGE: dict[str, sm.ColumnType] = {"vertex": "u64", "target": "u64"}
LIST: dict[str, sm.ColumnType] = {"vertex": "u64", "targets": bytes}


def keep(job: sm.Pipeline, table: sm.Table, path: str) -> sm.Report:
    table.write_rows(path)
    return job.run(memory=MEMORY)


def rank(sums: str, base: float) -> sm.Expr:
    return sm.col(sums) * (DAMPING / PARTS) + base


def main(edges: str, output: str, folder: str, rounds: int = 500) -> None:
    lists, sums = f"{folder}/lists", [f"{folder}/{name}" for name in "abc"]
    job = sm.Pipeline()
    table = job.read_csv(edges, EDGE, header=False, delimiter="\t", quote=None)
    print(keep(job, table.group_by("vertex").pack("target", name="targets"), lists))
    job = sm.Pipeline()
    table = job.read_csv(edges, EDGE, header=False, delimiter="\t", quote=None).unpivot("vertex", "target", name="vertex")
    report = keep(job, table.distinct().with_columns(sum=sm.lit(0).cast("u64")), sums[0])
    print(report)
    # A rank is a base, the same for all, and what was sent to the vertex: nothing yet.
    count, old, new, round = report.records_out, sums[0], sums[0], 0
    before, base, moved = 0.0, 1 / max(1, count), min(1.0, count)
    while round < rounds and moved > TOLERANCE:
        job, now, degree = sm.Pipeline(), rank("sum", base), sm.list_length("targets")
        beside = job.paste((lists, LIST), (new, {"vertex": "u64", "sum": "u64"}), (old, {"vertex": "u64", "old": "u64"}))
        table = beside.with_columns(
            moved=abs(now - rank("old", before)), lost=sm.if_else(degree == 0, now, 0.0),
            share=sm.if_else(degree > 0, (now * PARTS / degree).cast("u64"), 0),
        )
        shares = table.observe(moved=sm.sum("moved"), lost=sm.sum("lost")).unpack("targets", name="to")
        round += 1
        report = keep(job, shares.group_by("to").agg(sum=sm.sum("share")), sums[round % 3])
        old, new, before, moved = new, sums[round % 3], base, report.observed["moved"]
        base = (1 - DAMPING + DAMPING * report.observed["lost"]) / count
        print(f"round {round}, ranks moved by {moved:e}: {report}")
    job = sm.Pipeline()
    table = job.paste((lists, LIST), (new, {"vertex": "u64", "sum": "u64"})).with_columns(rank=rank("sum", base))
    table.select("vertex", "rank").sort("rank", descending=True).write_text(output)
    print(job.run(memory=MEMORY))


if __name__ == "__main__":
    edges, output, folder, *rounds = sys.argv[1:]
    main(edges, output, folder, *map(int, rounds))
