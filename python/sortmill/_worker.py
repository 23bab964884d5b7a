"""A worker process: `sortmill._pool.start` runs `main` here."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from typing import Any

import cloudpickle

from . import _sortmill


def main(memory: int) -> None:
    """Calls functions until nobody asks any more."""
    # Ctrl-C is for the process that started this one, which ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _sortmill.serve(memory)
    sys.stdout.flush()
    sys.stderr.flush()


def close_stdin() -> None:
    """Functions that read standard input find nothing there, not what is said between processes."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def load(payload: bytes) -> list[Any]:
    """The functions that the other process pickled."""
    functions: list[Any] = pickle.loads(payload)
    return functions


def packed(kind: str, cause: str, raised: BaseException | None) -> bytes:
    """A failure, for the other process."""
    if raised is None:
        return pickle.dumps((kind, cause, None, ""))
    text = "".join(traceback.format_exception(raised))
    try:
        raised.__traceback__ = None
        inner = cloudpickle.dumps(raised)
        pickle.loads(inner)
    except Exception:
        inner = cloudpickle.dumps(RuntimeError(cause))
    return pickle.dumps((kind, cause, inner, text))
