"""Worker processes, on the side of the process that starts them: what goes there as Python objects, and what comes back."""

from __future__ import annotations

import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any

import cloudpickle

from . import _server
from ._errors import UsageError
from ._functions import Batches

_HINT = "What a function uses goes to worker processes by cloudpickle; run(processes=0) calls it in this process."
_PATIENCE_S = 5.0
# The server answers at once, unless the machine has no time for it at all.
_ANSWER_S = 60.0


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


def imports(functions: list[Any]) -> list[str]:
    """What is imported before the first function is called: what stands between the engine's batches and functions of them."""
    formats = {function.batch_format for _, function, *_ in functions if isinstance(function, Batches)}
    return (["pyarrow"] if formats else []) + (["pandas"] if "pandas" in formats else [])


class Server:
    """The process that starts worker processes (`_server.py`). Where it has died another one takes its place."""

    def __init__(self, imports: list[str]) -> None:
        self._imports = imports
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        # It finds the modules that this process finds; `__main__` goes by value.
        path = [entry for entry in sys.path if isinstance(entry, str)]
        words = f"import sys; sys.path[:] = {path!r}; from sortmill._server import main; main({self._imports!r})"
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process: subprocess.Popen[bytes] = subprocess.Popen([sys.executable, "-c", words], stdin=theirs.fileno())
        self._socket.settimeout(_ANSWER_S)

    @property
    def id(self) -> int:
        """Of its process."""
        return self._process.pid

    def start(self, files: list[int]) -> None:
        """Has it start a worker process, with its end of a socket, over which it will say who it is, and shared memory."""
        with self._lock:
            try:
                self._send(_server.ASK.pack(b"s", 0), files)
            except OSError:
                self._end(0.0)
                self._begin()
                self._send(_server.ASK.pack(b"s", 0), files)

    def _send(self, ask: bytes, files: list[int]) -> None:
        socket.send_fds(self._socket, [ask], files)

    def end_worker(self, process: int, patience_s: float) -> str:
        """Waits for the end of a worker process, and kills it when that takes too long. Says how it ended."""
        until = time.monotonic() + patience_s
        pause_s = 0.0005
        what, code = self._ask(b"w", process)
        while what == b"r" and time.monotonic() < until:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.05)
            what, code = self._ask(b"w", process)
        if what == b"r":
            what, code = self._ask(b"k", process)
        if what != b"e":
            return "was lost"
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def _ask(self, what: bytes, process: int) -> tuple[bytes, int]:
        with self._lock:
            try:
                self._socket.send(_server.ASK.pack(what, process))
                told: tuple[bytes, int] = _server.TOLD.unpack(self._socket.recv(_server.TOLD.size))
                return told
            except (OSError, struct.error):
                # It has died, and whatever it would say of that process comes too late.
                self._end(0.0)
                return b"l", 0

    def end(self) -> None:
        """Ends it. Worker processes end by themselves once nobody is at the other end of their sockets."""
        with self._lock:
            self._end(_PATIENCE_S)

    def _end(self, patience_s: float) -> None:
        self._socket.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def failure(packed: bytes) -> tuple[str, str, str | None, BaseException | None]:
    """Who must act, why, what to do, and what was raised, with where it was raised in the other process as its cause."""
    kind, cause, hint, raised, text = pickle.loads(packed)
    error: BaseException | None = None
    if raised is not None:
        try:
            error = pickle.loads(raised)
        except Exception:
            error = RuntimeError(cause)
        error.__cause__ = WorkerTraceback(text)
    return kind, cause, hint, error
