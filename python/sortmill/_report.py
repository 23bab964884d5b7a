"""What a job did."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from ._drawn import Drawing, drawn


class Report:
    """The report of a job: `print` it, or read it as data (docs/report.md has every field)."""

    def __init__(self, text: str, summary: str, did: str = "{}") -> None:
        self._text = text
        done: dict[str, Any] = json.loads(did)
        self.functions: list[dict[str, Any]] = done.get("functions", [])
        """What each function of yours did, for each output that it has a part in: `verb`, `name`, `calls`, `records_in`, `records_out`,
        `busy_ns`, its own `counters`; `id` is the same for all outputs."""
        self.counters: dict[str, int] = done.get("counters", {})
        """What functions counted (`sortmill.counter`), summed over all functions. One in front of several outputs is called anew for
        each; it is counted once, for the first of them."""
        self.processes: dict[str, Any] = done.get("processes", {"count": 0})
        """The processes that functions ran in: `count`, 0 for this one, in so many `threads` at once; how many were `started`,
        `forked` from one that has imported what they begin with, and `died`; `resident_bytes_peak` of each,
        `server_bytes_peak` of that one."""
        self._records: tuple[int, int] | None = None
        self.summary: str = summary
        """A few lines for people."""
        data: dict[str, Any] = json.loads(text)
        self.phases: list[dict[str, Any]] = data.get("phases", []) if "version" not in data else [
            {"name": "sort", "report": data}
        ]
        """Name and report of each phase, in order. A job that only sorts has one."""
        self.observed: dict[str, Any] = data.get("observed", {})
        """What `Table.observe` was to observe. A float that is no number is `None`."""

    @classmethod
    def joined(cls, reports: Sequence[tuple[str, str, str]], read: Sequence[int]) -> Report:
        """That of several jobs, one after the other: what functions did in all of them, in the most processes of one. Jobs of the
        same number in `read` read the same."""
        if len(reports) == 1:
            return cls(*reports[0])
        told: list[dict[str, Any]] = [json.loads(text) for text, _, _ in reports]
        phases = [phase for one in told for phase in one["phases"]]
        observed = {name: value for one in told for name, value in one.get("observed", {}).items()}
        summary = "".join(summary for _, summary, _ in reports)
        done: list[dict[str, Any]] = [json.loads(did) for _, _, did in reports]
        counters: dict[str, int] = {}
        processes: dict[str, Any] = {"count": 0}
        for one in done:
            for name, value in one["processes"].items():
                is_sum = name in ("started", "forked", "died", "wait_ns")
                before = processes.get(name) or 0
                processes[name] = before + value if is_sum else max(before, value or 0) or value
        functions = [function for one in done for function in one["functions"]]
        first = {function["id"]: function for function in reversed(functions)}
        for function in reversed(first.values()):
            for name, count in function["counters"].items():
                counters[name] = counters.get(name, 0) + count
        did = {"functions": functions, "counters": counters, "processes": processes}
        joined = cls(json.dumps({"phases": phases, "observed": observed}), summary, json.dumps(did))
        each = [cls(*one) for one in reports]
        came = {number: one.records_in for number, one in zip(read, each)}
        joined._records = sum(came.values()), sum(one.records_out for one in each)
        return joined

    @property
    def records_in(self) -> int:
        """Records that were read; of a table that several outputs are made from, once."""
        return self._records[0] if self._records else int(self.phases[0]["report"]["fingerprints"]["input"]["records"])

    @property
    def records_out(self) -> int:
        """Records that were written, to all outputs together."""
        return self._records[1] if self._records else int(self.phases[-1]["report"]["fingerprints"]["written"]["records"])

    def to_json(self) -> str:
        """All of it."""
        return self._text

    def plot(self, path: str | os.PathLike[str] | None = None) -> Drawing:
        """Draws it: what it says, and for each phase how long its stages worked, waited for a device, and for one another.

        A notebook shows the drawing as it shows the report. With a `path` that ends in `.html` it is saved there, too.
        """
        drawing = Drawing(self._repr_html_())
        if path is not None:
            drawing.save(path)
        return drawing

    def __str__(self) -> str:
        return self.summary.rstrip("\n") + self._functions_in_words()

    def _functions_in_words(self) -> str:
        if not self.functions:
            return ""
        count, threads = self.processes["count"], self._threads
        here = "in this process, one at a time" if threads == 1 else f"in {threads} threads of this process"
        where = f"in {count} processes" if count else here
        lines = [f"functions of Python, {where}"]
        for one in self.functions:
            seconds = one["busy_ns"] / 1e9
            lines.append(
                f"  {one['verb']} {one['name']}: {one['records_in']} records in, {one['records_out']} out, "
                f"{one['calls']} batches, {seconds:.1f} s"
            )
        for name, sum_of in self.counters.items():
            lines.append(f"  counted {name}: {sum_of}")
        if count:
            peak = self.processes["resident_bytes_peak"] / 2**20
            lines.append(f"  each process had at most {peak:.1f} MiB in use; {self.processes['died']} died")
        share = self.function_share
        if share > 0.5:
            lines.append(f"  they are what the pipeline waited for: they worked {share:.0%} of the time")
        return "\n" + "\n".join(lines)

    def _repr_html_(self) -> str:
        return drawn(str(self), self.phases)

    @property
    def function_share(self) -> float:
        """What part of the time, from 0 to 1, functions of yours worked in each of their processes or threads, as far as the engine
        has threads that ask them, each one at a time.
        """
        busy_ns = sum(int(one["busy_ns"]) for one in self.functions)
        wall_ns = sum(int(phase["report"]["wall_ns"]) for phase in self.phases)
        asking = max((int(phase["report"]["plan"]["worker_count"]) for phase in self.phases), default=1)
        count = min(int(self.processes["count"]) or self._threads, asking)
        return min(1.0, busy_ns / max(1, wall_ns * count))

    @property
    def _threads(self) -> int:
        return int(self.processes.get("threads", 1))

    def __repr__(self) -> str:
        return f"<sortmill.Report: {self.records_in} records in, {self.records_out} out>"
