"""`sort`, the command line, and Ctrl-C, beside coreutils where they can do the same."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest

import sortmill as sm

SCRIPT = Path(sysconfig.get_path("scripts")) / "sortmill"


def gnu(*words: str | Path) -> bytes:
    environment = os.environ | {"LC_ALL": "C"}
    return subprocess.run(["sort", *words], env=environment, check=True, stdout=subprocess.PIPE).stdout


@pytest.fixture
def numbers(tmp_path: Path, draw: random.Random) -> Path:
    for name in ["a.txt", "b.txt"]:
        lines = [f"{draw.randrange(100)} {draw.uniform(-9, 9):.3f} x\n" for _ in range(3000)]
        (tmp_path / name).write_text("".join(lines))
    return tmp_path


def test_sort_is_the_command_line(numbers: Path) -> None:
    files = sorted(numbers.glob("*.txt"))
    report = sm.sort(numbers / "*.txt", numbers / "out", key="-k2,2n", memory="128 MiB")
    assert (numbers / "out").read_bytes() == gnu("-k2,2n", *files)
    assert report.records_in == report.records_out == 6000
    sm.sort(files, numbers / "out", key=["1,1n", "2,2gr"], unique=True, temp=numbers)
    assert (numbers / "out").read_bytes() == gnu("-u", "-k1,1n", "-k2,2gr", *files)
    sm.sort(files, numbers / "out", threads=1, parallel=2, verify=True)
    assert (numbers / "out").read_bytes() == gnu(*files)
    sm.sort(files, numbers / "out", on="local:2", memory="128 MiB")
    assert (numbers / "out").read_bytes() == gnu(*files)


def test_sort_tells_what_it_is_asked_to(numbers: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Reports and traces were taken and never written, and a level without a codec was passed over."""
    file, trace = numbers / "report.json", numbers / "trace.json"
    report = sm.sort(numbers / "a.txt", numbers / "out", memory="64 MiB", report=file, trace=trace)
    assert json.loads(file.read_text()) == json.loads(report.to_json())
    assert json.loads(trace.read_text())
    assert capfd.readouterr() == ("", "")
    sm.sort(numbers / "a.txt", numbers / "out", memory="64 MiB", progress="json", verbose=True)
    said = capfd.readouterr().err
    assert '"done"' in said and "partitions" in said
    for options, why in [({"report": numbers / "a.txt"}, "are one file"), ({"compress_level": 3}, "there is a level")]:
        with pytest.raises(sm.UsageError, match=why):
            sm.sort(numbers / "a.txt", numbers / "out", **options)  # type: ignore[arg-type]
    with pytest.raises(sm.Error, match="writing the report"):
        sm.sort(numbers / "a.txt", numbers / "new", report=numbers / "none" / "report.json")
    assert not (numbers / "new").exists()


def test_the_script_called_sort_is_sort(numbers: Path) -> None:
    """A link of that name to what pip installed read the first of sort's words as the name of a command."""
    link = numbers / "sort"
    link.symlink_to(SCRIPT)
    done = subprocess.run([link, "-k2,2n", numbers / "a.txt"], check=True, capture_output=True, env=os.environ | {"LC_ALL": "C"})
    assert (done.stdout, done.stderr) == (gnu("-k2,2n", numbers / "a.txt"), b"")


def test_what_sort_refuses(numbers: Path) -> None:
    out = numbers / "out"
    with pytest.raises(sm.InputError, match="no file matches"):
        sm.sort(numbers / "*.none", out)
    # It read standard input, which in a job that nobody watches is empty: what was there before was gone.
    out.write_text("old\n")
    with pytest.raises(sm.UsageError, match="there is nothing to sort"):
        sm.sort(sorted(numbers.glob("*.none")), out)
    assert out.read_text() == "old\n"
    sm.sort(numbers.glob("[ab].txt"), out)
    assert out.read_bytes() == gnu(numbers / "a.txt", numbers / "b.txt")
    out.unlink()
    with pytest.raises(sm.UsageError, match="nonsense"):
        sm.sort(numbers / "a.txt", out, nonsense=True)
    with pytest.raises(sm.UsageError, match="say where to"):
        sm.sort(numbers / "a.txt", parts=None)  # type: ignore[arg-type]
    with pytest.raises(sm.UsageError, match="threads= takes"):
        sm.sort(numbers / "a.txt", out, threads=1.5)  # type: ignore[arg-type]
    with pytest.raises(sm.UsageError, match="command line only"):
        sm.sort(numbers / "a.txt", out, dry_run=True)
    with pytest.raises(sm.InputError) as raised:
        sm.sort(numbers / "missing", out)
    assert raised.value.file == str(numbers / "missing")
    assert not out.exists()


def test_options_that_say_no_and_options_that_are_none(numbers: Path) -> None:
    """`False` and `None` were passed over whatever they were of, `True` took the next option for its value, and a number that of a
    switch was the name of an input."""
    out = numbers / "out"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"ascending": False}, "no option ascending=: reverse=True"), ({"nonsense": None}, "no option nonsense="),
        ({"report": True, "reverse": True}, "report= takes a value"), ({"header": True}, "header= takes a value"),
        ({"unique": 1}, "unique= is True or False"), ({"unique": "yes"}, "unique= is True or False"),
        ({"key": 2}, "a key is as on the command line"), ({"key": (0, 10)}, "a key is as on the command line"),
    ]
    for options, why in wrong:
        with pytest.raises(sm.UsageError, match=why):
            sm.sort(numbers / "a.txt", out, **options)
    assert sorted(path.name for path in numbers.iterdir()) == ["a.txt", "b.txt"]
    packed = numbers / "c.gz"
    packed.write_bytes(gzip.compress(b"b\na\n", mtime=0))
    sm.sort(packed, out)
    assert out.read_bytes() == b"a\nb\n"
    sm.sort(packed, out, decompress=False, verify=False, progress=False)
    assert out.read_bytes() == gnu(packed)
    sm.sort(numbers / "a.txt", out, header=1, temp=[numbers], field_separator=" ", key=["2,2g"])
    head, rest = (numbers / "a.txt").read_bytes().split(b"\n", 1)
    (numbers / "rest").write_bytes(rest)
    assert out.read_bytes() == head + b"\n" + gnu("-t ", "-k2,2g", numbers / "rest")


def test_a_name_that_looks_like_a_pattern(tmp_path: Path) -> None:
    """It was one, so that in a list of all names a file was read twice."""
    for name in ["a*", "ab"]:
        (tmp_path / name).write_text(name + "\n")
    names = sorted(tmp_path.iterdir())
    assert sm.Pipeline().read_text(names).collect() == [{"line": "a*"}, {"line": "ab"}]
    sm.sort(tmp_path / "a*", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "a*\n"


def test_the_command_line(numbers: Path) -> None:
    for command in [[str(SCRIPT)], [sys.executable, "-m", "sortmill"]]:
        version = subprocess.run([*command, "--version"], check=True, stdout=subprocess.PIPE)
        assert version.stdout.decode() == f"sortmill {sm.__version__}\n"
        with (numbers / "a.txt").open("rb") as file:
            words = [*command, "sort", "-k2,2n"]
            done = subprocess.run(words, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        assert done.stdout == gnu("-k2,2n", numbers / "a.txt")
        refused = subprocess.run([*command, "sort", "--nonsense"], stderr=subprocess.PIPE)
        assert refused.returncode == 2
        missing = subprocess.run([*command, "sort", numbers / "missing"], stderr=subprocess.PIPE)
        assert missing.returncode == 2 and b"missing" in missing.stderr


WAITS = """
import sys
import sortmill as sm

job = sm.Pipeline()
lines = job.read_text(sys.argv[1])
lines.filter(lambda record: True).sort("line").write_text(sys.argv[2])
print("begins", flush=True)
try:
    job.run(memory="128 MiB", temp=sys.argv[3])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(3)
"""


def test_ctrl_c_ends_a_job_cleanly(tmp_path: Path) -> None:
    """The job waits for a pipe that stays open."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "temp").mkdir()
    words = [sys.executable, "-c", WAITS, str(tmp_path / "pipe"), str(tmp_path / "out"), str(tmp_path / "temp")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
            assert program.stdout.readline() == b"begins\n"
            pipe.write(b"b\na\n" * 1000)
            began = time.monotonic()
            program.send_signal(signal.SIGINT)
            assert program.stdout.readline() == b"interrupted\n"
            assert program.wait(timeout=20) == 3
            assert time.monotonic() - began < 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", "temp"]
    assert not list((tmp_path / "temp").iterdir())


def test_what_the_caller_ignores_the_command_ignores(tmp_path: Path) -> None:
    """In the background of a script Ctrl-C is not meant for it."""
    words = [sys.executable, "-m", "sortmill", "sort", "-q", "-T", str(tmp_path), "-o", str(tmp_path / "out")]
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *words]
    with subprocess.Popen(ignoring, stdin=subprocess.PIPE) as program:
        assert program.stdin is not None
        while not list(tmp_path.glob(".out.sortmill-*")):
            assert program.poll() is None
            time.sleep(0.02)
        program.send_signal(signal.SIGINT)
        program.stdin.write(b"b\na\n")
        program.stdin.close()
        assert program.wait(timeout=20) == 0
    assert (tmp_path / "out").read_bytes() == b"a\nb\n"


def test_a_signal_ends_the_command_as_it_ends_a_process(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sortmill", "sort", "-q", "-T", str(tmp_path), "-o", str(tmp_path / "out")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        while not list(tmp_path.glob(".out.sortmill-*")):
            assert program.poll() is None
            time.sleep(0.02)
        program.send_signal(signal.SIGTERM)
        _, told = program.communicate(timeout=20)
        assert program.returncode == -signal.SIGTERM
        assert b"told to stop" in told
    assert not list(tmp_path.iterdir())


def test_what_an_error_quotes_stays_as_it_is(tmp_path: Path) -> None:
    """Options become parameters in what a request is told; data, and names of files, are nobody's options."""
    (tmp_path / "in").write_text("n\n1\n--memory\n")
    with pytest.raises(sm.InputError) as told:
        sm.sort(tmp_path / "in", tmp_path / "out", format="csv", by="n:num")
    assert "--memory" in told.value.cause and "--memory" in str(told.value)
