"""Puts the lines of texts in random order, into files of equal count: shuffle_corpus.py EPOCH COUNT TEXT... FOLDER

Each epoch has an order of its own, the same on every machine. Counts differ by one at most.
"""

import sys
from itertools import islice
from pathlib import Path

import sortmill as sm

SEED = 1


def main() -> None:
    epoch, count, *texts, folder = sys.argv[1:]
    files = Path(folder)
    files.mkdir()
    whole = files / "whole.txt"
    job = sm.Pipeline()
    job.read_text(texts).shuffle(seed=SEED, epoch=int(epoch)).write_text(whole)
    report = job.run(memory="512 MiB")
    with whole.open("rb") as lines:
        for number in range(int(count)):
            share = (report.records_out + number) // int(count)
            with (files / f"part-{number:05}.txt").open("wb") as part:
                part.writelines(islice(lines, share))
    whole.unlink()
    print(report)


if __name__ == "__main__":
    main()
