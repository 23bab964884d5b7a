"""A case: its input, each contestant's better setting, and rounds of everybody until the disk was steady."""

import shutil

import contestants
import results
from data import Data, checksum_of, generate
from disk import Fio, columns_of, fio_beside
from measure import RUN_SECONDS_MAX
from run import Run
from scale import is_reduced, memories, names_of, record_count
from shell import ROOT, fail, say

TUNING_PART = 4


def run_case(asked, case, facts, missing, disk):
    """Every round that is not in the case's file yet; returns the file, or None where there is nothing to run."""
    names = [name for name in names_of(asked, case) if not (name.startswith("until-") and missing[name])]
    if len(names) < 2 and len(case.contestants) > len(names) and not asked.contestants:
        say(f"{case.name} is left out: nobody but {', '.join(names)} can take part")
        return None
    return Rounds(asked, case, facts, missing, disk, names).run()


class Rounds:
    def __init__(self, asked, case, facts, missing, disk, names):
        self.asked, self.case, self.missing, self.disk, self.names = asked, case, missing, disk, names
        self.facts = facts | {"case": case.name, "records": record_count(asked, case)}
        self.path = results_path(asked, case, facts)

    def run(self):
        settings = {name: self.better_setting(name) for name in self.names if not self.missing[name]}
        data = self.input()
        for round_number in range(1, self.asked.rounds + 1):
            for memory in memories(self.asked, self.case):
                self.round(round_number, memory, settings, data)
        # Last: what fio writes in its time keeps the host of a virtual disk busy for half a minute.
        self.two_opinions()
        return self.path

    def round(self, round_number, memory, settings, data):
        """Attempts until the disk was steady, or there have been enough."""
        while True:
            rows = self.rows()
            tries = results.attempts(rows, memory, round_number, self.names)
            if results.is_finished(tries, self.asked.repeats):
                return
            if tries:
                say(f"round {round_number} again: the disk drifted by {100 * results.drift(tries[-1]):.0f} %")
            begun = [row["attempt"] for row in rows if (row["memory_bytes"], row["round"]) == (memory, round_number)]
            marks = {"round": round_number, "attempt": 1 + max(begun, default=0), "memory_bytes": memory,
                     "data_bytes": data.byte_count}
            for name in self.names if round_number % 2 else self.names[::-1]:
                if reason := self.missing[name] or failed_before(rows, name):
                    row = {"failure": reason}
                else:
                    row = self.one(name, settings[name], memory, data, self.disk).row
                self.keep(marks | {"contestant": name, "setting": settings.get(name)} | row)

    def one(self, name, setting, memory, data, disk):
        done = Run(self.asked, self.case, name, setting, memory, data)
        done.run(disk, self.facts["clock_hz"])
        if done.report:
            results.append_report(self.path, done.report)
        return done

    def better_setting(self, name):
        """The faster of two on a quarter of the data, each run twice in turned order; None where there is no choice."""
        choices = contestants.ALL[name].settings.get((self.case.data, self.case.order), ())
        if not choices:
            return None
        known = self.tuning_rows(name)
        if len(known) < 2 * len(choices):
            count = max(1, record_count(self.asked, self.case) // TUNING_PART)
            memory = max(contestants.ALL[name].memory_bytes_min, memories(self.asked, self.case)[0] // TUNING_PART)
            data = generate(self.case, count, self.asked.folder / "tuning")
            marks = {"round": 0, "attempt": 1, "contestant": name, "records": count, "memory_bytes": memory,
                     "data_bytes": data.byte_count}
            for setting in [*choices, *choices[::-1]][len(known):]:
                self.keep(marks | {"setting": setting} | self.one(name, setting, memory, data, None).row)
            shutil.rmtree(data.path.parent)
            known = self.tuning_rows(name)
        seconds = {setting: sum(RUN_SECONDS_MAX if row["failure"] else row["wall_s"]
                                for row in known if row["setting"] == setting) for setting in choices}
        best = min(choices, key=seconds.get)
        say(f"{name} runs with {best}, of " + ", ".join(f"{one} {seconds[one] / 2:.1f} s" for one in choices))
        return best

    def tuning_rows(self, name):
        return [row for row in self.rows() if (row["round"], row["contestant"]) == (0, name)]

    def input(self):
        """The one large input, made anew where the last case's was another."""
        count = record_count(self.asked, self.case)
        path = self.asked.folder / f"in.{self.case.data}"
        if path.exists() and path.stat().st_size == count * self.case.record_bytes:
            return Data(path, checksum_of(self.case, [path]), count * self.case.record_bytes)
        for old in self.asked.folder.glob("in.*"):
            old.unlink()
        return generate(self.case, count, self.asked.folder)

    def two_opinions(self):
        """What both tools say of the disk, one after the other, once a case."""
        if self.tuning_rows(Fio.name):
            return
        for tool in {self.disk.name: self.disk, Fio.name: fio_beside(self.disk)}.values():
            rates = tool.rates()
            say(f"{tool.name}: MB/s alone {rates.read_alone / 1e6:.0f} read, {rates.write_alone / 1e6:.0f} written, "
                f"at once {rates.mixed_read / 1e6:.0f} + {rates.mixed_write / 1e6:.0f}")
            self.keep({"round": 0, "attempt": 1, "contestant": tool.name, "disk_tool": tool.name}
                      | columns_of(rates, "before"))
            if tool is not self.disk:
                tool.remove()

    def rows(self):
        return results.read(self.path) if self.path.exists() else []

    def keep(self, row):
        name = row["contestant"]
        version = contestants.version(name) if name in contestants.ALL and not self.missing[name] else None
        results.append(self.path, self.facts | {"version": version} | row)


def results_path(asked, case, facts):
    folder = results.REDUCED_RUNS if is_reduced(asked, case) else results.RUNS
    if asked.resume:
        of_this_commit = sorted(folder.glob(f"*-{facts['commit']}-{case.name}.csv"))
        if of_this_commit:
            return of_this_commit[-1]
    path = folder / f"{facts['date']}-{facts['commit']}-{case.name}.csv"
    if path.exists() and not asked.resume:
        if not is_reduced(asked, case):
            fail(f"{path.relative_to(ROOT)} is there already\n\nGo on with --resume, or delete it.")
        path.unlink()
        path.with_suffix(".reports.jsonl").unlink(missing_ok=True)
    return path


def failed_before(rows, name):
    """A peer that failed once is not waited for again, at no memory size."""
    failures = [row["failure"] for row in rows if row["contestant"] == name and row["round"] > 0 and row["failure"]]
    return failures[0] if failures else None
