"""The programs that are timed, in Python: our_programs.py NAME --memory BYTES --threads N --temp DIR -o OUT IN

What a user would write, with verbs that run in Rust; the inverted index is that of examples/. The report goes to
OUT.report, as JSON.
"""

import argparse
import json
import sys
from pathlib import Path

import sortmill as sm
from peers.asked import GREP

EDGE = {"source": str, "key": str}
CLICK = {"time": int, "user": str, "page": str}


def word_count(lines):
    return lines.flat_map(sm.words("line", lower=True)).group_by("word").agg(n=sm.count()).top(1000, by="n")


def five_grams(lines):
    return lines.flat_map(sm.ngrams("line", 5, lower=True)).group_by("ngram").agg(n=sm.count())


def sessions(lines):
    return lines.flat_map(sm.fields("line", "\t", CLICK)).group_by("user").sessions("time", 30 * 60 * 1000)


def shuffle(lines):
    return lines.shuffle(seed=1)


def keys(lines):
    return lines.flat_map(sm.fields("line", "\t", EDGE)).select("key")


def group_counts(lines):
    return keys(lines).group_by("key").agg(n=sm.count())


def distinct(lines):
    return keys(lines).distinct()


def csv_groups(job, path):
    table = job.read_csv(path, types={"count": int, "price": float})
    return table.group_by("count").agg(n=sm.count(), most=sm.max("price"))


def grep(lines):
    return lines.filter(sm.matches("line", GREP)).select("line_number", "line")


def inverted_index(lines):
    sys.path.append(str(Path(__file__).parent.parent / "examples"))
    from inverted_index import index

    return index(lines)


LINES = {"grep": grep, "inverted-index": inverted_index, "word-count": word_count, "5-grams": five_grams, "sessions": sessions, "shuffle": shuffle,
         "group-counts": group_counts, "distinct": distinct}
RECORDS = {"csv-groups": csv_groups}


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("program", choices=LINES | RECORDS)
    flags.add_argument("--memory", type=int, required=True)
    flags.add_argument("--threads", type=int, required=True)
    flags.add_argument("--temp", required=True)
    flags.add_argument("-o", dest="output", required=True)
    flags.add_argument("input")
    asked = flags.parse_args()
    job = sm.Pipeline()
    numbered = {"line_number": "line_number"} if asked.program == "grep" else {}
    if asked.program in RECORDS:
        table = RECORDS[asked.program](job, asked.input)
    else:
        table = LINES[asked.program](job.read_text(asked.input, **numbered))
    table.write_text(asked.output) if asked.program == "shuffle" else table.write_csv(asked.output)
    report = job.run(memory=asked.memory, temp=asked.temp, threads=asked.threads)
    Path(asked.output + ".report").write_text(json.dumps(report.phases))


if __name__ == "__main__":
    main()
