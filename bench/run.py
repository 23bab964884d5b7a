"""One contestant once: its run, the disk's rates around it if it is ours, its output checked and deleted."""

import json
import os
import shutil

import contestants
from data import checked
from disk import columns_of
from floor import Budget, floor
from machine import now
from measure import drop_caches, measure, warm_memory
from shell import GIB, fail, gb, say


class Run:
    """`row` holds what is known of it, named as in results.py; `report` our own account of it."""

    def __init__(self, asked, case, name, setting, memory_bytes, data):
        self.case, self.name, self.setting, self.data = case, name, setting, data
        self.memory_bytes, self.cores, self.folder = memory_bytes, asked.cores, asked.folder
        self.output, self.temp, self.log = (self.folder / part for part in ("out", "temp", "log"))
        self.row, self.report = {}, None

    def run(self, disk, clock_hz):
        self.temp.mkdir()
        takes_rates = disk is not None and self.name == "sortmill"
        # Data cold, program warm: its own files come into the cache after everything has left it.
        is_cold = drop_caches()
        contestants.warm_program(self.name)
        before = disk.rates_around() if takes_rates else None
        # Nobody needs much more than the data, whatever the limit.
        warm_bytes = warm_memory(min(self.memory_bytes, self.data.byte_count * 11 // 10) + GIB)
        started = now()
        words = contestants.command_of(self.name, self.setting, self.case, self.memory_bytes, self.cores,
                                       self.data.path, self.output, self.temp)
        self.row = {"started": started, "caches_dropped": is_cold, "memory_warm_bytes": warm_bytes,
                    "checksum": self.data.checksum}
        self.row |= measure(words, self.memory_bytes, self.folder, self.log)
        if takes_rates:
            self.row |= self.floor_columns(before, disk.rates_around(), clock_hz) | {"disk_tool": disk.name}

        self.row["failure"] = self.why_failed()
        if self.row["failure"] and contestants.is_ours(self.name):
            fail(f"{self.name}: {self.row['failure']}")
        if self.name == "sortmill":
            self.take_report()
        self.clean_up()
        say(f"{self.case.name}, {gb(self.memory_bytes)} of memory: {self.name} {self.row['failure'] or self.words()}")

    def floor_columns(self, before, after, clock_hz):
        record_count = self.data.byte_count // self.case.record_bytes
        budget = Budget.of(self.case.budget, record_count, self.cores, clock_hz)

        def least(rates, synced=None):
            return floor(self.data.byte_count, self.memory_bytes, rates, budget, synced)

        best = before.best(after)
        found = {
            "floor_s": round(least(best.rates).total_s, 3),
            "floor_distribute_s": round(least(best.rates).distribute_s, 3),
            "floor_sort_s": round(least(best.rates).sort_s, 3),
            "drift": round(before.rates.drift(after.rates), 4),
        } | columns_of(before.rates, "before") | columns_of(after.rates, "after")
        if best.memory:
            found |= {"floor_memory_s": round(least(best.memory).total_s, 3)}
            found |= columns_of(before.memory, "memory_before") | columns_of(after.memory, "memory_after")
        if best.synced:
            found |= {"floor_synced_s": round(least(best.rates, best.synced).total_s, 3),
                      "synced_before": round(before.synced), "synced_after": round(after.synced)}
        return found

    def why_failed(self):
        """None where the output is the sorted input; a step that discards has none."""
        if self.row["exit_status"] != 0:
            last = self.log.read_text(errors="replace").strip().splitlines()[-1:]
            return f"exit status {self.row['exit_status']}: {''.join(last)[-300:]}"
        if self.name.startswith("until-"):
            return None
        parts = sorted(self.output.glob("part-*")) if self.output.is_dir() else [self.output]
        is_in_order, checksum = checked(self.case, parts)
        if not is_in_order or checksum != self.data.checksum:
            return f"the output is wrong: in order {is_in_order}, checksum {checksum}, not {self.data.checksum}"
        return None

    def take_report(self):
        """The times of the phases go among the figures, the whole into a file of its own."""
        self.report = json.loads((self.temp / "report.json").read_text())
        self.row |= {f"{phase['name']}_s": round(phase["wall_ns"] / 1e9, 3) for phase in self.report["phases"]}

    def clean_up(self):
        for left in (self.output, self.temp):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        os.sync()

    def words(self):
        row = self.row
        words = f"{row['wall_s']:.1f} s, {row['cpu_s']:.1f} CPU s, {gb(row['peak_anon_bytes'])} of its own memory"
        if row.get("floor_s"):
            words += f", {row['wall_s'] / row['floor_s']:.2f} F, drift {100 * row['drift']:.0f} %"
        return words
