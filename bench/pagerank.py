"""How PageRank is run and what its rounds tell: the examples of the library and of the package, which print the same.

    round 3, ranks moved by 1.2e-3: group by to: 20,000,000 records in, 240,000,000 brought together, 19,999,876 out
    sorted 240000000 records, 3.6 GiB ..., in 12.3 s (...)
"""

import re
from statistics import mean

from contestants import VENV_PYTHON
from shell import ROOT, SORTMILL, fail

ROUNDS = 5
IN_PYTHON = "sortmill in Python"
# Of 20 million vertices: two numbers of eight digits, a tab and a newline for each edge.
DEGREE = 12
VERTEX_BYTES = DEGREE * 18
# Brought together is a share: the vertex it goes to, and a whole number.
SHARE_BYTES = 16
EXAMPLE = SORTMILL.parent / "examples" / "pagerank"


def words(name, edges, output, folder):
    """What is run: everything that it keeps, and its temporary files, go to `folder`."""
    if name != IN_PYTHON and not EXAMPLE.exists():
        fail(f"there is no {EXAMPLE}\n\nBuild it: cargo build --release -p sortmill --example pagerank")
    program = [VENV_PYTHON, ROOT / "examples" / "pagerank.py"] if name == IN_PYTHON else [EXAMPLE]
    return ["env", f"TMPDIR={folder}", *program, edges, output, folder, ROUNDS]


def of_rounds(said, folder):
    """What a row has of the rounds: seconds of one in the mean; what one has to read (lists of targets, ranks), bring
    together and write; and how many there are of what its CPU budget is for."""
    rounds = re.findall(r"^round \d+, .*?([\d,]+) records in, ([\d,]+) brought together, ([\d,]+) out\n.*?\bin ([\d.]+) (m?s) \(",
                        said, re.MULTILINE)
    if len(rounds) != ROUNDS:
        fail(f"{len(rounds)} rounds of PageRank instead of {ROUNDS} in what it said:\n{said[-1000:]}")
    vertices, shares, out = (int(words.replace(",", "")) for words in rounds[-1][:3])
    ranks_bytes = max((folder / name).stat().st_size for name in "abc")
    return {"iteration_s": round(mean(float(number) / (1000 if unit == "ms" else 1) for *_, number, unit in rounds), 3),
            "read_bytes": (folder / "lists").stat().st_size + ranks_bytes, "brought_bytes": shares * SHARE_BYTES,
            "output_bytes": ranks_bytes, "records": vertices, "brought_records": shares, "output_records": out}
