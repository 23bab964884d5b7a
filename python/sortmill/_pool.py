"""Worker processes, on the side of the process that starts them: what goes there as Python objects, and what comes back."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import cloudpickle

from ._errors import UsageError

_HINT = "What a function uses goes to worker processes by cloudpickle; run(processes=0) calls it in this process."


class WorkerTraceback(Exception):
    """Where an exception was raised in a worker process, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n\n{self.text.rstrip()}"


def pickled(functions: list[Any]) -> bytes:
    """The functions, for other processes."""
    try:
        return bytes(cloudpickle.dumps(functions))
    except Exception as error:
        cause = f"a function cannot be handed to a worker process: {error}"
        raise UsageError(f"{cause}\n\n{_HINT}", cause=cause, hint=_HINT) from error


def start(stream: int, memory: int) -> subprocess.Popen[bytes]:
    """Starts a worker process, with its end of a socket as its standard input, and shared memory."""
    # It finds the modules that this process finds; `__main__` goes by value.
    words = f"import sys; sys.path[:] = {sys.path!r}; from sortmill._worker import main; main({memory})"
    return subprocess.Popen([sys.executable, "-c", words], stdin=stream, pass_fds=[memory])


def end(process: subprocess.Popen[bytes], patience_s: float) -> str:
    """Waits for its end, and kills it when that takes too long. Says how it ended."""
    try:
        code = process.wait(patience_s) if patience_s > 0 else process.poll()
    except subprocess.TimeoutExpired:
        code = None
    if code is None:
        process.kill()
        code = process.wait()
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def failure(packed: bytes) -> tuple[str, str, BaseException | None]:
    """Who must act, why, and what was raised, with where it was raised in the other process as its cause."""
    kind, cause, raised, text = pickle.loads(packed)
    error: BaseException | None = None
    if raised is not None:
        try:
            error = pickle.loads(raised)
        except Exception:
            error = RuntimeError(cause)
        error.__cause__ = WorkerTraceback(text)
    return kind, cause, error
