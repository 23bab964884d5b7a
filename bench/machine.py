"""What the results were taken on: commit, processor, memory, kernel, file system."""

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

from floor import CLOCK_HZ_ASSUMED
from measure import available_bytes
from shell import GIB, ROOT, gb


def now():
    """The time, as results tell it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def machine_facts(asked):
    started = now()
    git = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run(["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"],
                             capture_output=True, text=True)
    # The results themselves are no change of what is measured.
    is_dirty = any(not line[3:].startswith("bench/runs/") for line in changed.stdout.splitlines())
    cpu_info = Path("/proc/cpuinfo").read_text()
    cpu = re.search(r"^model name\s*:\s*(.*)$", cpu_info, re.MULTILINE)
    clocks = [float(mhz) * 1e6 for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", cpu_info, re.MULTILINE)]
    return {
        "date": started[:10],
        "started": started,
        "commit": (git.stdout.strip() or "none") + ("-dirty" if is_dirty else ""),
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "clock_hz": round(max(clocks, default=CLOCK_HZ_ASSUMED)),
        "cores": asked.cores,
        "memory_total_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "file_system": file_system(asked.folder),
    }


def file_system(folder):
    number = os.stat(folder).st_dev
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[2] == f"{os.major(number)}:{os.minor(number)}":
            kind, device = line.partition(" - ")[2].split()[:2]
            return f"{kind} on {device}"
    return "unknown"


def facts_line(facts):
    return (f"{facts['cpu']}, {facts['cores']} cores at {facts['clock_hz'] / 1e9:.2f} GHz, "
            f"{facts['memory_total_bytes'] / GIB:.1f} GiB, Linux {facts['kernel']}, {facts['file_system']}; "
            f"commit {facts['commit']}, {facts['date']}; {gb(available_bytes())} of memory available")
