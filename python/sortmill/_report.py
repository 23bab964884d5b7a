"""What a job did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


class Report:
    """The report of a job: `print` it, or read it as data (docs/report.md has every field)."""

    def __init__(self, text: str, summary: str) -> None:
        self._text = text
        self.summary: str = summary
        """A few lines for people."""
        data: dict[str, Any] = json.loads(text)
        self.phases: list[dict[str, Any]] = data.get("phases", []) if "version" not in data else [
            {"name": "sort", "report": data}
        ]
        """Name and report of each phase, in order. A job that only sorts has one."""

    @classmethod
    def joined(cls, reports: Sequence[tuple[str, str]]) -> Report:
        """That of several jobs, one after the other."""
        if len(reports) == 1:
            return cls(*reports[0])
        phases = [phase for text, _ in reports for phase in json.loads(text)["phases"]]
        return cls(json.dumps({"phases": phases}), "".join(summary for _, summary in reports))

    @property
    def records_in(self) -> int:
        """Records that were read."""
        return int(self.phases[0]["report"]["fingerprints"]["input"]["records"])

    @property
    def records_out(self) -> int:
        """Records that were written."""
        return int(self.phases[-1]["report"]["fingerprints"]["written"]["records"])

    def to_json(self) -> str:
        """All of it."""
        return self._text

    def __str__(self) -> str:
        return self.summary.rstrip("\n")

    def __repr__(self) -> str:
        return f"<sortmill.Report: {self.records_in} records in, {self.records_out} out>"
