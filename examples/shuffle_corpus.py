"""Puts the lines of texts in random order, into files of equal count: shuffle_corpus.py EPOCH COUNT TEXT... FOLDER

Each epoch has an order of its own, the same on every machine. Counts differ by one at most. The folder appears when all of
it is complete, with a manifest.json that tells what is in it.
"""

import sys

import sortmill as sm

SEED = 1


def main() -> None:
    epoch, count, *texts, folder = sys.argv[1:]
    job = sm.Pipeline()
    lines = job.read_text(texts).shuffle(seed=SEED, epoch=int(epoch))
    lines.write_text(folder, files=int(count))
    print(job.run(memory="512 MiB"))


if __name__ == "__main__":
    main()
