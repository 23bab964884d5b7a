"""Words to people, and programs that must succeed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SORTMILL = ROOT / "target" / "release" / "sortmill"
GIB = 1 << 30


def say(words):
    print(f"bench: {words}", file=sys.stderr, flush=True)


def fail(words):
    say(words)
    sys.exit(2)


def command(words):
    """Runs `words`; its failure ends the benchmark with what it said."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        fail(f"{words[0]} cannot be started: {error.strerror}")
    if done.returncode != 0:
        fail(f"{' '.join(words)} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    return done


def gb(byte_count):
    return f"{byte_count / 1e9:.1f} GB"


def duration(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
