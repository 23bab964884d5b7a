"""Programs as functions of lines, beside the same programs over all lines."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

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


ECHO = """
import sys
import pyarrow as pa

reader = pa.ipc.open_stream(sys.stdin.buffer)
table = reader.read_all()
"""


def program(tmp_path: Path, body: str) -> list[str]:
    """A program that has read a table from its standard input."""
    path = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
    path.write_text(ECHO + body)
    return [sys.executable, str(path)]


def test_a_program_over_batches_of_arrow(tmp_path: Path) -> None:
    """Values of every type that may be missing; several batches come of one, in another order of columns and of other widths."""
    rows: list[dict[str, Any]] = [
        {
            "text": None if number % 7 == 0 else f"ä{number}",
            "raw": bytes([number % 256]),
            "whole": None if number % 5 == 0 else number - 500,
            "real": number / 4,
            "flag": number % 3 == 0,
            "at": datetime(2026, 11, 26, tzinfo=timezone.utc) + timedelta(seconds=number),
        }
        for number in range(3000)
    ]
    columns: dict[str, Any] = {"text": str | None, "raw": bytes, "whole": int | None, "real": float, "flag": bool, "at": datetime}
    twice = program(
        tmp_path,
        """
reversed = table.select(table.column_names[::-1])
narrow = reversed.set_column(reversed.schema.get_field_index("whole"), "whole", reversed["whole"].cast(pa.int16()))
with pa.ipc.new_stream(sys.stdout.buffer, narrow.schema) as writer:
    writer.write_table(narrow)
    writer.write_table(narrow.slice(0, 1))
""",
    )
    job = sm.Pipeline()
    table = job.from_iter(rows, columns).map_command(twice, columns=columns, batch_format="arrow", batch_size=1000, timeout=60)
    assert table.columns == {"text": "string?", "raw": "binary", "whole": "i64?", "real": "f64", "flag": "bool", "at": "timestamp"}
    wanted = [row for start in range(0, 3000, 1000) for row in [*rows[start : start + 1000], rows[start]]]
    assert table.collect(memory="128 MiB", threads=1) == wanted


def test_a_program_that_answers_little_and_in_dictionaries(tmp_path: Path) -> None:
    body = """
words = table["line"].dictionary_encode().slice(0, 2 * (table["line"][0].as_py() == "w0"))
none = words.slice(0, 0)
with pa.ipc.new_stream(sys.stdout.buffer, pa.schema([("word", words.type)])) as writer:
    for column in [none, words, none]:
        writer.write_table(pa.table({"word": column}))
"""
    lines = sm.Pipeline().from_iter([f"w{number % 100}" for number in range(250)], {"line": str})
    made = lines.map_command(program(tmp_path, body), columns={"word": str}, batch_format="arrow", batch_size=100)
    assert [row["word"] for row in made.collect(memory="128 MiB", threads=1)] == ["w0", "w1"] * 3
    bare = "pa.ipc.new_stream(sys.stdout.buffer, table.schema).close()"
    made = lines.map_command(program(tmp_path, bare), columns={"line": str}, batch_format="arrow")
    assert made.collect(memory="128 MiB") == []


def test_a_program_over_batches_that_fails(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{number:03}\n" for number in range(200)))

    def failed(words: list[str], columns: dict[str, Any]) -> sm.Error:
        lines = sm.Pipeline().read_text(tmp_path / "in")
        made = lines.map_command(words, columns=columns, batch_format="arrow", batch_size=100, timeout=60)
        with pytest.raises(sm.FunctionError) as raised:
            made.collect(memory="128 MiB")
        return raised.value

    writes = "pa.ipc.new_stream(sys.stdout.buffer, table.schema).write_table(table)"
    error = failed(program(tmp_path, writes + "\nsys.exit(3 * (table['line'][0].as_py() == '100'))"), {"line": str})
    assert (error.file, error.offset) == (str(tmp_path / "in"), 4 * 100)
    assert "exit code 3" in error.cause
    assert "there is no column word" in failed(program(tmp_path, writes), {"line": str, "word": str}).cause
    assert "there is a column line too many" in failed(program(tmp_path, writes), {"word": str}).cause
    assert "is of type Utf8, which is no i64" in failed(program(tmp_path, writes), {"line": int}).cause
    assert "it wrote nothing" in failed(["true"], {"line": str}).cause
    assert "no stream of Arrow's" in failed(["echo", "some text"], {"line": str}).cause
    stream = "with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as writer:\n    writer.write_table(table)\n"
    assert "something follows the stream" in failed(program(tmp_path, stream + stream), {"line": str}).cause
    assert "something follows the stream" in failed(program(tmp_path, stream + "print('done')"), {"line": str}).cause
    bare = "pa.ipc.new_stream(sys.stdout.buffer, table.schema).close()"
    assert "there is no column word" in failed(program(tmp_path, bare), {"line": str, "word": str}).cause
    large = "table = pa.table({'line': pa.nulls(20_000_000, pa.bool_())})\n" + stream
    assert "more than 64 MiB" in failed(program(tmp_path, large), {"line": bool | None}).cause
    nulls = "made = pa.table({'line': pa.nulls(3, pa.string())})\npa.ipc.new_stream(sys.stdout.buffer, made.schema).write_table(made)"
    assert "column line has a null" in failed(program(tmp_path, nulls), {"line": str}).cause
    lines = sm.Pipeline().read_text(tmp_path / "in")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"batch_format": "csv"}, "it is 'lines' or 'arrow'"),
        ({"batch_format": "arrow"}, "say which columns the program makes"),
        ({"batch_format": "arrow", "columns": {"a": str}, "column": "line"}, "are of lines"),
        ({"columns": {"a": str}}, "batch_format='arrow'"),
    ]
    for asked, cause in refused:
        with pytest.raises(sm.UsageError, match=cause):
            lines.map_command(["cat"], **asked)
    (tmp_path / "in").write_bytes(b"good\nb\xffd\n")
    with pytest.raises(sm.InputError, match="not UTF-8") as raised:
        lines.map_command(["cat"], columns={"line": str}, batch_format="arrow").collect(memory="128 MiB")
    assert raised.value.offset == 5


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
