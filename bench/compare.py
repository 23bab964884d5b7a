"""Times the main job against its peers and against the disk's floor.

The job: N binary records of 100 bytes (10 GB at the default), sorted by their first 10 bytes within a memory
limit, from a cold page cache (the programs themselves are warm) to a synced output file.

Contestants alternate, in turned order every other round, because disks drift:
  sortmill  this checkout's target/release/sortmill
  chdb      ClickHouse as a library, on the very same file (bench/chdb_sort.py says with which settings)
  gnu       coreutils sort on the ASCII records, whole line, LC_ALL=C (not the same file: it needs lines)

Each run is a process in a memory cgroup of the limit plus 2 GiB, where the machine lets us make one. Just
before it the harness touches as much memory and gives it back: the host of a virtual machine may take free
memory away within seconds, and to get it again can cost whoever touches it first 4 s per GiB, which says
nothing about any of the programs. --cold-memory leaves that out.
Before and after each run of sortmill, fio shows what the disk reads and writes at once (direct, io_uring,
4 MiB, depth 8, buffers in huge pages where root can have them, one sequential reader beside one sequential writer). From those rates comes the floor:

  F       = 2 * max(D / read, D / write)                  two passes over all D bytes
  F kept  = max(D / read, S / write) + max(S / read, D / write)
                                                          only the S bytes that sortmill really spilled

Each output is checked by `sortmill check`: order and checksum. Raw results are appended to
bench/runs/<date>-<commit>-<name>.csv, sortmill's own reports lie beside it; a summary goes to stdout.
Standard library only; chDB is installed into the checkout's .venv.
"""

import argparse
import csv
import datetime
import json
import mmap
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "bench" / "runs"
SORTMILL = ROOT / "target" / "release" / "sortmill"
VENV_PYTHON = ROOT / ".venv" / "bin" / "python"

RECORD_BYTES = 100
GIB = 1 << 30
KEY_FLAGS = ["--format", "fixed:100", "--key", "0:10"]
CONTESTANTS = ["sortmill", "chdb", "gnu"]
RUN_SECONDS_MAX = 3600
CGROUP_SPARE_BYTES = 2 * GIB
# The generator's checksums of whole data sets, from the sort benchmark's own program.
KNOWN_CHECKSUMS = {1_000_000: "7a0e0d4868cd4", 100_000_000: "2faf4162801872c"}


def main():
    asked = parse_flags()
    require_space(asked)
    if asked.space_only:
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if "chdb" in asked.contestants:
        install_chdb()
    shutil.rmtree(asked.folder, ignore_errors=True)
    asked.folder.mkdir(parents=True)
    try:
        facts = machine_facts(asked)
        say(facts_line(facts))
        inputs = {name: generate(asked, name == "gnu") for name in sorted(asked.contestants)}
        if "sortmill" in asked.contestants:
            lay_out_fio_files(asked)
        stem = f"{facts['date']}-{facts['commit']}-{asked.name}"
        rows = []
        for round_number in range(1, asked.rounds + 1):
            in_order = asked.contestants if round_number % 2 else asked.contestants[::-1]
            for contestant in in_order:
                row = {"round": round_number, "contestant": contestant}
                row |= run_once(asked, contestant, *inputs[contestant], stem)
                append_csv(RUNS / f"{stem}.csv", facts | row)
                rows.append(row)
        print(summary(asked, facts, rows))
    finally:
        shutil.rmtree(asked.folder, ignore_errors=True)


def parse_flags():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", 5)), help="default $ROUNDS or 5")
    words.add_argument("--records", type=int, default=100_000_000, help="of 100 bytes; default 100000000, 10 GB")
    words.add_argument("--memory", type=parse_size, default=2 * GIB, help="limit of each contestant; default 2GiB")
    words.add_argument("--contestants", type=lambda text: text.split(","), default=["sortmill", "chdb"],
                       help=f"of {','.join(CONTESTANTS)}; default sortmill,chdb")
    words.add_argument("--name", help="of the result file; default sort-<size>")
    words.add_argument("--cold-memory", action="store_true", help="do not touch memory before each run")
    words.add_argument("--space-only", action="store_true", help="check the free space and stop")
    asked = words.parse_args()
    for contestant in asked.contestants:
        if contestant not in CONTESTANTS:
            words.error(f"unknown contestant {contestant!r}, there are {', '.join(CONTESTANTS)}")
    if asked.rounds < 1 or asked.records < 1:
        words.error("--rounds and --records begin at 1")
    asked.data_bytes = asked.records * RECORD_BYTES
    asked.name = asked.name or f"sort-{asked.data_bytes / 1e9:g}gb"
    asked.folder = Path(os.environ.get("BENCH_DIR", ROOT / "large" / "bench")).resolve() / "sortmill-bench"
    asked.fio_bytes = min(3 * GIB, max(GIB // 2, asked.data_bytes))
    asked.threads = len(os.sched_getaffinity(0))
    return asked


def parse_size(text):
    match = re.fullmatch(r"(\d+)\s*(|[KMGT]i?B|[KMGT])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 2GiB or 2GB")
    number, unit = match.groups()
    base = 1000 if len(unit) == 2 else 1024
    return int(number) * (base ** (" KMGT".index(unit[0])) if unit else 1)


def require_space(asked):
    """Input, output, temporary data and fio's files, and a fifth on top, before anything is written."""
    needed = 3.1 * asked.data_bytes + 2 * asked.fio_bytes
    if "gnu" in asked.contestants:
        needed += asked.data_bytes
    needed = int(1.2 * needed)
    existing = next(folder for folder in [asked.folder, *asked.folder.parents] if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        fail(f"{existing} has {gb(free)} free, this needs {gb(needed)}\n\n"
             "Set BENCH_DIR to a folder on a larger disk, or --records to fewer than "
             f"{asked.records}.")


# ---------------------------------------------------------------------------------------------------------
# Data and contestants


def install_chdb():
    """Puts the pinned chDB into the checkout's own virtual environment, once."""
    pinned = (ROOT / "bench" / "requirements.txt").read_text().strip()
    ask = "import importlib.metadata as m; print('chdb==' + m.version('chdb'))"
    if VENV_PYTHON.exists():
        answer = subprocess.run([VENV_PYTHON, "-c", ask], capture_output=True, text=True)
        if answer.stdout.strip() == pinned:
            return
    else:
        command([sys.executable, "-m", "venv", ROOT / ".venv"])
    say(f"installing {pinned} into .venv")
    command([VENV_PYTHON, "-m", "pip", "install", "-q", "-r", ROOT / "bench" / "requirements.txt"])


def generate(asked, is_ascii):
    """Writes the input unless it is there; returns its path and checksum."""
    path = asked.folder / ("in.txt" if is_ascii else "in.bin")
    note = path.with_name(path.name + ".checksum")
    if not note.exists():
        say(f"generating {path.name}, {gb(asked.data_bytes)}")
        flags = ["--ascii"] if is_ascii else []
        words = command([SORTMILL, "gen", "records", *flags, "--checksum", str(asked.records), path])
        hexadecimal = re.findall(r"\b[0-9a-f]{5,33}\b", words.stderr)
        if not hexadecimal:
            fail(f"sortmill gen records --checksum printed no checksum:\n{words.stderr}")
        known = None if is_ascii else KNOWN_CHECKSUMS.get(asked.records)
        if known and known != hexadecimal[-1]:
            fail(f"the generator's checksum is {hexadecimal[-1]}, the benchmark's is {known}")
        note.write_text(hexadecimal[-1])
        os.sync()
    return path, note.read_text()


def contestant_command(asked, contestant, source, output, temp):
    """What is run, with the limit given in the contestant's own words."""
    memory = str(asked.memory)
    if contestant == "sortmill":
        return [SORTMILL, "sort", *KEY_FLAGS, "--memory", memory, "--temp", temp, "-o", output,
                "--report", temp / "report.json", source]
    if contestant == "chdb":
        return [VENV_PYTHON, ROOT / "bench" / "chdb_sort.py", "--memory", memory,
                "--threads", str(asked.threads), "--temp", temp, "-o", output, source]
    return ["env", "LC_ALL=C", "sort", "-S", f"{asked.memory // 1024}K", f"--parallel={asked.threads}",
            "-T", temp, "-o", output, source]


def run_once(asked, contestant, source, checksum, stem):
    """One contestant once: fio around it if it is ours, then the check, then its files deleted."""
    output, temp, log = (asked.folder / name for name in ["out.bin", "temp", "log"])
    temp.mkdir()
    is_cold = drop_caches()
    warm_program(contestant)
    before = fio_rates(asked) if contestant == "sortmill" else None
    if not asked.cold_memory:
        warm_memory(asked.memory + GIB)
    measured = measure(asked, contestant_command(asked, contestant, source, output, temp), log)
    after = fio_rates(asked) if contestant == "sortmill" else None
    if measured["exit_status"] != 0:
        fail(f"{contestant} failed with {measured['exit_status']}:\n{log.read_text()[-2000:]}")

    check = subprocess.run([SORTMILL, "check", *KEY_FLAGS, output], capture_output=True, text=True)
    words = check.stdout + check.stderr
    if check.returncode != 0 or not re.search(rf"\b{checksum}\b", words):
        fail(f"the output of {contestant} is wrong, or its checksum is not {checksum}:\n{words[-2000:]}")

    row = {"caches_dropped": is_cold, "memory_warm": not asked.cold_memory, "checksum": checksum} | measured
    if contestant == "sortmill":
        row |= floors(asked, measured, before, after)
        keep_report(temp / "report.json", stem)
    output.unlink()
    shutil.rmtree(temp)
    os.sync()
    say(f"{contestant}: {row['wall_s']:.1f} s, {row['cpu_s']:.1f} CPU s, "
        f"{gb(row['peak_anon_bytes'])} of its own memory, checked")
    return row


def warm_program(contestant):
    """The data are read cold, the program is not: chDB's library alone is half a gigabyte."""
    if contestant == "chdb":
        command([VENV_PYTHON, "-c", "import chdb"])
    else:
        version(contestant)


def warm_memory(count):
    """Touches `count` bytes, so that the machine has them when they are free again."""
    page = mmap.PAGESIZE
    with mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory[::page] = b"1" * len(range(0, count, page))


def keep_report(path, stem):
    """One line of JSON per run: sortmill's own account of it."""
    RUNS.mkdir(parents=True, exist_ok=True)
    with open(RUNS / f"{stem}.reports.jsonl", "a") as reports:
        reports.write(json.dumps(json.loads(path.read_text())) + "\n")


# ---------------------------------------------------------------------------------------------------------
# Measuring


def measure(asked, words, log):
    """Runs `words` from start to synced output, counting time, CPU, memory and bytes."""
    group = MemoryGroup(asked.memory + CGROUP_SPARE_BYTES)
    device_before = device_bytes(asked.folder)
    peak_anon = 0
    with open(log, "w") as log_file:
        start = time.monotonic()
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log_file,
                                   stderr=log_file, start_new_session=True, preexec_fn=group.enter)
        try:
            while True:
                done, status, usage = os.wait4(process.pid, os.WNOHANG)
                if done:
                    break
                if time.monotonic() - start > RUN_SECONDS_MAX:
                    raise TimeoutError(f"{words[0]} did not end within {RUN_SECONDS_MAX} s")
                peak_anon = max(peak_anon, anonymous_bytes(process.pid))
                time.sleep(0.02)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            group.delete()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        command(["sync", "-f", asked.folder])
        wall = time.monotonic() - start
    device_after = device_bytes(asked.folder)
    row = {
        "exit_status": process.returncode,
        "wall_s": round(wall, 3),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "user_s": round(usage.ru_utime, 3),
        "system_s": round(usage.ru_stime, 3),
        "peak_anon_bytes": peak_anon,
        "peak_rss_bytes": usage.ru_maxrss * 1024,
        "peak_cgroup_bytes": group.peak_bytes(),
        "cgroup_limit_bytes": group.limit_bytes,
        # The kernel's count of what this process had the device do, in blocks of 512.
        "own_read_bytes": usage.ru_inblock * 512,
        "own_written_bytes": usage.ru_oublock * 512,
        "device_read_bytes": device_after[0] - device_before[0] if device_after else None,
        "device_written_bytes": device_after[1] - device_before[1] if device_after else None,
        "load_1min": os.getloadavg()[0],
    }
    group.delete()
    return row


class MemoryGroup:
    """A memory cgroup (version 1 or 2) below our own, or nothing where we may not make one."""

    said = False

    def __init__(self, limit_bytes):
        self.folder, self.limit_bytes, self.peak_name = None, None, None
        for parent, limit_name, peak_name in self.places():
            folder = parent / f"sortmill-bench-{os.getpid()}-{time.monotonic_ns()}"
            try:
                if limit_name == "memory.max" and "memory" not in (parent / "cgroup.subtree_control").read_text():
                    (parent / "cgroup.subtree_control").write_text("+memory")
                folder.mkdir()
                (folder / limit_name).write_text(str(limit_bytes))
                if (folder / "memory.swap.max").exists():
                    (folder / "memory.swap.max").write_text("0")
            except OSError:
                if folder.exists():
                    folder.rmdir()
                continue
            self.folder, self.limit_bytes, self.peak_name = folder, limit_bytes, peak_name
            return
        if not MemoryGroup.said:
            say("no memory cgroup can be made here: the contestants run without a limit from outside")
            MemoryGroup.said = True

    @staticmethod
    def places():
        own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            fields, _, rest = line.partition(" - ")
            kind, _, options = rest.split(" ", 2)
            mount_root, mount_point = fields.split(" ")[3:5]
            if kind == "cgroup" and "memory" in options.split(","):
                path, names = own.get("memory", "/"), ("memory.limit_in_bytes", "memory.max_usage_in_bytes")
            elif kind == "cgroup2":
                path, names = own.get("", "/"), ("memory.max", "memory.peak")
            else:
                continue
            below = os.path.relpath(path, mount_root)
            yield Path(mount_point) / (below if not below.startswith("..") else "."), *names

    def enter(self):
        if self.folder:
            (self.folder / "cgroup.procs").write_text("0")

    def peak_bytes(self):
        """With the page cache that is charged to it, so it may touch the limit without harm."""
        try:
            return int((self.folder / self.peak_name).read_text()) if self.folder else None
        except OSError:
            return None

    def delete(self):
        for _ in range(50):
            try:
                if self.folder:
                    self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def anonymous_bytes(pid):
    """The process's own memory: what it maps of files is the kernel's to take back."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    kib = re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", status, re.MULTILINE)
    return sum(map(int, kib)) * 1024


def device_bytes(folder):
    """(read, written) of the whole device below `folder` since it started, or None if there is no such count."""
    number = os.stat(folder).st_dev
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if (int(fields[0]), int(fields[1])) == (os.major(number), os.minor(number)):
            return int(fields[5]) * 512, int(fields[9]) * 512
    return None


def drop_caches():
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
        return True
    except OSError:
        return False


# ---------------------------------------------------------------------------------------------------------
# The disk's floor


def fio(asked, *flags):
    shared = ["fio", "--output-format=json", "--direct=1", "--ioengine=io_uring", "--bs=4m", "--iodepth=8",
              f"--directory={asked.folder}", f"--size={asked.fio_bytes}"]
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


def reserve_huge_pages(count):
    """Whether the kernel keeps so many huge pages apart now; only root may ask."""
    setting = Path("/proc/sys/vm/nr_hugepages")
    try:
        setting.write_text(f"{count}\n")
        return int(setting.read_text()) >= count > 0
    except (OSError, ValueError):
        return False


def lay_out_fio_files(asked):
    """Written whole, so that the reader reads from the device and the writer allocates nothing."""
    for name in ["fio-read", "fio-write"]:
        fio(asked, f"--name={name}", f"--filename={name}", "--rw=write", "--end_fsync=1")


def fio_rates(asked):
    """Bytes a second (read, written) while one job reads and another writes, both in sequence."""
    jobs = fio(asked, "--time_based", "--ramp_time=1", "--runtime=5",
               "--name=read", "--filename=fio-read", "--rw=read",
               "--name=write", "--filename=fio-write", "--rw=write")
    return jobs["read"]["read"]["bw_bytes"], jobs["write"]["write"]["bw_bytes"]


def floors(asked, measured, before, after):
    """The two floors of the module's comment, each the mean of that before the run and that after it."""
    data = asked.data_bytes
    spilled = data
    if measured["own_written_bytes"] >= data:
        spilled = min(data, measured["own_written_bytes"] - data)

    def floor_s(spilled_bytes):
        def pass_s(rates, read_bytes, written_bytes):
            return max(read_bytes / rates[0], written_bytes / rates[1])

        return statistics.mean(pass_s(rates, data, spilled_bytes) + pass_s(rates, spilled_bytes, data)
                               for rates in (before, after))

    return {
        "spilled_bytes": spilled,
        "floor_s": round(floor_s(data), 3),
        "floor_kept_s": round(floor_s(spilled), 3),
        "fio_read_before": before[0], "fio_write_before": before[1],
        "fio_read_after": after[0], "fio_write_after": after[1],
    }


# ---------------------------------------------------------------------------------------------------------
# Results

COLUMNS = [
    "date", "commit", "round", "contestant", "records", "data_bytes", "memory_bytes", "exit_status", "wall_s",
    "cpu_s", "user_s", "system_s", "peak_anon_bytes", "peak_rss_bytes", "peak_cgroup_bytes", "cgroup_limit_bytes",
    "own_read_bytes", "own_written_bytes", "device_read_bytes", "device_written_bytes", "spilled_bytes", "floor_s",
    "floor_kept_s", "fio_read_before", "fio_write_before", "fio_read_after", "fio_write_after", "checksum",
    "caches_dropped", "memory_warm", "load_1min", "cpu", "cores", "memory_total_bytes", "kernel", "file_system", "versions",
]


def machine_facts(asked):
    git = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run(["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"],
                             capture_output=True, text=True)
    commit = git.stdout.strip() or "none"
    cpu = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit + ("-dirty" if changed.stdout.strip() else ""),
        "records": asked.records,
        "data_bytes": asked.data_bytes,
        "memory_bytes": asked.memory,
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "cores": asked.threads,
        "memory_total_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "file_system": file_system(asked.folder),
        "versions": "; ".join(version(contestant) for contestant in asked.contestants),
    }


def file_system(folder):
    number = os.stat(folder).st_dev
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[2] == f"{os.major(number)}:{os.minor(number)}":
            kind, device = line.partition(" - ")[2].split()[:2]
            return f"{kind} on {device}"
    return "unknown"


def version(contestant):
    if contestant == "chdb":
        return (ROOT / "bench" / "requirements.txt").read_text().strip()
    words = [SORTMILL, "--version"] if contestant == "sortmill" else ["sort", "--version"]
    return command(words).stdout.splitlines()[0]


def append_csv(path, row):
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def summary(asked, facts, rows):
    lines = [
        f"## Sorting {gb(asked.data_bytes)} ({asked.records:,} records of {RECORD_BYTES} bytes) "
        f"in {asked.memory / GIB:.1f} GiB, {asked.rounds} rounds",
        "",
        facts_line(facts),
        "",
        "median (min - max); GB are 10^9 bytes; own memory without mapped files; own bytes are the process's, "
        "device bytes everybody's",
        "",
        "| | wall s | CPU s | own memory GB | own read + written GB | device read + written GB |",
        "|---|---|---|---|---|---|",
    ]
    of = {name: [row for row in rows if row["contestant"] == name] for name in asked.contestants}
    for name, runs in of.items():
        def spread(column, scale=1.0):
            values = [row[column] / scale for row in runs if row[column] is not None]
            if not values:
                return "-"
            return f"{statistics.median(values):.1f} ({min(values):.1f} - {max(values):.1f})"

        lines.append(f"| {name} | {spread('wall_s')} | {spread('cpu_s')} | {spread('peak_anon_bytes', 1e9)} "
                     f"| {spread('own_read_bytes', 1e9)} + {spread('own_written_bytes', 1e9)} "
                     f"| {spread('device_read_bytes', 1e9)} + {spread('device_written_bytes', 1e9)} |")
    if "sortmill" in of:
        lines += ["", *rounds_table(of)]
    return "\n".join(lines)


def rounds_table(of):
    """Each round's ratios: to the floor measured around it, and of each rival to sortmill."""
    rivals = [name for name in of if name != "sortmill"]
    heads = ["round", "sortmill s", "fio read + write MB/s", "F s", "sortmill / F", "F kept s", "sortmill / F kept"]
    heads += [f"{name} / sortmill" for name in rivals]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    ratios = []
    for index, ours in enumerate(of["sortmill"]):
        ratio = [ours["wall_s"] / ours["floor_s"], ours["wall_s"] / ours["floor_kept_s"]]
        ratio += [of[name][index]["wall_s"] / ours["wall_s"] for name in rivals]
        ratios.append(ratio)
        read, write = ((ours[f"fio_{way}_before"] + ours[f"fio_{way}_after"]) / 2e6 for way in ("read", "write"))
        cells = [str(ours["round"]), f"{ours['wall_s']:.1f}", f"{read:.0f} + {write:.0f}", f"{ours['floor_s']:.1f}",
                 f"{ratio[0]:.2f}", f"{ours['floor_kept_s']:.1f}", *(f"{value:.2f}" for value in ratio[1:])]
        lines.append("| " + " | ".join(cells) + " |")
    median = [f"{statistics.median(column):.2f}" for column in zip(*ratios)]
    lines.append("| median | | | | " + " | ".join([median[0], "", *median[1:]]) + " |")
    return lines


def facts_line(facts):
    return (f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_total_bytes'] / GIB:.1f} GiB, "
            f"Linux {facts['kernel']}, {facts['file_system']}; commit {facts['commit']}, {facts['date']}; "
            f"{facts['versions']}")


def gb(byte_count):
    return f"{byte_count / 1e9:.1f} GB"


def command(words):
    """Runs `words`; its failure ends the benchmark with what it said."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        fail(f"{words[0]} cannot be started: {error.strerror}")
    if done.returncode != 0:
        fail(f"{' '.join(words)} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    return done


def say(words):
    print(f"bench: {words}", file=sys.stderr, flush=True)


def fail(words):
    print(f"bench: {words}", file=sys.stderr, flush=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
