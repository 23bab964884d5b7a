"""A worker process: `sortmill._server` runs `main` here, in a fork of itself or in a process of its own."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import traceback
from typing import Any

import cloudpickle

from . import _sortmill


def main(memory: list[int], is_forked: bool) -> None:
    """Calls functions until nobody asks any more."""
    # Ctrl-C is for the process that started the pool, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given, made = memory
    _sortmill.serve((given, made), is_forked)
    sys.stdout.flush()
    sys.stderr.flush()


def close_stdin() -> None:
    """Functions that read standard input find nothing there, not what is said between processes."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def refuse(stream: int, error: OSError) -> None:
    """Tells whoever waits for a worker process that there is none: a failure, and the system's error as its number."""
    os.write(stream, struct.pack("<7Q", 1, 0, error.errno or 0, 0, 0, 0, 0))


def load(payload: bytes) -> list[Any]:
    """The functions that the other process pickled."""
    functions: list[Any] = pickle.loads(payload)
    return functions


def packed(kind: str, cause: str, hint: str | None, raised: BaseException | None) -> bytes:
    """A failure, for the other process."""
    if raised is None:
        return pickle.dumps((kind, cause, hint, None, ""))
    text = "".join(traceback.format_exception(raised))
    try:
        raised.__traceback__ = None
        inner = cloudpickle.dumps(raised)
        pickle.loads(inner)
    except Exception:
        inner = cloudpickle.dumps(RuntimeError(cause))
    return pickle.dumps((kind, cause, hint, inner, text))
