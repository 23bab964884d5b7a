"""Counts the words of text files and writes the most frequent ones: word_count.py TEXT... OUTPUT.csv"""

import sys

import sortmill as sm


def main() -> None:
    *texts, output = sys.argv[1:]
    job = sm.Pipeline()
    words = job.read_text(texts).flat_map(sm.words("line", lower=True))
    words.group_by("word").agg(n=sm.count()).top(1000, by="n").write_csv(output)
    print(job.run(memory="512 MiB"))


if __name__ == "__main__":
    main()
