"""What each program of examples/ makes is what another program makes of the same input."""

from __future__ import annotations

import csv
import random
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import duckdb
import networkx  # type: ignore[import-untyped]
import numpy as np
import pytest
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent


def run(example: str, *words: str | int | Path) -> str:
    program = ROOT / "examples" / example
    assert len(program.read_text().splitlines()) <= 60
    done = subprocess.run([sys.executable, program, *map(str, words)], check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def generate(*words: str | int | Path) -> None:
    subprocess.run([sys.executable, "-m", "sortmill", "gen", *map(str, words)], check=True)


def test_inverted_index(tmp_path: Path, draw: random.Random) -> None:
    documents = {}
    for number in range(300):
        words = [draw.choice(["w{}", "Ärger{}", "É{}x"]).format(int(draw.paretovariate(0.7)) % 500) for _ in range(draw.randrange(40))]
        documents[f"doc {number:03}"] = ", ".join(words)
    lines = "".join(f"{name}\t{text}\n" for name, text in documents.items())
    # What is no UTF-8 only separates words; a document with it was left out.
    (tmp_path / "in.txt").write_bytes(lines.encode() + b"other\tw1 caf\xe9 w2\n")
    assert "proven" in run("inverted_index.py", tmp_path / "in.txt", tmp_path / "out.txt")
    index: dict[str, set[str]] = defaultdict(set)
    for name, text in documents.items():
        for word in re.findall(r"[^\W_]+", text.lower()):
            index[word].add(name)
    for word in ("w1", "caf", "w2"):
        index[word].add("other")
    wanted = [f"{word}\t{' '.join(sorted(index[word]))}" for word in sorted(index, key=str.encode)]
    assert (tmp_path / "out.txt").read_text().splitlines() == wanted


def test_grep(tmp_path: Path, draw: random.Random) -> None:
    """Against grep, of several texts, one of them large enough to be read in pieces."""
    texts = []
    for name, count in [("one.txt", 60_000), ("none.txt", 0), ("two.txt", 300)]:
        words = [draw.choice(["error", "error\tx\ty", "warning", "ok", "a:b", ""]) for _ in range(count)]
        lines = [f"{draw.randrange(10**draw.randrange(1, 9))} {word}\n" for word in words]
        (tmp_path / name).write_text("".join(lines))
        texts.append(tmp_path / name)
    pattern = "^[0-9]+7 (error|a:)"
    assert "proven" in run("grep.py", pattern, *texts, tmp_path / "out.txt")
    said = subprocess.run(["grep", "-EHn", pattern, *texts], check=True, stdout=subprocess.PIPE, text=True).stdout
    wanted = [line.replace(":", "\t", 2) for line in said.splitlines()]
    assert (tmp_path / "out.txt").read_text().splitlines() == wanted
    assert len(wanted) > 1000


def test_sessions(tmp_path: Path) -> None:
    """Against DuckDB's window functions, and the number of sessions that the generator's clicks have."""
    generate("clicks", 60_000, "--users", 3000, "--rate", 10, tmp_path / "clicks.txt")
    assert "proven" in run("sessions.py", tmp_path / "clicks.txt", tmp_path / "out.csv")
    query = """
        with clicks as (select * from read_csv(?, delim='\t', header=false, columns={'time': 'BIGINT', 'user': 'VARCHAR', 'page': 'VARCHAR'})),
        marked as (select *, case when time - lag(time) over w > 1800000 then 1 else 0 end as new from clicks
                   window w as (partition by "user" order by time)),
        numbered as (select *, sum(new) over (partition by "user" order by time range unbounded preceding) as session from marked)
        select "user", session, min(time), max(time), count(*), count(distinct page) from numbered group by all order by all
    """
    rows = duckdb.execute(query, [str(tmp_path / "clicks.txt")]).fetchall()
    with (tmp_path / "out.csv").open() as file:
        heading, *found = csv.reader(file)
    assert heading == ["user", "session", "begins", "ends", "clicks", "pages"]
    assert found == [[str(value) for value in row] for row in rows]
    lines = (tmp_path / "clicks.txt").read_text().splitlines()
    stretches = {(line.split("\t")[1], number // 12_000) for number, line in enumerate(lines)}
    assert len(found) == len(stretches) > 100


def ranks_of(edges: Path) -> tuple[dict[int, float], int]:
    """Ranks as networkx has them, and how many vertices have no target. The one in plain Python: the other wants SciPy."""
    graph = networkx.MultiDiGraph()
    for line in edges.read_text().splitlines():
        graph.add_edge(*map(int, line.split("\t")))
    ranks: dict[int, float] = _pagerank_python(graph, alpha=0.85, tol=1e-12, max_iter=500)
    return ranks, sum(graph.out_degree(vertex) == 0 for vertex in graph)


@pytest.mark.parametrize("kind", ["uniform", "power-law"])
def test_pagerank(tmp_path: Path, kind: str) -> None:
    """Against networkx, of a graph with vertices that have no target and with edges that come twice."""
    degrees = "--degree 6" if kind == "uniform" else "--degree-min 1 --degree 4 --degree-max 40"
    generate("graph", 300, "--kind", kind, *degrees.split(), tmp_path / "edges.txt")
    with (tmp_path / "edges.txt").open("a") as file:
        file.write(f"000\t299\n000\t299\n298\t{2**64 - 1}\n7\t7\n")
    (tmp_path / "tables").mkdir()
    told = run("pagerank.py", tmp_path / "edges.txt", tmp_path / "out.txt", tmp_path / "tables")
    rounds = re.findall(r"^round (\d+), ranks moved by (\S+):", told, re.MULTILINE)
    assert [int(number) for number, _ in rounds] == list(range(1, len(rounds) + 1))
    moved = [float(by) for _, by in rounds]
    assert moved[-1] <= 1e-9 < min(moved[:-1])
    # Lists, vertices, each round, ranks.
    assert told.count("proven: what was written is what was read") >= len(rounds) + 3
    wanted, lost_count = ranks_of(tmp_path / "edges.txt")
    assert lost_count > 0
    lines = [line.split("\t") for line in (tmp_path / "out.txt").read_text().splitlines()]
    found = {int(vertex): float(rank) for vertex, rank in lines}
    assert found.keys() == wanted.keys()
    assert all(abs(found[vertex] - rank) < 1e-8 for vertex, rank in wanted.items())
    assert sum(found.values()) == pytest.approx(1, abs=1e-9)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_pagerank_of_a_dense_graph(tmp_path: Path) -> None:
    """In-degrees by a power law from 100 to 10,000, which is a million edges; against numpy."""
    degrees: list[str | int] = ["--degree-min", 100, "--degree", 250, "--degree-max", 10_000]
    generate("graph", 11_000, "--kind", "power-law", *degrees, tmp_path / "edges.txt")
    edges = np.array((tmp_path / "edges.txt").read_text().split(), dtype=np.int64).reshape(-1, 2)
    source, target = edges[:, 0], edges[:, 1]
    came = np.bincount(target, minlength=11_000)
    assert came.min() == 100 and came.max() > 9000
    went = np.bincount(source, minlength=11_000)
    ranks = np.full(11_000, 1 / 11_000)
    for _ in range(100):
        shares = np.where(went > 0, ranks / np.maximum(went, 1), 0)
        lost = ranks[went == 0].sum()
        ranks = (0.15 + 0.85 * lost) / 11_000 + 0.85 * np.bincount(target, shares[source], minlength=11_000)
    (tmp_path / "tables").mkdir()
    run("pagerank.py", tmp_path / "edges.txt", tmp_path / "out.txt", tmp_path / "tables")
    lines = [line.split("\t") for line in (tmp_path / "out.txt").read_text().splitlines()]
    found = np.zeros(11_000)
    found[[int(vertex) for vertex, _ in lines]] = [float(rank) for _, rank in lines]
    assert len(lines) == 11_000
    assert abs(found - ranks).max() < 1e-10


def test_pagerank_ends_after_so_many_rounds(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("0\t1\n1\t2\n2\t0\n2\t1\n")
    told = run("pagerank.py", tmp_path / "edges.txt", tmp_path / "out.txt", tmp_path, 2)
    assert told.count("ranks moved by") == 2
    ranks = {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}
    for _ in range(2):
        base = 0.15 / 3
        ranks = {0: base + 0.85 * ranks[2] / 2, 1: base + 0.85 * (ranks[0] + ranks[2] / 2), 2: base + 0.85 * ranks[1]}
    found = dict(line.split("\t") for line in (tmp_path / "out.txt").read_text().splitlines())
    assert {int(vertex): float(rank) for vertex, rank in found.items()} == pytest.approx(ranks, abs=1e-12)


def test_pagerank_of_nothing(tmp_path: Path) -> None:
    # It divided by the number of vertices.
    (tmp_path / "edges.txt").write_text("")
    run("pagerank.py", tmp_path / "edges.txt", tmp_path / "out.txt", tmp_path)
    assert (tmp_path / "out.txt").read_text() == ""


def test_shuffled_corpus(tmp_path: Path, draw: random.Random) -> None:
    lines = [f"{number} {draw.random()}\n" for number in range(5003)]
    (tmp_path / "one.txt").write_text("".join(lines[:2000]))
    (tmp_path / "two.txt").write_text("".join(lines[2000:]))
    orders = []
    for folder, epoch in [("a", 0), ("b", 1), ("again", 0)]:
        run("shuffle_corpus.py", epoch, 8, tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / folder)
        parts = [path.read_text().splitlines(keepends=True) for path in sorted((tmp_path / folder).glob("part-*"))]
        assert (tmp_path / folder / "manifest.json").exists()
        assert len(parts) == 8
        assert {len(part) for part in parts} == {5003 // 8, 5003 // 8 + 1}
        orders.append([line for part in parts for line in part])
        assert sorted(orders[-1]) == sorted(lines)
    assert orders[0] == orders[2] != orders[1]
    assert orders[0] != lines != orders[1]
