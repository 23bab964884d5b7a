"""One run of one contestant: from a cold page cache to a synced output, counted from outside."""

import mmap
import multiprocessing
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from memory_group import MemoryGroup
from shell import GIB, command, say

RUN_SECONDS_MAX = 3600
CGROUP_SPARE_BYTES = 2 * GIB


def drop_caches():
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
        return True
    except OSError:
        return False


def warm_memory(byte_count):
    """Touches so much memory, or what is free of it, and gives it back; returns how much.

    The host of a virtual machine may take free memory away within seconds, and to get it again can cost whoever
    touches it first 4 s per GiB, which says nothing about any of the programs.
    """
    byte_count = min(byte_count, available_bytes() - GIB)
    if byte_count < mmap.PAGESIZE:
        return 0
    cores = os.cpu_count() or 1
    fork = multiprocessing.get_context("fork")
    all_touched = fork.Barrier(cores)
    touchers = [fork.Process(target=touch, args=(byte_count // cores, all_touched)) for _ in range(cores)]
    for toucher in touchers:
        toucher.start()
    for toucher in touchers:
        toucher.join()
    return byte_count


def touch(byte_count, all_touched):
    """Holds what it touched until all have touched theirs, or one would be given what another gave back."""
    with mmap.mmap(-1, byte_count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory[:: mmap.PAGESIZE] = b"1" * len(range(0, byte_count, mmap.PAGESIZE))
        all_touched.wait()


def available_bytes():
    kib = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(kib.group(1)) * 1024


def measure(words, memory_bytes, folder, log, spare_bytes=CGROUP_SPARE_BYTES):
    """Runs `words` in a cgroup of the limit and `spare_bytes`, and returns time, CPU, memory and bytes, named as in
    results.py."""
    group = MemoryGroup(memory_bytes + spare_bytes)
    device_before = device_bytes(folder)
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
                    say(f"{words[0]} did not end within {RUN_SECONDS_MAX} s")
                    os.killpg(process.pid, signal.SIGKILL)
                peak_anon = max(peak_anon, sum(map(anonymous_bytes, group.process_ids() or [process.pid])))
                time.sleep(0.02)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            group.delete()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        command(["sync", "-f", folder])
        wall = time.monotonic() - start
    end_stragglers(group)
    device_after = device_bytes(folder)
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


def end_stragglers(group):
    """What a failed contestant left running would go on using the disk in the next one's time."""
    for process_id in group.process_ids():
        say(f"ending process {process_id}, which the contestant left behind")
        try:
            os.kill(process_id, signal.SIGKILL)
        except ProcessLookupError:
            pass


def anonymous_bytes(process_id):
    """The process's own memory: what it maps of files is the kernel's to take back."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
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
