"""The flags that all peers' programs take."""

import argparse

# What grep looks for: a line of seven hundred has it.
GREP = "z[a-z]*q"


def parse_flags(words, settings):
    flags = argparse.ArgumentParser(description=words)
    flags.add_argument("--setting", choices=list(settings), default=next(iter(settings)))
    flags.add_argument("--memory", type=int, required=True, help="bytes")
    flags.add_argument("--threads", type=int, required=True)
    flags.add_argument("--temp", required=True, help="folder for the peer's own files")
    flags.add_argument("-o", dest="output", required=True)
    flags.add_argument("input")
    return flags.parse_args()
