"""Which documents have which words: inverted_index.py TEXT... OUTPUT.txt

Each line of a text is a document: its name, a tab, its words. A line of the output is a word, a tab and the names of its
documents, sorted, each once. Of all of that no more need fit into memory than one document and one list of names.
"""

import sys

import sortmill as sm


def index(lines: sm.Table) -> sm.Table:
    documents = lines.flat_map(sm.extract("line", r"(?-u)^([^\t]*)\t?(.*)$", {"document": str, "text": str}))
    words = documents.flat_map(sm.words("text", lower=True, keep="document"))
    return words.group_by("word", order="sorted").agg(documents=sm.string_agg("document", " ", distinct=True))


def main() -> None:
    *texts, output = sys.argv[1:]
    job = sm.Pipeline()
    index(job.read_text(texts)).write_text(output)
    print(job.run(memory="512 MiB"))


if __name__ == "__main__":
    main()
