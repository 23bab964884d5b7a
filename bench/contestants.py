"""Who takes part: how each is installed, started and asked its version, and which settings it may choose from.

Where a contestant has two settings for a job, compare.py runs both on a quarter of the data and takes the faster
one. Where the advice comes from stands beside the setting: here for GNU sort, for the others in bench/peers/.
"""

import importlib.metadata
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

from shell import ROOT, SORTMILL, command, say

VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "bench" / "requirements.txt"
MIB = 1 << 20

# GNU coreutils manual, "sort: Sort text files": -S as large as the machine allows, --parallel as many as there
# are processors, LC_ALL=C for the order of bytes, and --compress-program where temporary files cost more than
# compressing them. The keys of this data are unique, so a sort of whole lines is as good as one by key.
GNU_SETTINGS = {
    "whole-line": [],
    "by-key": ["-k1.1,1.10"],
    "lz4": ["--compress-program=lz4"],
}


@dataclass(frozen=True)
class Contestant:
    name: str
    title: str
    # The least memory it starts in: cases that are made smaller with --records do not go below.
    memory_bytes_min: int
    # What it took on a machine of 2 cores, to say beforehand how long all will take.
    seconds_per_gb: float
    # By (data, order) of a case: the names of the settings to choose from.
    settings: dict = field(default_factory=dict)
    # From the registry of Python packages, pinned in requirements.txt.
    package: str | None = None


def until(stage):
    return Contestant(f"until-{stage}", f"sortmill --until {stage}", 64 * MIB, 3)


def on_local(node_count):
    return Contestant(f"local-{node_count}", f"sortmill --on local:{node_count}", 128 * MIB, 4)


ALL = {contestant.name: contestant for contestant in [
    Contestant("sortmill", "sortmill", 64 * MIB, 3),
    *map(until, ["read", "cut", "partition", "spill", "load", "sort"]),
    on_local(2),
    Contestant("chdb", "chDB", 1024 * MIB, 6.5,
               {("binary", "key"): ("seven-tenths", "half"), ("ascii", "key"): ("fixed-strings", "lines")}, "chdb"),
    Contestant("duckdb", "DuckDB", 256 * MIB, 7, {("ascii", "key"): ("default", "unordered")}, "duckdb"),
    Contestant("polars", "Polars", 512 * MIB, 15, {("ascii", "key"): ("budget", "half-budget")}, "polars"),
    Contestant("pyspark", "PySpark", 1024 * MIB, 17, {("ascii", "key"): ("default", "small-partitions")}, "pyspark"),
    Contestant("gnu", "GNU sort", 64 * MIB, 11,
               {("ascii", "key"): ("whole-line", "by-key"), ("ascii", "line"): ("whole-line", "lz4")}),
]}


def is_ours(name):
    return name == "sortmill" or name.startswith(("until-", "local-"))


def command_of(name, setting, case, memory_bytes, threads, source, output, temp):
    """What is run, with the limit given in the contestant's own words."""
    memory = str(memory_bytes)
    if is_ours(name):
        ours = [SORTMILL, "sort", *case.flags, "--memory", memory, "--temp", temp, "-o", output,
                "--report", temp / "report.json"]
        if name.startswith("until-"):
            ours += ["--until", name.removeprefix("until-")]
        if name.startswith("local-"):
            ours += ["--on", f"local:{name.removeprefix('local-')}"]
        return [*ours, source]
    if name == "gnu":
        return ["env", "LC_ALL=C", "sort", "-S", f"{memory_bytes // 1024}K", f"--parallel={threads}",
                *GNU_SETTINGS[setting], "-T", temp, "-o", output, source]
    return [VENV_PYTHON, ROOT / "bench" / "peers" / f"{name}_sort.py", "--setting", setting, "--memory", memory,
            "--threads", str(threads), "--temp", temp, "-o", output, source]


def why_missing(name):
    """Installs the contestant where that is needed; why it cannot take part, or nothing."""
    for beginning, flag in (("until-", "--until"), ("local-", "--on")):
        if name.startswith(beginning):
            words = subprocess.run([SORTMILL, "sort", "--help"], capture_output=True, text=True).stdout
            return None if f"{flag} <" in words else f"this sortmill has no {flag}"
    if name == "pyspark" and not shutil.which("java"):
        return "there is no Java (Debian: default-jre-headless)"
    if ALL[name].package:
        return why_not_installed(pinned(ALL[name].package))
    return None


def why_not_installed(requirement):
    """Puts the pinned package into the checkout's own virtual environment, once."""
    package, version = requirement.split("==")
    if not VENV_PYTHON.exists():
        command([sys.executable, "-m", "venv", VENV])
    folders = map(str, VENV.glob("lib/python*/site-packages"))
    if any(found.version == version for found in importlib.metadata.distributions(name=package, path=[*folders])):
        return None
    say(f"installing {requirement} into .venv")
    done = subprocess.run([VENV_PYTHON, "-m", "pip", "install", "-q", requirement], capture_output=True, text=True)
    return None if done.returncode == 0 else f"pip cannot install it: {done.stderr.strip()[-200:]}"


def pinned(package):
    return re.search(rf"^{package}==\S+", REQUIREMENTS.read_text(), re.MULTILINE).group(0)


def warm_program(name):
    """The data are read cold, the program is not: chDB's library alone is half a gigabyte, as Spark's is."""
    if name == "pyspark":
        command(["java", "-version"])
        for jar in VENV.glob("lib/python*/site-packages/pyspark/jars/*.jar"):
            jar.read_bytes()
    if ALL[name].package:
        command([VENV_PYTHON, "-c", f"import {ALL[name].package}"])
    else:
        version(name)


def version(name):
    if ALL[name].package:
        return pinned(ALL[name].package).split("==")[1]
    words = [SORTMILL, "--version"] if is_ours(name) else ["sort", "--version"]
    return command(words).stdout.splitlines()[0].split()[-1]
