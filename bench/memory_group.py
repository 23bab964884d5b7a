"""A memory cgroup (version 1 or 2) below our own, or nothing where we may not make one."""

import os
import time
from pathlib import Path

from shell import say


class MemoryGroup:
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

    def process_ids(self):
        """Of everything that runs in it, so that a program's children count as well."""
        try:
            return [int(line) for line in (self.folder / "cgroup.procs").read_text().split()] if self.folder else []
        except OSError:
            return []

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
