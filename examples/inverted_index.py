"""Which documents have which words: inverted_index.py TEXT... OUTPUT.txt

Each line of a text is a document: its name, a tab, its words. A line of the output is a word, a tab and the names of its
documents, sorted, each once. No document and no list of names need fit into memory but the one that is written.
"""

import sys
from collections.abc import Iterator
from typing import Any

import sortmill as sm

Record = dict[str, Any]


def entry(word: str, records: Iterator[Record]) -> list[Record]:
    return [{"word": word, "documents": " ".join(record["document"] for record in records)}]


def index(lines: sm.Table) -> sm.Table:
    documents = lines.flat_map(sm.extract("line", r"(?-u)^([^\t]*)\t?(.*)$", {"document": str, "text": str}))
    words = documents.flat_map(sm.words("text", lower=True, keep="document"))
    # A record with a long list goes nowhere but into the output, where it may be of any length.
    ordered = words.select("word", "document").distinct(order="sorted")
    return ordered.group_by("word", order="sorted").apply(entry, columns={"word": str, "documents": str})


def main() -> None:
    *texts, output = sys.argv[1:]
    job = sm.Pipeline()
    index(job.read_text(texts)).write_text(output)
    print(job.run(memory="512 MiB"))


if __name__ == "__main__":
    main()
