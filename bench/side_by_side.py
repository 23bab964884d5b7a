"""What GNU sort and Sortmill leave behind when things go wrong: runs both and writes README's table of it.

    bench/side_by_side.py            runs all (root, FUSE 3, some minutes, 2 GB of disk) and writes bench/runs/
    bench/side_by_side.py --write    writes README's table from the newest file in bench/runs/
    bench/side_by_side.py --check    fails where the table is not what that file gives

Both sort the same lines in the same memory. What counts is what a user finds afterwards: the exit status, what is under
the output's name, and which files lie about.
"""

import argparse
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from marked import kept, replaced
from results import RUNS
from shell import ROOT, SORTMILL, command, fail, say

README = ROOT / "README.md"
BEGIN, END = "<!-- side by side: begin -->", "<!-- side by side: end -->"
COLUMNS = ["case", "program", "runs", "failed", "as_before", "sorted", "neither", "left_files", "left_bytes",
           "left_after_next", "said", "commit", "version"]
LINES = 2_000_000
MEMORY = "32M"
# A disk with room for a quarter of the output.
SMALL_DISK_BYTES = 64 << 20
KILLS = 20
# Within the output, and beyond what either holds in a buffer at the end.
LIE_AT_BYTE = 100_000_000
GNU, OURS, VERIFIED = "GNU sort", "sortmill", "sortmill --verify"


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--write", action="store_true", help="write README's table")
    flags.add_argument("--check", action="store_true", help="fail where README's table is out of date")
    flags = flags.parse_args()
    if flags.check or flags.write:
        kept(README, expected(), "side_by_side.py", flags.check)
    else:
        run_all()


# ---------------------------------------------------------------------------------------------------------
# Running

class Bench:
    """A folder with the input, what is under the output's name before, and what should be there afterwards."""

    def __init__(self, folder):
        self.folder = folder
        self.input = folder / "in.txt"
        command([SORTMILL, "gen", "records", "--ascii", LINES, self.input])
        self.before = folder / "before.txt"
        self.before.write_text("what was there before\n" * 1000)
        self.sorted_hash = hashlib.sha256(sorted_in_memory(self.input)).hexdigest()
        self.rows = []

    def words(self, program, output, temp, source):
        if program == GNU:
            return ["sort", "-S", MEMORY, "--parallel=2", "-T", temp, "-o", output, source]
        verify = ["--verify"] if program == VERIFIED else []
        return [SORTMILL, "sort", "-q", "--memory", f"{MEMORY}iB", "-T", temp, *verify, "-o", output, source]

    def state(self, output, before):
        if not output.exists():
            return "neither"
        found = hash_of(output)
        return {hash_of(before): "as_before", self.sorted_hash: "sorted"}.get(found, "neither")

    def note(self, case, program, runs):
        """`runs`: of each (failed, state, files left, their bytes, files left after the next job, said)."""
        failed, states, files, sizes, after, said = zip(*runs)
        row = {"case": case, "program": program, "runs": len(runs), "failed": sum(failed),
               **{state: states.count(state) for state in ("as_before", "sorted", "neither")},
               "left_files": max(files), "left_bytes": max(sizes), "left_after_next": max(after), "said": said[-1]}
        say(f"{case}: {row}")
        self.rows.append(row)


def sorted_in_memory(path):
    """Its lines in the order of bytes, which neither program has a hand in."""
    return b"".join(sorted(path.read_bytes().splitlines(keepends=True)))


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(words, stdin=None):
    """(failed, what it said first)."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=stdin,
                          env={**os.environ, "LC_ALL": "C"})
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return done.returncode != 0, said[0] if said else ""


def emptied(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def lying_about(folder, known=()):
    """(count, bytes) of files in it that nobody asked for."""
    files = [path for path in folder.rglob("*") if path.is_file() and path not in known]
    return len(files), sum(path.stat().st_size for path in files)


def full_disk(bench, mounted):
    """The output's disk is too small, and what was there before is to be replaced."""
    for case, is_piped in (("a disk too small for the output", False),
                           ("the same, input through a pipe", True)):
        for program in (GNU, OURS):
            output = mounted / "out.txt"
            shutil.copy(bench.before, output)
            temp = emptied(bench.folder / "temp")
            source = "-" if is_piped else bench.input
            feeder = subprocess.Popen(["cat", bench.input], stdout=subprocess.PIPE) if is_piped else None
            failed, said = run(bench.words(program, output, temp, source), feeder and feeder.stdout)
            if feeder:
                feeder.stdout.close()
                feeder.wait()
            state = bench.state(output, bench.before)
            files, size = map(sum, zip(lying_about(temp), lying_about(mounted, {output})))
            bench.note(case, program, [(failed, state, files, size, files, said)])
            for path in mounted.glob("*.*"):
                path.unlink()


def killed(bench):
    """SIGKILL at even distances of a job whose output is its input."""
    for program in (GNU, OURS):
        place = bench.folder / "killed"
        temp = bench.folder / "temp"
        emptied(place), emptied(temp)
        file = place / "file.txt"
        words = [str(word) for word in bench.words(program, file, temp, file)]
        shutil.copy(bench.input, file)
        begun = time.monotonic()
        command(words)
        whole_s = time.monotonic() - begun
        runs = []
        for number in range(KILLS):
            emptied(place), emptied(temp)
            shutil.copy(bench.input, file)
            job = subprocess.Popen(words, stderr=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
            time.sleep(whole_s * (number + 0.5) / KILLS)
            job.kill()
            status = job.wait()
            state = bench.state(file, bench.input)
            files, size = map(sum, zip(lying_about(temp), lying_about(place, {file})))
            shutil.copy(bench.input, file)
            command(words)
            after = lying_about(temp)[0] + lying_about(place, {file})[0]
            runs.append((status != 0, state, files, size, after, ""))
        bench.note("SIGKILL during `sort f -o f`", program, runs)


def lied_to(bench):
    """A disk that stores one bit the other way round."""
    store, mount_point = emptied(bench.folder / "store"), emptied(bench.folder / "lying")
    words = [sys.executable, ROOT / "bench" / "lying.py", store, mount_point, LIE_AT_BYTE]
    liar = subprocess.Popen([str(word) for word in words])
    try:
        while not mount_point.is_mount():
            if liar.poll() is not None:
                fail("the file system that lies could not be mounted: it needs FUSE 3 and mfusepy")
            time.sleep(0.05)
        for program in (GNU, OURS, VERIFIED):
            output = mount_point / "out.txt"
            shutil.copy(bench.before, output)
            temp = emptied(bench.folder / "temp")
            failed, said = run(bench.words(program, output, temp, bench.input))
            state = bench.state(output, bench.before)
            files, size = map(sum, zip(lying_about(temp), lying_about(mount_point, {output})))
            bench.note("a disk that stores one bit wrong", program, [(failed, state, files, size, files, said)])
            for path in mount_point.iterdir():
                path.unlink()
    finally:
        subprocess.run(["umount", mount_point], check=False)
        liar.wait()


def run_all():
    if os.geteuid() != 0:
        fail("it mounts file systems, so it must be run by root")
    commit = command(["git", "-C", ROOT, "describe", "--always", "--dirty"]).stdout.strip()
    version = command(["sort", "--version"]).stdout.splitlines()[0]
    (ROOT / "large").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="side-by-side-", dir=ROOT / "large"))
    mounted = folder / "small"
    try:
        bench = Bench(folder)
        image = folder / "small.img"
        with open(image, "wb") as file:
            file.truncate(SMALL_DISK_BYTES)
        command(["mkfs.ext4", "-q", image])
        mounted.mkdir()
        command(["mount", "-o", "loop", image, mounted])
        full_disk(bench, mounted)
        killed(bench)
        lied_to(bench)
    finally:
        subprocess.run(["umount", mounted], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)
    path = RUNS / f"{date.today()}-{commit}-side-by-side.csv"
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in bench.rows:
            said = row["said"].replace(f"{folder}/", "")
            writer.writerow({**row, "said": said, "commit": commit, "version": version})
    say(f"wrote {path.relative_to(ROOT)}")


# ---------------------------------------------------------------------------------------------------------
# Telling

def expected():
    """README with the table of the newest file of a commit that can be looked up."""
    found = [path for path in sorted(RUNS.glob("*-side-by-side.csv")) if "dirty" not in path.name]
    block = "Not run yet."
    if found:
        with open(found[-1], newline="") as file:
            block = table(list(csv.DictReader(file)), found[-1])
    return replaced(README, BEGIN, END, block)


def table(rows, path):
    lines = ["| what happens | program | exit status | under the output's name | left lying about |", "|" + "---|" * 5]
    previous = None
    for row in rows:
        numbers = {name: int(row[name]) for name in
                   ("runs", "failed", "as_before", "sorted", "neither", "left_files", "left_bytes", "left_after_next")}
        case = row["case"] if row["case"] != previous else ""
        previous = row["case"]
        lines.append(f"| {case} | {row['program']} | {exit_words(numbers)} | {state_words(numbers)} | {left_words(numbers)} |")
    lines.append("")
    lines.append(f"`{path.name}`: {rows[0]['version']}; {LINES:,} lines of 100 bytes in {MEMORY}iB; "
                 f"killed at {KILLS} places, evenly over the job.")
    return "\n".join(lines)


def exit_words(row):
    if row["runs"] > 1:
        return f"killed {row['failed']} of {row['runs']} times"
    return "failed" if row["failed"] else "0: all is well"


def state_words(row):
    words = {"as_before": "what was there before", "sorted": "the sorted lines", "neither": "**neither old nor sorted**"}
    counts = [(row[state], text) for state, text in words.items() if row[state]]
    if row["runs"] == 1:
        return counts[0][1]
    return ", ".join(f"{'once' if count == 1 else f'{count} times'} {text}" for count, text in counts)


def left_words(row):
    if not row["left_files"]:
        return "nothing"
    files = f"up to {row['left_files']} files" if row["left_files"] > 1 else "1 file"
    words = f"{files}, {row['left_bytes'] / 1e6:.0f} MB"
    if row["runs"] > 1:
        words += ", for good" if row["left_after_next"] else ", until the next job there"
    return words


if __name__ == "__main__":
    main()
