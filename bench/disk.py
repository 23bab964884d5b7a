"""What the disk alone does: read alone, write alone, both at once.

Two tools give the same four rates: `sortmill bench disk` (the engine's own I/O path and buffers), where this
build has it, and fio (direct, io_uring, 4 MiB, depth 8), as the second opinion or alone.
"""

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from floor import Rates
from shell import GIB, SORTMILL, command, fail

FILE_BYTES_MAX = 6 * GIB
FILE_NAMES = ("fio-read", "fio-write")
# More than a processor's cache gives to one who shares it.
MEMORY_BYTES = GIB // 2


def open_disk(folder, file_bytes, seconds, tool=None):
    """The tool that was asked for, or our own where this build has it."""
    kind = {"sortmill": OwnDiskBench, "fio": Fio}[tool or ("sortmill" if has_own_disk_bench() else "fio")]
    return kind(folder, file_bytes, seconds)


def fio_beside(disk):
    return disk if isinstance(disk, Fio) else Fio(disk.folder, disk.file_bytes, disk.seconds)


@dataclass(frozen=True)
class Around:
    """What is asked of the disk before and after a run: its rates from and to the few buffers in flight and, where the tool
    tells, from and to so many that no cache holds them, and of whole files written until they were synced."""

    rates: Rates
    memory: Rates | None = None
    synced: float | None = None

    def best(self, other):
        memory = self.memory.best(other.memory) if self.memory and other.memory else None
        synced = max(self.synced, other.synced) if self.synced and other.synced else None
        return Around(self.rates.best(other.rates), memory, synced)


def columns_of(rates, when):
    """Named as in results.py."""
    return {f"{name}_{when}": round(rate) for name, rate in asdict(rates).items()}


def has_own_disk_bench():
    return subprocess.run([SORTMILL, "bench", "disk", "--help"], capture_output=True).returncode == 0


class Fio:
    """Two files of its own in `folder`, laid out whole, so that reads come from the device and writes allocate
    nothing."""

    name = "fio"

    def __init__(self, folder, file_bytes, seconds):
        self.folder, self.file_bytes, self.seconds = folder, file_bytes, seconds
        for name in FILE_NAMES:
            self.run(f"--name={name}", f"--filename={name}", "--rw=write", "--end_fsync=1")

    def rates(self):
        read = ["--name=read", f"--filename={FILE_NAMES[0]}", "--rw=read"]
        write = ["--name=write", f"--filename={FILE_NAMES[1]}", "--rw=write"]
        timed = ["--time_based", "--ramp_time=1", f"--runtime={self.seconds}"]
        both = self.run(*timed, *read, *write)
        return Rates(self.run(*timed, *read)["read"]["read"]["bw_bytes"],
                     self.run(*timed, *write)["write"]["write"]["bw_bytes"],
                     both["read"]["read"]["bw_bytes"], both["write"]["write"]["bw_bytes"])

    def rates_around(self):
        return Around(self.rates())

    def remove(self):
        """Its files, which no later case counts with."""
        for name in FILE_NAMES:
            (Path(self.folder) / name).unlink(missing_ok=True)

    def run(self, *flags):
        shared = ["fio", "--output-format=json", "--direct=1", "--ioengine=io_uring", "--bs=4m", "--iodepth=8",
                  f"--directory={self.folder}", f"--size={self.file_bytes}"]
        # Buffers in huge pages, as the engine's are: a virtual disk may move twice as much from them, and a floor
        # from small pages would be none.
        reserved = reserve_huge_pages(64)
        if reserved:
            shared.append("--mem=mmaphuge")
        try:
            jobs = json.loads(command([*shared, *flags]).stdout)["jobs"]
        finally:
            if reserved:
                reserve_huge_pages(0)
        return {job["jobname"]: job for job in jobs}


class OwnDiskBench:
    """`sortmill bench disk`, which makes its files and removes them. Two sizes of a request, so that what counts is
    what this disk does best; with all sizes it would take a minute, and the disk would not be the same any more."""

    name = "sortmill bench disk"

    def __init__(self, folder, file_bytes, seconds):
        self.folder, self.file_bytes, self.seconds = folder, file_bytes, seconds
        # Half the time for each size, so that both tools take about as long.
        # Writes go to new space, as those of any sort must.
        self.words = [SORTMILL, "bench", "disk", folder, "--seconds", str(max(0.5, seconds / 2)), "--rounds", "1",
                      "--block", "1MiB", "--block", "4MiB", "--depth", "8", "--bytes", str(file_bytes), "--json"]

    def rates(self):
        return best_rates(json.loads(command(self.words).stdout)["rows"])

    def rates_around(self):
        words = [*self.words, "--buffers", "0", "--buffers", str(MEMORY_BYTES)]
        said = json.loads(command(words).stdout)
        synced = said["folders"][0]["synced_bytes_per_s"]["most"]
        return Around(best_rates(said["rows"]), best_rates(said["rows"], MEMORY_BYTES), float(synced))


def best_rates(rows, buffer_bytes=None):
    """Of one folder, the best over all sizes, each way by itself."""

    def best(reads, writes, column):
        found = [row[column]["most"] for row in rows if row.get("buffer_bytes") == buffer_bytes
                 and (bool(row["reading"]), bool(row["writing"])) == (reads, writes)]
        if not found or not max(found):
            fail(f"sortmill bench disk gave no {column}")
        return float(max(found))

    return Rates(best(True, False, "read_bytes_per_s"), best(False, True, "write_bytes_per_s"),
                 best(True, True, "read_bytes_per_s"), best(True, True, "write_bytes_per_s"))


def reserve_huge_pages(count):
    """Whether the kernel keeps so many huge pages apart now; only root may ask."""
    setting = Path("/proc/sys/vm/nr_hugepages")
    try:
        setting.write_text(f"{count}\n")
        return int(setting.read_text()) >= count > 0
    except (OSError, ValueError):
        return False
