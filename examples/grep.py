"""Lines in which a regular expression is found, with file and number: grep.py PATTERN TEXT... OUTPUT.txt

What `grep -Hn` says, with tabs for colons, in the order of the texts and of their lines, which may be compressed. A large
text is read by all cores, and its lines are numbered all the same.
"""

import sys

import sortmill as sm


def main() -> None:
    pattern, *texts, output = sys.argv[1:]
    job = sm.Pipeline()
    lines = job.read_text(texts, file="file", line_number="line_number")
    found = lines.filter(sm.matches("line", pattern))
    found.select("file", "line_number", "line").write_text(output)
    print(job.run(memory="512 MiB"))


if __name__ == "__main__":
    main()
