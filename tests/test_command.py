"""Programs as functions of lines, beside the same programs over all lines."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sortmill as sm
from conftest import Text
from test_functions import is_running


def test_a_program_over_lines(text: Text, tmp_path: Path) -> None:
    words = ["sed", "s/w/W/g; p"]
    job = sm.Pipeline()
    table = job.read_text(text.pattern).map_command(words, batch_size=700, name="made")
    assert table.columns == {"made": "string"}
    table.write_text(tmp_path / "out")
    job.run(memory="128 MiB")
    whole = subprocess.run(words, input="\n".join(text.lines) + "\n", capture_output=True, text=True, check=True)
    assert (tmp_path / "out").read_text() == whole.stdout
    # One that makes a few lines of many, in front of a verb that brings together.
    counted = job_of(text).map_command(["sh", "-c", "wc -l"], batch_size=500)
    lengths = counted.map(lambda record: int(record["line"]), columns={"n": int})
    made = sum(record["n"] for record in batches(lengths))
    assert made == len(text.lines)


def job_of(text: Text) -> sm.Table:
    return sm.Pipeline().read_text(text.pattern)


def batches(table: sm.Table) -> list[dict[str, int]]:
    import pyarrow as pa

    rows: list[dict[str, int]] = pa.table(table.collect_arrow(memory="128 MiB", processes=0)).to_pylist()
    return rows


def test_a_program_that_fails(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{number:03}\n" for number in range(1000)))

    def failed(words: list[str], timeout: float | None = None) -> sm.Error:
        job = sm.Pipeline()
        job.read_text(tmp_path / "in").map_command(words, batch_size=100, timeout=timeout).write_text(tmp_path / "out")
        with pytest.raises(sm.FunctionError) as raised:
            job.run(memory="128 MiB", temp=tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
        return raised.value

    error = failed(["sh", "-c", "if grep -q 250; then echo no good >&2; exit 4; fi"])
    # Of its batch's first line.
    assert (error.file, error.offset) == (str(tmp_path / "in"), 4 * 200)
    assert "exit code 4; it said last: no good" in error.cause
    assert "signal 15" in failed(["sh", "-c", "kill -15 $$"]).cause
    assert "timeout" in failed(["sleep", "1000"], timeout=0.1).cause
    assert "more than 64 MiB" in failed(["yes"]).cause
    assert "/no/such" in failed(["/no/such"]).cause
    with pytest.raises(sm.UsageError, match="no program"):
        sm.Pipeline().read_text(tmp_path / "in").map_command([])
    with pytest.raises(sm.UsageError, match="no column other"):
        sm.Pipeline().read_text(tmp_path / "in").map_command(["cat"], column="other")


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_no_program_outlives_the_job(tmp_path: Path, how: str) -> None:
    (tmp_path / "in").write_text("line\n")
    program = f"""
import sortmill as sm

job = sm.Pipeline()
words = ["sh", "-c", "echo $$ >> {tmp_path}/pids; exec sleep 1000"]
job.read_text("{tmp_path}/in").map_command(words).write_text("{tmp_path}/out")
job.run(memory="128 MiB", temp="{tmp_path}")
"""
    child = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    pids = tmp_path / "pids"
    while not (pids.exists() and pids.read_text().endswith("\n")):
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(getattr(signal, how))
    child.communicate()
    for pid in pids.read_text().split():
        while is_running(int(pid)):
            time.sleep(0.02)
    assert not (tmp_path / "out").exists()
