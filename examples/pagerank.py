"""Ranks the vertices of a graph by their links, with a damping of 0.85: pagerank.py EDGES OUTPUT.csv

An edge is a line of source and target with a tab between. The lists of targets are grouped once. Groups come out in the same
order every time, so each iteration reads lists and sums side by side (`paste`), and only shares of ranks are brought together.
"""

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import sortmill as sm

DAMPING, TOLERANCE, MEMORY = 0.85, 1e-9, "512 MiB"
EDGE, LIST = {"source": str, "target": str}, {"vertex": str, "targets": str}
SUM, SHARE, RANK = {"vertex": str, "sum": float}, {"vertex": str, "share": float}, {"vertex": str, "rank": float}


def both_ends(edge: dict[str, Any]) -> list[dict[str, Any]]:
    return [edge, {"source": edge["target"], "target": ""}]


def targets(vertex: str, edges: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"vertex": vertex, "targets": " ".join(edge["target"] for edge in edges if edge["target"])}]


def second(path: str) -> Iterator[str]:
    return (line.rstrip("\n").partition("\t")[2] for line in open(path, encoding="utf-8"))


def main() -> None:
    edges, output = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        lists, old, new, pipe = (os.path.join(folder, name) for name in ("lists", "old", "new", "pipe"))
        job = sm.Pipeline()
        ends = job.read_text(edges).flat_map(sm.fields("line", "\t", EDGE)).flat_map(both_ends, EDGE)
        ends.group_by("source").apply(targets, columns=LIST).write_text(lists)
        count = job.run(memory=MEMORY).records_out
        subprocess.run(["sed", f"s/\\t.*/\\t{1 / count!r}/w {new}", lists], check=True, stdout=subprocess.DEVNULL)
        os.mkfifo(pipe)
        base, moved = (1 - DAMPING) / count, math.inf
        while moved > TOLERANCE:
            os.replace(new, old)

            def send(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
                share = (base + DAMPING * row["sum"]) / (row["targets"].count(" ") + 1)
                yield from ({"vertex": to, "share": share} for to in row["targets"].split())
                yield {"vertex": row["vertex"], "share": 0.0}

            subprocess.Popen(["sh", "-c", 'paste "$0" "$1" > "$2"', lists, old, pipe])
            job = sm.Pipeline()
            rows = job.read_text(pipe).flat_map(sm.fields("line", "\t", LIST | {"again": str, "sum": float}))
            rows.flat_map(send, SHARE).group_by("vertex").agg(sum=sm.sum("share")).write_text(new)
            job.run(memory=MEMORY)
            lost = math.fsum(base + DAMPING * float(one) for one, to in zip(second(old), second(lists)) if not to)
            before, base = base, (1 - DAMPING + DAMPING * lost) / count
            steps = (base - before + DAMPING * (float(b) - float(a)) for a, b in zip(second(old), second(new)))
            moved = math.fsum(map(abs, steps))
        job = sm.Pipeline()
        rows = job.read_text(new).flat_map(sm.fields("line", "\t", SUM))
        ranks = rows.map(lambda row: {"vertex": row["vertex"], "rank": base + DAMPING * row["sum"]}, RANK)
        ranks.sort("rank", descending=True).write_csv(output)
        print(job.run(memory=MEMORY))


if __name__ == "__main__":
    main()
