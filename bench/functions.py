"""How fast batches pass through functions of Python: an empty one, and one whose processes are killed.

    python3 bench/functions.py [--megabytes 1000] [--batches 10000]

It needs the package (`pip install .`), pyarrow, and a text of so many MB, which it makes in a temporary folder and takes
away again. Prints CSV: what ran, MB of input, seconds of the job, seconds that were worked for functions in all, with what a
worker process does for a batch from when it is asked until it answers, and MB/s of one process, which is the input over
those.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import tempfile
from pathlib import Path

import sortmill as sm

LINE_BYTES = 100


def empty(batch: object) -> object:
    """Makes of a batch the same."""
    return batch


def dies_at_times(batch: object) -> object:
    """The same, but its process dies at each hundredth batch that it is handed."""
    state = dies_at_times.__dict__
    state["count"] = state.get("count", 0) + 1
    if state["count"] == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


def text(path: Path, megabytes: float) -> None:
    """Lines of 100 bytes that do not repeat."""
    lines = int(megabytes * 1e6 / LINE_BYTES)
    with path.open("w") as file:
        for number in range(lines):
            file.write(f"{number:015} {number * 2654435761 % 2**32:010} ".ljust(LINE_BYTES - 1, "x") + "\n")


def ran(name: str, folder: Path, size: int, processes: int, function: object = None, batch_size: int = 16384) -> str:
    """Counts the records that pass through a function, and answers a hash of what came out."""
    job = sm.Pipeline()
    table = job.read_text(folder / "in")
    if function is not None:
        table = table.map_batches(function, pure=True, batch_size=batch_size)  # type: ignore[arg-type]
    table.write_text(folder / "out")
    report = job.run(memory="512 MiB", temp=folder, processes=processes)
    wall_s = sum(phase["report"]["wall_ns"] for phase in report.phases) / 1e9
    busy_s = sum(one["busy_ns"] for one in report.functions) / 1e9
    each = f"{size / 1e6 / busy_s:.0f}" if busy_s else ""
    died = report.processes.get("died", 0)
    print(f"{name},{size / 1e6:.0f},{wall_s:.2f},{busy_s:.2f},{each},{died}", flush=True)
    with (folder / "out").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Measures, and fails where something else came out than went in."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--batches", type=int, default=10_000)
    asked = parser.parse_args()
    print("case,mb,wall_s,busy_s,mb_per_s_of_a_process,died")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text(folder / "in", asked.megabytes)
        size = (folder / "in").stat().st_size
        hashes = {ran("no function", folder, size, 0)}
        hashes.add(ran("empty, this process", folder, size, 0, empty))
        hashes.add(ran("empty, 1 process", folder, size, 1, empty))
        hashes.add(ran("empty, 2 processes", folder, size, 2, empty))
        per_batch = max(1, size // LINE_BYTES // max(1, asked.batches))
        hashes.add(ran("undisturbed", folder, size, 2, empty, per_batch))
        hashes.add(ran("killed at times", folder, size, 2, dies_at_times, per_batch))
    if len(hashes) != 1:
        print("not the same came out", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
