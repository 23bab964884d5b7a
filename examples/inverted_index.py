"""Which documents have which words: inverted_index.py TEXT... OUTPUT.txt

Each line of a text is a document: its name, a tab, its words. A line of the output is a word, a tab and the names of its
documents, sorted, each once. No document and no list of names need fit into memory but the one that is written.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import sortmill as sm

Record = dict[str, Any]


def postings(record: Record) -> Iterator[Record]:
    document, _, text = record["line"].partition("\t")
    for word in set(re.findall(r"[^\W_]+", text.lower())):
        yield {"word": word, "document": document}


def entry(word: str, records: Iterator[Record]) -> list[Record]:
    return [{"word": word, "documents": " ".join(record["document"] for record in records)}]


def main() -> None:
    *texts, output = sys.argv[1:]
    job = sm.Pipeline()
    words = job.read_text(texts).flat_map(postings, columns={"word": str, "document": str}).distinct()
    index = words.group_by("word").apply(entry, sort="document", columns={"word": str, "documents": str})
    index.sort("word").write_text(output)
    print(job.run(memory="512 MiB"))


if __name__ == "__main__":
    main()
