"""What compressing temporary data is worth, by what binds the job: `make bench-compress-temp`.

    python3 bench/compress_temp.py                                  text and noise, 2 GB in 512 MiB (half an hour, 10 GB)
    python3 bench/compress_temp.py --bytes 200000000 --rounds 1 --places slow --data text
    python3 bench/compress_temp.py --write                          the newest results into docs/measuring.md
    python3 bench/compress_temp.py --check                          whether they are there

Places: `disk` (all on one disk, as it is), `slow` (temporary data on a disk of --slow-rate each way: a file system in a
file, whose loop device a cgroup slows down, which takes root), `memory` (all in /dev/shm, where no disk binds). The four
settings alternate within a round, each from a cold page cache; the outputs of one place must have the same bytes. Writes
bench/runs/<date>-<commit>-compress-temp.csv (large/runs of fewer bytes), a line a run, and prints ratios to `none` of the
same round.
"""

import argparse
import contextlib
import csv
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from machine import machine_facts
from marked import kept, replaced
from measure import drop_caches
from results import REDUCED_RUNS, RUNS
from shell import ROOT, SORTMILL, command, fail, gb, say

PAGE = ROOT / "docs" / "measuring.md"
BEGIN, END = "<!-- compress-temp: begin -->", "<!-- compress-temp: end -->"
WHOLE_BYTES = 2 * 10**9
SETTINGS = ["none", "auto", "lz4", "zstd"]
KEYED = ("--format", "fixed:100", "--key", "0:10")
# How it is made, and the flags of the sort.
DATA = {"text": (("text",), ()), "noise": (("records",), KEYED)}
PLACES = {"disk": "one disk", "slow": "slow temporary disk", "memory": "memory"}
COLUMNS = ["date", "commit", "place", "slow_bytes_per_s", "data", "bytes", "memory_bytes", "round", "setting", "wall_s",
           "distribute_s", "sort_s", "cpu_s", "temp_plain", "temp_written", "blocks", "packed_blocks", "pack_s",
           "unpack_s", "resident", "verdict", "sha256", "cpu", "cores", "kernel", "file_system"]
NUMBERS = {"slow_bytes_per_s", "bytes", "memory_bytes", "wall_s", "distribute_s", "sort_s", "cpu_s", "temp_plain",
           "temp_written", "blocks", "packed_blocks", "pack_s", "unpack_s"}


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--bytes", type=int, default=WHOLE_BYTES)
    words.add_argument("--memory", default="512MiB")
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--places", type=lambda text: text.split(","), default=list(PLACES))
    words.add_argument("--data", type=lambda text: text.split(","), default=list(DATA))
    words.add_argument("--settings", type=lambda text: text.split(","), default=SETTINGS)
    words.add_argument("--slow-rate", type=int, default=150 * 10**6, help="bytes a second, each way")
    words.add_argument("--write", action="store_true")
    words.add_argument("--check", action="store_true")
    asked = words.parse_args()
    if asked.check or asked.write:
        kept(PAGE, expected(), "compress_temp.py", asked.check)
    else:
        measure_all(asked)


def measure_all(asked):
    if asked.settings[0] != "none":
        fail("--settings begin with none, which the others are compared with")
    asked.folder = Path(os.environ.get("BENCH_DIR", ROOT / "large")).resolve() / "compress-temp"
    asked.cores = len(os.sched_getaffinity(0))
    shutil.rmtree(asked.folder, ignore_errors=True)
    asked.folder.mkdir(parents=True)
    facts = machine_facts(asked)
    folder = RUNS if asked.bytes >= WHOLE_BYTES else REDUCED_RUNS
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{facts['date']}-{facts['commit']}-compress-temp.csv"
    rows = []
    try:
        for data in asked.data:
            source = generated(asked, data)
            for place in asked.places:
                with made(asked, place, source) as found:
                    if found:
                        rows += rounds(asked, data, place, found, facts, out)
            source.unlink()
    finally:
        shutil.rmtree(asked.folder, ignore_errors=True)
    print(table(rows))


def generated(asked, data):
    (kind, *rest), _ = DATA[data]
    path = asked.folder / "in"
    say(f"generating {data}, {gb(asked.bytes)}")
    count = [str(asked.bytes // 100)] if kind == "records" else ["--bytes", str(asked.bytes)]
    command([SORTMILL, "gen", kind, *rest, *count, path])
    os.sync()
    return path


class Place:
    """Where a job reads and writes, and what it is run in."""

    def __init__(self, source, temp, output, group=None):
        self.source, self.temp, self.output, self.group = source, temp, output, group

    def enter(self):
        if self.group:
            (self.group / "cgroup.procs").write_text("0")


@contextlib.contextmanager
def made(asked, place, source):
    if place == "disk":
        yield Place(source, asked.folder, asked.folder / "out")
    elif place == "memory":
        folder = Path("/dev/shm") / f"sortmill-bench-{os.getpid()}"
        folder.mkdir()
        try:
            shutil.copy(source, folder / "in")
            yield Place(folder / "in", folder, folder / "out")
        finally:
            shutil.rmtree(folder)
    else:
        with contextlib.ExitStack() as stack:
            slow = slow_disk(asked, stack)
            yield slow and Place(source, slow[0], asked.folder / "out", slow[1])


def slow_disk(asked, stack):
    """A file system whose device a cgroup slows down, and that group; nothing, and why not is said, if it cannot be."""
    image, folder = asked.folder / "image", asked.folder / "slow"
    folder.mkdir()
    stack.callback(folder.rmdir)
    stack.callback(lambda: image.unlink(missing_ok=True))
    try:
        subprocess.run(["truncate", "-s", str(asked.bytes * 5 // 4 + (256 << 20)), image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        loop = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", image], check=True, capture_output=True,
                              text=True).stdout.strip()
        stack.callback(lambda: subprocess.run(["losetup", "-d", loop]))
        subprocess.run(["mount", loop, folder], check=True)
        stack.callback(lambda: subprocess.run(["umount", folder]))
        number = os.stat(loop).st_rdev
        device = f"{os.major(number)}:{os.minor(number)}"
        first, second = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")
        is_first = first.is_dir()
        group = (first if is_first else second) / f"sortmill-bench-{os.getpid()}"
        if not is_first:
            (second / "cgroup.subtree_control").write_text("+io")
        group.mkdir()
        stack.callback(lambda: removed(group))
        rate = asked.slow_rate
        if is_first:
            for way in ("read", "write"):
                (group / f"blkio.throttle.{way}_bps_device").write_text(f"{device} {rate}")
        else:
            (group / "io.max").write_text(f"{device} rbps={rate} wbps={rate}")
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"no slow disk can be made here, and none is measured: {error}")
        return None
    return folder, group


def removed(group):
    for _ in range(50):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.1)


def rounds(asked, data, place, where, facts, out):
    is_new = not out.exists()
    rows = []
    with open(out, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        if is_new:
            writer.writeheader()
        for number in range(asked.rounds):
            for setting in asked.settings:
                row = {**facts, "data": data, "place": place, "round": number, "setting": setting,
                       "slow_bytes_per_s": asked.slow_rate if place == "slow" else ""}
                row |= job(asked, data, where, setting)
                if rows and row["sha256"] != rows[0]["sha256"]:
                    fail(f"{place}, {data}: the output with {setting} is another one")
                writer.writerow(row)
                file.flush()
                rows.append(row)
                say(f"{place}, {data}, {setting}: {row['wall_s']} s, {row['distribute_s']} and {row['sort_s']}; "
                    f"{row['temp_plain'] / 1e9:.2f} GB as {row['temp_written'] / 1e9:.2f}")
    return rows


def job(asked, data, where, setting):
    report = asked.folder / "report"
    words = [SORTMILL, "sort", *DATA[data][1], "--memory", asked.memory, "-T", where.temp, "-o", where.output,
             where.source, "--report", report, "-q", "--no-probe", "--compress-temp", setting]
    drop_caches()
    began = time.monotonic()
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, preexec_fn=where.enter)
    wall_s = time.monotonic() - began
    if done.returncode != 0:
        fail(f"{' '.join(map(str, words))} failed with {done.returncode}")
    found = json.loads(report.read_text())
    digest = hashlib.sha256()
    with open(where.output, "rb") as output:
        while piece := output.read(1 << 22):
            digest.update(piece)
    where.output.unlink()
    packed = found.get("temp_packed")
    phases = {phase["name"]: phase for phase in found["phases"]}
    stages = [stage for phase in found["phases"] for stage in phase["stages"]]
    work_s = {name: round(sum(one["work_ns"] for one in stages if one["stage"] == name) / 1e9, 3)
              for name in ("pack", "unpack")}
    written = found["bytes"]["temp_written"]
    slowest = max(found["verdicts"], key=lambda verdict: verdict["wall_ns"], default=None)
    return {
        "bytes": found["bytes"]["input"],
        "memory_bytes": found["memory"]["limit_bytes"],
        "wall_s": round(wall_s, 3),
        "distribute_s": round(phases["distribute"]["wall_ns"] / 1e9, 3),
        "sort_s": round(phases["sort"]["wall_ns"] / 1e9, 3),
        "cpu_s": round(found["cpu_ns"] / 1e9, 3),
        "temp_plain": packed["plain_bytes"] if packed else written,
        "temp_written": written,
        "blocks": packed["blocks"] if packed else "",
        "packed_blocks": packed["packed_blocks"] if packed else "",
        "pack_s": work_s["pack"],
        "unpack_s": work_s["unpack"],
        "resident": found["memory"]["resident_bytes_peak"],
        "verdict": slowest["bound_by"]["what"] if slowest else "",
        "sha256": digest.hexdigest(),
    }


def table(rows):
    """Medians, and ratios to `none` of the same round."""
    heads = ["place, data", "setting", "wall s", "over none", "distribute", "sort", "written, of plain",
             "blocks compressed", "cpu s"]
    lines = [heads, ["---"] * len(heads)]
    groups = {}
    for row in rows:
        groups.setdefault((row["place"], row["slow_bytes_per_s"], row["data"]), []).append(row)
    for (place, rate, data), group in groups.items():
        name = PLACES[place] + (f" ({rate / 1e6:.0f} MB/s)" if rate else "")
        for setting in dict.fromkeys(row["setting"] for row in group):
            mine = [row for row in group if row["setting"] == setting]
            lines.append([f"{name}, {data}", setting, spread([row["wall_s"] for row in mine]),
                          *(ratios(group, mine, of) for of in ("wall_s", "distribute_s", "sort_s")),
                          f"{median(row['temp_written'] / max(row['temp_plain'], 1) for row in mine):.2f}",
                          share(mine), f"{median(row['cpu_s'] for row in mine):.1f}"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def median(values):
    return statistics.median(list(values))


def spread(values):
    return f"{median(values):.1f} ({min(values):.1f} - {max(values):.1f})"


def ratios(group, mine, of):
    if mine[0]["setting"] == "none":
        return "1"
    plain = {row["round"]: row[of] for row in group if row["setting"] == "none"}
    return f"{median(row[of] / plain[row['round']] for row in mine):.2f}"


def share(rows):
    if rows[0]["setting"] == "none":
        return "-"
    return f"{100 * median(row['packed_blocks'] / max(row['blocks'], 1) for row in rows):.0f} %"


def read(path):
    def value(name, text):
        return float(text) if name in NUMBERS and text else text
    with open(path, newline="") as file:
        return [{name: value(name, text) for name, text in line.items()} for line in csv.DictReader(file)]


def expected():
    """The page with what the newest results say."""
    files = [path for path in sorted(RUNS.glob("*-compress-temp.csv")) if "-dirty-" not in path.name]
    if not files:
        return replaced(PAGE, BEGIN, END, "Not measured yet.")
    rows = read(files[-1])
    first = rows[0]
    words = (f"{first['bytes'] / 1e9:.1f} GB in {first['memory_bytes'] / (1 << 20):.0f} MiB; {first['cpu']}, "
             f"{first['cores']} cores, Linux {first['kernel']}, {first['file_system']}; "
             f"`bench/runs/{files[-1].name}`")
    return replaced(PAGE, BEGIN, END, f"{words}\n\n{table(rows)}")


if __name__ == "__main__":
    sys.exit(main())
