"""The process that starts worker processes: `sortmill._pool.Server` runs `main` here.

Python takes a fifth of a second to start and to import Arrow, and a worker process that died would have its batch wait as
long. So that is done once, here, and each worker process is a fork of this one: some milliseconds, and what was imported is
in memory once for all of them. This is the fork server of `multiprocessing`, for processes that say by themselves over
sockets and shared memory of their own what they have to say.

A fork is safe where only one thread runs: another one's locks would stay locked for ever. Here runs one, and nothing of the
user's is imported or unpickled, which might begin others: that is done in each worker process by itself. Where libraries
have threads all the same, processes are started one by one, as if this one did not exist.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import struct
import sys
import time
import warnings

from . import _worker

ASK = struct.Struct("<cq")
"""What is asked, and about which process: `s`tart one (three files come along), has it ended (`w`ait), `k`ill it."""
TOLD = struct.Struct("<cq")
"""What became of it: it `r`uns, it has `e`nded, with this code or by the signal of this number below 0, or is `l`ost."""

_PATIENCE_S = 30.0
_ARROW_MEMORY = "JE_ARROW_MALLOC_CONF"


def main(imports: list[str]) -> None:
    """Starts worker processes until nobody asks any more. Returns in each of them when its work is done, too."""
    # Ctrl-C is for the process that started this one, which ends it. Worker processes inherit that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asks = socket.socket(fileno=os.dup(0))
    _worker.close_stdin()
    bring(imports)
    is_forked = forks()
    # What lies there is not looked through by the worker processes, which would copy it.
    gc.collect()
    gc.freeze()
    while True:
        try:
            ask, files, _, _ = socket.recv_fds(asks, ASK.size, 3)
            if not ask:
                return
            what, process = ASK.unpack(ask)
            if what != b"s":
                asks.send(TOLD.pack(*told(process, what == b"k")))
                continue
        except OSError:
            # Whoever asked has gone.
            return
        stream, *memory = files
        try:
            child = os.fork() if is_forked else start(stream, memory)
        except OSError as error:
            child = -1
            _worker.refuse(stream, error)
        if child == 0:
            asks.close()
            os.dup2(stream, 0)
            os.close(stream)
            forked(memory)
            return
        for file in files:
            os.close(file)


def bring(imports: list[str]) -> None:
    """Imports these modules, without a thread that Arrow's memory has to give back what is free, where it has one."""
    before = os.environ.get(_ARROW_MEMORY)
    os.environ[_ARROW_MEMORY] = ",".join(filter(None, [before, "background_thread:false"]))
    for name in imports:
        try:
            importlib.import_module(name)
        except ImportError:
            # Whoever needs it says so where it is needed.
            pass
    if before is None:
        del os.environ[_ARROW_MEMORY]
    else:
        os.environ[_ARROW_MEMORY] = before
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        # Its allocator takes huge pages when it is first asked. Each worker process would have its own cleared, 1.3 ms long;
        # of those that lie here it copies the few kilobytes that it changes.
        arrow.allocate_buffer(64)


def forks() -> bool:
    """Whether a fork of this process is as good as a process of its own: one thread runs here, and no other.

    One is forked for nothing before they are counted, because OpenBLAS, which numpy brings along, ends its threads before
    each fork.
    """
    with warnings.catch_warnings():
        # Of several threads, which is what is to be found out.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os._exit(0)
    until = time.monotonic() + _PATIENCE_S
    while told(child, False)[0] == b"r":
        if time.monotonic() > until:
            told(child, True)
            return False
        time.sleep(0.001)
    return len(os.listdir("/proc/self/task")) == 1


def start(stream: int, memory: list[int]) -> int:
    """Starts a process of its own, with these files. Answers its number."""
    words = f"import sys; sys.path[:] = {sys.path!r}; from sortmill._worker import main; main({memory!r}, False)"
    for file in memory:
        os.set_inheritable(file, True)
    files = [(os.POSIX_SPAWN_DUP2, stream, 0)]
    return os.posix_spawn(sys.executable, [sys.executable, "-c", words], os.environ, file_actions=files)


def forked(memory: list[int]) -> None:
    """The work of a process that was forked from this one."""
    # Each draws random numbers of its own. Python's `random` sees to that by itself.
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    _worker.main(memory, True)


def told(process: int, kills: bool) -> tuple[bytes, int]:
    """What became of a process, which is killed first if it `kills`."""
    try:
        if kills:
            os.kill(process, signal.SIGKILL)
        ended, status = os.waitpid(process, 0 if kills else os.WNOHANG)
    except (ChildProcessError, ProcessLookupError):
        return b"l", 0
    return (b"e", os.waitstatus_to_exitcode(status)) if ended else (b"r", 0)
