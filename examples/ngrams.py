"""Counts rows of N words and writes those that come at least twice, most frequent first: ngrams.py N TEXT... OUTPUT.csv"""

import sys

import sortmill as sm


def main() -> None:
    count, *texts, output = sys.argv[1:]
    job = sm.Pipeline()
    rows = job.read_text(texts).flat_map(sm.ngrams("line", int(count), lower=True))
    counts = rows.group_by("ngram").agg(n=sm.count())
    often = counts.filter(sm.col("n") > 1)
    often.sort(["n", "ngram"], descending=[True, False]).write_csv(output)
    print(job.run(memory="512 MiB"))


if __name__ == "__main__":
    main()
