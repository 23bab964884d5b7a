"""The runs of shapes.py: data generated, sorted, counted from outside, checked; a line each in bench/runs/."""

import csv
import json
import os
import re
import shlex
import shutil
import subprocess

import results
from cases import memory_bytes_max
from disk import open_disk
from floor import Budget, floor
from machine import machine_facts, now
from measure import CGROUP_SPARE_BYTES, drop_caches, measure, warm_memory
from shell import GIB, SORTMILL, command, fail, gb, say

DISK_FILE_BYTES = 4 << 30
COLUMNS = ["set", "shape", "date", "ended", "commit", "round", "bytes", "memory_bytes", "cgroup_limit_bytes", "wall_s",
           "uniform_s", "cpu_s", "peak_anon_bytes", "distribute_s", "sort_s", "largest_over_mean", "over_lower_bound",
           "floor_s", "floor_memory_s", "drift", "cpu", "clock_hz", "cores", "memory_total_bytes", "kernel", "file_system"]


class ShapeRuns:
    def __init__(self, asked, uniform):
        self.asked, self.uniform, self.facts = asked, uniform, machine_facts(asked)
        folder = results.RUNS if asked.is_whole else results.REDUCED_RUNS
        name = f"{self.facts['commit']}-shapes.csv"
        kept = sorted(folder.glob(f"*-{name}")) if asked.resume else []
        self.path = kept[-1] if kept else folder / f"{self.facts['date']}-{name}"
        if self.path.exists() and not asked.resume:
            if asked.is_whole:
                fail(f"{self.path.name} is there already\n\nGo on with --resume, or delete it.")
            self.path.unlink()
        self.disk = None

    def rows(self):
        return read(self.path)

    def done(self, set_name, shape_name, round_number):
        keys = [(row["set"], row["shape"], row["round"]) for row in self.rows()] if self.path.exists() else []
        return (set_name, shape_name, round_number) in keys

    def skew(self, shapes, set_name="skew"):
        """Each shape between two sorts of uniform keys; as `streams` they come by a pipe."""
        asked = self.asked
        wanted = [(number, shape) for number in range(1, asked.rounds + 1) for shape in shapes
                  if not self.done(set_name, shape.name, number)]
        if not wanted:
            return
        is_piped = set_name == "streams"
        self.disk = None if is_piped else open_disk(asked.folder, DISK_FILE_BYTES, 3, None)
        uniform = self.generate(self.uniform, asked.bytes)
        before_s = None
        for number, shape in wanted:
            data = self.generate(shape, asked.bytes * shape.times_bytes)
            if before_s is None:
                before_s = self.sort(self.uniform, uniform, asked.memory, is_piped=is_piped)["wall_s"]
            row = self.sort(shape, data, asked.memory * shape.times_memory, is_piped=is_piped)
            data.path.unlink()
            after_s = self.sort(self.uniform, uniform, asked.memory, is_piped=is_piped)["wall_s"]
            row |= {"set": set_name, "round": number, "uniform_s": round((before_s + after_s) / 2, 3)}
            before_s = after_s
            self.keep(row)
            say(f"{set_name}, {shape.name}, {gb(row['bytes'])}: {row['wall_s']:.1f} s, "
                f"{row['wall_s'] / row['uniform_s']:.2f} of uniform")
        uniform.path.unlink()

    def small(self, shapes):
        """Each kind of data in a cgroup that leaves no more than is promised."""
        for shape in shapes:
            if self.done("small", shape.name, 1):
                continue
            data = self.generate(shape, self.asked.small_bytes)
            memory = self.asked.small_memory
            row = self.sort(shape, data, memory, spare_bytes=memory_bytes_max(memory) - memory)
            data.path.unlink()
            self.keep(row | {"set": "small", "round": 1})
            say(f"small, {shape.name}: {row['wall_s']:.1f} s, {row['peak_anon_bytes'] / memory:.2f} of the memory")

    def pipes(self, shape):
        """gen, sort and check alone, then joined; what is alone reads from and writes to /dev/null or a file."""
        asked = self.asked
        wanted = [number for number in range(1, asked.rounds + 1) if not self.done("pipes", "joined", number)]
        if not wanted:
            return
        data = self.generate(shape, asked.bytes)
        ordered, temp = asked.folder / "ordered", asked.folder / "temp"
        command([SORTMILL, "sort", *shape.sort, "--memory", str(asked.memory), "-q", "-o", ordered, data.path])
        temp.mkdir()
        gen = f"'{SORTMILL}' gen {' '.join(shape.gen)} {data.records} -"
        sort = f"'{SORTMILL}' sort -q {' '.join(shape.sort)} --memory {asked.memory} --temp '{temp}'"
        check = f"'{SORTMILL}' check {' '.join(shape.sort)} -"
        jobs = {
            "gen alone": f"{gen} > /dev/null",
            "sort alone": f"{sort} < '{data.path}' > /dev/null",
            "check alone": f"{check} < '{ordered}'",
            "joined": f"{gen} | {sort} | {check}",
        }
        for number in wanted:
            for name, script in jobs.items():
                if self.done("pipes", name, number):
                    continue
                row = self.pipe(script, data)
                self.keep(row | {"set": "pipes", "shape": name, "round": number, "bytes": data.byte_count})
                say(f"pipes, {name}: {row['wall_s']:.1f} s")
        ordered.unlink()
        data.path.unlink()
        shutil.rmtree(temp)

    def pipe(self, script, data):
        drop_caches()
        command([SORTMILL, "--version"])
        warm_memory(self.asked.memory + GIB)
        log = self.asked.folder / "log"
        row = measure(["bash", "-c", f"set -o pipefail; {script}"], self.asked.memory, self.asked.folder, log)
        said = log.read_text()
        if row["exit_status"] != 0 or ("check" in script and f"checksum: {data.checksum}" not in said):
            fail(f"{script}: {said[-500:]}")
        return row | {"memory_bytes": self.asked.memory}

    def generate(self, shape, byte_count):
        path = self.asked.folder / f"in.{shape.gen[0]}"
        size = [str(byte_count // 100)] if shape.gen[0] == "records" else ["--bytes", str(byte_count)]
        command([SORTMILL, "gen", *shape.gen, *size, path])
        data = Made(path, *checked(shape, path)[1:])
        os.sync()
        return data

    def sort(self, shape, data, memory, spare_bytes=CGROUP_SPARE_BYTES, is_piped=False):
        """One run, with the disk's rates around it where a floor is asked for; the output is checked and deleted."""
        output, temp, log = (self.asked.folder / name for name in ("out", "temp", "log"))
        temp.mkdir()
        drop_caches()
        command([SORTMILL, "--version"])
        takes_rates = self.disk is not None and shape.floor
        before = self.disk.rates_around() if takes_rates else None
        warm_memory(memory + GIB)
        words = [SORTMILL, "sort", *shape.sort, "--memory", str(memory), "--temp", temp, "-o", output,
                 "--report", temp / "report.json", "-" if is_piped else data.path]
        if is_piped:
            # As much as a pipe takes at once.
            from_pipe = f"dd if='{data.path}' bs=64k status=none | {shlex.join(map(str, words))}"
            words = ["bash", "-c", f"set -o pipefail; {from_pipe}"]
        row = measure(words, memory, self.asked.folder, log, spare_bytes)
        if row["exit_status"] != 0:
            fail(f"{shape.name}: {log.read_text()[-500:]}")
        after = self.disk.rates_around() if takes_rates else None
        report = json.loads((temp / "report.json").read_text())
        if checked(shape, output) != (True, data.records, data.checksum):
            fail(f"{shape.name}: the output is wrong")
        moved, parts = report["bytes"], report["partitions"]
        row |= {f"{phase['name']}_s": round(phase["wall_ns"] / 1e9, 3) for phase in report["phases"]}
        row |= {"shape": shape.name, "bytes": data.byte_count, "memory_bytes": memory,
                "largest_over_mean": round(parts["bytes_max"] * parts["count"] / data.byte_count, 3),
                "over_lower_bound": round((moved["kernel_read"] + moved["kernel_written"]) / moved["lower_bound"], 4)}
        if takes_rates:
            budget = Budget.of("fixed", data.byte_count // 100, self.asked.cores, self.facts["clock_hz"])
            fits = data.byte_count if shape.floor == "one pass" else memory
            best = before.best(after)
            least = floor(data.byte_count, fits, best.rates, budget)
            row |= {"floor_s": round(least.total_s, 3), "drift": round(before.rates.drift(after.rates), 4)}
            if best.memory:
                least = floor(data.byte_count, fits, best.memory, budget)
                row["floor_memory_s"] = round(least.total_s, 3)
        output.unlink()
        shutil.rmtree(temp)
        os.sync()
        return row

    def keep(self, row):
        row["ended"] = now()
        row = {name: row.get(name, self.facts.get(name)) for name in COLUMNS}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with open(self.path, "a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)


class Made:
    """A generated input, and what every output of it must have."""

    def __init__(self, path, records, checksum):
        self.path, self.records, self.checksum = path, records, checksum
        self.byte_count = path.stat().st_size


def checked(shape, path):
    """(in order, records, checksum), as `sortmill check` sees it."""
    done = subprocess.run([SORTMILL, "check", *shape.sort, path], capture_output=True, text=True)
    found = [re.search(rf"^{word}: (\S+)", done.stdout, re.MULTILINE) for word in ("records", "checksum")]
    if done.returncode not in (0, 1) or not all(found):
        fail(f"check {path}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.returncode == 0, int(found[0].group(1).replace(",", "")), found[1].group(1)


def read(path):
    """The file's lines, numbers as numbers and what is empty as None."""
    with open(path, newline="") as file:
        return [{name: value(name, text) for name, text in line.items()} for line in csv.DictReader(file)]


def value(name, text):
    return text if name in ("set", "shape") else results.value(name, text)
