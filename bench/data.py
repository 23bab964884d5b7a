"""The inputs: one file of so many records, with the checksum that every output must have again."""

import os
import random
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from shell import SORTMILL, command, fail, gb, say

# The generator's checksums of whole data sets, from the sort benchmark's own program.
KNOWN_CHECKSUMS = {
    ("binary", 100_000): "c3068574c6ff",
    ("binary", 1_000_000): "7a0e0d4868cd4",
    ("binary", 100_000_000): "2faf4162801872c",
    ("ascii", 100_000): "c34e19c81885",
    ("ascii", 1_000_000): "7a19cff467438",
}


@dataclass(frozen=True)
class Data:
    path: Path
    checksum: str
    byte_count: int


def generate(case, record_count, folder):
    """Writes the input of `case` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"in.{case.data}"
    say(f"generating {path.name}, {gb(record_count * case.record_bytes)}")
    MAKERS[case.data](path, record_count)
    checksum = checksum_of(case, [path])
    known = KNOWN_CHECKSUMS.get((case.data, record_count))
    if known and known != checksum:
        fail(f"the generated data's checksum is {checksum}, the benchmark's is {known}")
    os.sync()
    return Data(path, checksum, record_count * case.record_bytes)


def checksum_of(case, paths):
    """The sum of the records' CRC-32, which does not depend on their order."""
    return checked(case, paths)[1]


def checked(case, paths):
    """(whether the records are in order, their checksum), as `sortmill check` sees it."""
    words = [str(word) for word in [SORTMILL, "check", *case.flags, *paths]]
    done = subprocess.run(words, capture_output=True, text=True)
    found = re.search(r"^checksum: ([0-9a-f]+)", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1) or not found:
        return False, f"none: {done.stderr.strip()[-500:]}"
    return done.returncode == 0, found.group(1)


def benchmarks_records(path, record_count, *flags):
    command([SORTMILL, "gen", "records", *flags, str(record_count), path])


def short_records(path, record_count):
    """24 random bytes each, the same in every run."""
    numbers = random.Random(24)
    with open(path, "wb") as file:
        while record_count > 0:
            part = min(record_count, 100_000)
            file.write(numbers.randbytes(24 * part))
            record_count -= part


MAKERS = {
    "binary": benchmarks_records,
    "ascii": lambda path, record_count: benchmarks_records(path, record_count, "--ascii"),
    "short": short_records,
}
