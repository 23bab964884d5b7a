"""The command line: `python -m sortmill` is `sortmill`, and the script of that name, called `sort`, is `sort`."""

from __future__ import annotations

import os
import signal
import sys

from . import _sortmill
from ._sort import NODE_WORDS


def main() -> int:
    """Does what the command line says, and answers its exit code."""
    # The command has its own way with signals, and dies of a closed pipe as other programs do.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else the caller ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    name = "sort" if os.path.basename(sys.argv[0]) == "sort" else "sortmill"
    return _sortmill.run_command([name, *sys.argv[1:]], NODE_WORDS)


if __name__ == "__main__":
    sys.exit(main())
