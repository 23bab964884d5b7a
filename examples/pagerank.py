"""Ranks the vertices of a graph by their links, with a damping of 0.85: pagerank.py EDGES OUTPUT.txt

An edge is a line of source and target with a tab between. Lists of targets are grouped once. Groups come in the same order
every time, so an iteration reads lists and sums side by side (`paste`), and only shares of ranks are brought together."""

import math
import subprocess
import sys
import tempfile
from typing import Any

import sortmill as sm

DAMPING, TOLERANCE, MEMORY = 0.85, 1e-9, "512 MiB"
LIST, SHARE, RANK = {"vertex": str, "targets": str}, {"vertex": str, "share": float}, {"vertex": str, "rank": float}


def read(path: str, **columns: sm.ColumnType) -> tuple[sm.Pipeline, sm.Table]:
    job = sm.Pipeline()
    return job, job.read_text(path).flat_map(sm.fields("line", "\t", columns))


def targets(vertex: str, edges: Any) -> list[dict[str, Any]]:
    return [{"vertex": vertex, "targets": " ".join(edge["target"] for edge in edges if edge["target"])}]


def second(path: str) -> Any:
    return (line.rstrip("\n").partition("\t")[2] for line in open(path, encoding="utf-8"))


def main(edges: str, output: str, folder: str) -> None:
    lists, old, new = (f"{folder}/{name}" for name in ("lists", "old", "new"))
    job, table = read(edges, source=str, target=str)
    ends = table.flat_map(lambda edge: [edge, {"source": edge["target"], "target": ""}], {"source": str, "target": str})
    ends.group_by("source").apply(targets, columns=LIST).write_text(lists)
    count = job.run(memory=MEMORY).records_out
    subprocess.run(["sed", f"s/\t.*/\t{1 / count!r}/w {new}", lists], check=True, stdout=subprocess.DEVNULL)
    base, moved = (1 - DAMPING) / count, math.inf
    while moved > TOLERANCE:
        def send(row: dict[str, Any]) -> Any:
            to = row["targets"].split()
            yield {"vertex": row["vertex"], "share": 0.0}
            yield from ({"vertex": one, "share": (base + DAMPING * row["sum"]) / len(to)} for one in to)
        old, new = new, old
        with subprocess.Popen(["paste", lists, old], stdout=subprocess.PIPE) as pairs:
            job, table = read(f"/dev/fd/{pairs.stdout and pairs.stdout.fileno()}", **LIST, again=str, sum=float)
            table.flat_map(send, SHARE).group_by("vertex").agg(sum=sm.sum("share")).write_text(new)
            job.run(memory=MEMORY)
        lost = math.fsum(base + DAMPING * float(one) for one, to in zip(second(old), second(lists)) if not to)
        before, base = base, (1 - DAMPING + DAMPING * lost) / count
        moved = math.fsum(abs(base - before + DAMPING * (float(b) - float(a))) for a, b in zip(second(old), second(new)))
    job, table = read(new, vertex=str, sum=float)
    ranks = table.map(lambda row: {"vertex": row["vertex"], "rank": base + DAMPING * row["sum"]}, RANK)
    ranks.sort("rank", descending=True).write_text(output)
    print(job.run(memory=MEMORY))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(sys.argv[1], sys.argv[2], temporary)
