"""Times sortmill against its peers and against the floor of the disk: `make bench`.

    bench/run.sh                                                       every case, five rounds
    bench/run.sh --cases memory-sweep --rounds 1 --records 1000000     one, small
    bench/run.sh --resume                                              goes on where this commit's runs were cut off
    bench/run.sh --readme                                              writes README's table from bench/runs/
    bench/run.sh --check                                               fails where README differs from that

  cases.py         what is measured                     data.py      the inputs
  contestants.py   who takes part                       peers/       the programs of those that are libraries
  rounds.py        a case's rounds, repeats, settings   run.py       one run: rates, time, check
  measure.py       a process, counted from outside      memory_group.py, machine.py
  disk.py          what the disk does                   floor.py     F(D, M), the time a sort must take
  scale.py         how much of it was asked for         results.py   bench/runs/
  table.py, plot.py, readme.py                          what is shown of it

Contestants take turns, in turned order every other round, because disks drift. Each run is a process in a memory
cgroup of its limit and 2 GiB, from a cold page cache to a synced output, which must pass `sortmill check` with the
input's checksum. Around each run of ours the disk's own rates are taken; a round in which they differ by more than
a tenth is repeated, three times at most. docs/measuring.md says why all this is so.

Standard library only; the peers are installed into the checkout's .venv.
"""

import argparse
import fcntl
import os
import re
import shutil
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import contestants
import results
from cases import BY_NAME, CASES
from disk import open_disk
from machine import facts_line, machine_facts
from readme import check_readme, write_readme
from rounds import run_case
from scale import all_names, disk_file_bytes, estimated_seconds, memories, names_of, needed_bytes
from shell import ROOT, duration, fail, gb, say
from table import tables

HELD_BYTES_MAX = 45 * 10**9


def main():
    asked = parse_flags()
    if asked.readme:
        return write_readme()
    if asked.check:
        return check_readme()
    require_space(asked)
    if asked.space_only:
        return say_beforehand(asked)
    with alone_in(asked.folder):
        missing = {name: contestants.why_missing(name) for name in all_names(asked)}
        for name, reason in missing.items():
            if reason:
                say(f"{name} takes no part: {reason}")
        facts = machine_facts(asked)
        say(facts_line(facts))
        disk = open_disk(asked.folder, disk_file_bytes(asked), asked.disk_seconds, asked.disk_tool)
        settle(disk, asked.settle)
        paths = [run_case(asked, case, facts, missing, disk) for case in in_order_of_data(asked.cases)]
    print(tables([(path, results.read(path)) for path in paths if path]))


def settle(disk, seconds):
    """Keeps the disk at work for so long: a virtual one may give twice as much for its first hundreds of gigabytes, and
    a floor made of what it gives then is not that of the job that comes after."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rates = disk.rates()
        say(f"settling: {rates.read_alone / 1e6:.0f} MB/s read alone, {rates.write_alone / 1e6:.0f} written alone")


def parse_flags():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--cases", type=lambda text: text.split(","), default=list(BY_NAME),
                       help=f"of {','.join(BY_NAME)}; default all")
    words.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", 5)), help="default $ROUNDS or 5")
    words.add_argument("--records", type=int, help="fewer than the case has; its memory shrinks with them")
    words.add_argument("--memory", type=parse_size, help="such as 256MiB; default what the case says")
    words.add_argument("--contestants", type=lambda text: text.split(","), help="default those of the case")
    words.add_argument("--repeats", type=int, default=3, help="of a round in which the disk drifted; default 3")
    words.add_argument("--disk-seconds", type=int, default=3, help="for each rate of the disk; default 3")
    words.add_argument("--settle", type=int, default=120, help="seconds of disk work before all else; default 120")
    words.add_argument("--disk-tool", choices=["sortmill", "fio"], help="default sortmill where it can")
    words.add_argument("--resume", action="store_true", help="go on with this commit's last runs of each case")
    words.add_argument("--space-only", action="store_true", help="say time and space, check the space and stop")
    words.add_argument("--readme", action="store_true", help="write README's table and plot from bench/runs/")
    words.add_argument("--check", action="store_true", help="fail where README differs from bench/runs/")
    asked = words.parse_args()
    if unknown := [name for name in asked.cases if name not in BY_NAME]:
        words.error(f"unknown case {unknown[0]!r}, there are {', '.join(BY_NAME)}")
    if unknown := [name for name in asked.contestants or [] if name not in contestants.ALL]:
        words.error(f"unknown contestant {unknown[0]!r}, there are {', '.join(contestants.ALL)}")
    if asked.rounds < 1 or asked.repeats < 0 or asked.disk_seconds < 1 or (asked.records or 1) < 1:
        words.error("--rounds, --records and --disk-seconds begin at 1, --repeats at 0")
    asked.cases = [BY_NAME[name] for name in asked.cases]
    asked.folder = Path(os.environ.get("BENCH_DIR", ROOT / "large" / "bench")).resolve() / "sortmill-bench"
    asked.cores = len(os.sched_getaffinity(0))
    return asked


def parse_size(text):
    match = re.fullmatch(r"(\d+)\s*(|[KMGT]i?B|[KMGT])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 2GiB or 2GB")
    number, unit = match.groups()
    base = 1000 if len(unit) == 2 else 1024
    return int(number) * (base ** (" KMGT".index(unit[0])) if unit else 1)


def in_order_of_data(cases):
    """Those of the same data follow each other, so that one input at a time is enough."""
    kinds = list(dict.fromkeys(case.data for case in CASES))
    return sorted(cases, key=lambda case: (kinds.index(case.data), -case.data_bytes))


def require_space(asked):
    existing = next(folder for folder in [asked.folder, *asked.folder.parents] if folder.exists())
    # What a benchmark that was killed left there goes before this one begins.
    left = sum(file.stat().st_size for file in asked.folder.rglob("*") if file.is_file())
    free, needed = shutil.disk_usage(existing).free + left, needed_bytes(asked)
    if needed > HELD_BYTES_MAX:
        fail(f"this would hold {gb(needed)}, and a benchmark takes at most {gb(HELD_BYTES_MAX)}")
    if free < needed * 1.1:
        fail(f"{existing} has {gb(free)} free, this needs {gb(needed)} and a tenth to spare\n\n"
             "Set BENCH_DIR to a folder on a larger disk, or --records to fewer.")


@contextmanager
def alone_in(folder):
    """An empty folder for one benchmark, deleted at its end: a second one would delete the first one's data, and both
    would measure each other."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / "sortmill-bench.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fail(f"another benchmark runs in {folder.parent}\n\nWait for it, or set BENCH_DIR to another folder.")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def say_beforehand(asked):
    total = 0
    for case in asked.cases:
        seconds = estimated_seconds(asked, case)
        say(f"{case.name}: about {duration(seconds)} for {asked.rounds} rounds of {len(memories(asked, case))} "
            f"memory sizes, {', '.join(names_of(asked, case))}")
        total += seconds
    say(f"together about {duration(total)}, where the disk drifts up to {1 + asked.repeats} times as long; "
        f"at most {gb(needed_bytes(asked))} of disk")


if __name__ == "__main__":
    main()
