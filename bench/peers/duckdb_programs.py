"""Counts the words of lines, or what stands in their last field, finds lines, lists the documents of words and groups CSV, with DuckDB.

    .venv/bin/python bench/peers/duckdb_programs.py --setting word-count --memory BYTES --threads N --temp DIR -o OUT IN

Limits and reader as in duckdb_sort.py, and without the order of the input, which nothing here needs but grep ("Tuning Workloads", "The
preserve_insertion_order Option"). Words stand between single spaces in this data, so splitting there is enough; the split by a
regular expression takes several times as long.
"""

import os

import duckdb

from asked import GREP, parse_flags

LINES = ("read_csv('{input}', columns = {{'line': 'VARCHAR'}}, header = false, auto_detect = false, delim = chr(1), "
         "quote = '', escape = '')")
WORDS = f"(SELECT unnest(string_split(lower(line), ' ')) AS word FROM {LINES})"
# Names of documents stand in front of a tab.
POSTINGS = (f"(SELECT split_part(line, chr(9), 1) AS document, unnest(string_split(lower(split_part(line, chr(9), 2)), ' ')) AS word "
            f"FROM {LINES})")
EDGES = ("read_csv('{input}', columns = {{'source': 'VARCHAR', 'key': 'VARCHAR'}}, header = false, auto_detect = false, delim = chr(9), "
         "quote = '', escape = '')")
SETTINGS = {
    "word-count": f"SELECT word, count(*) AS n FROM {WORDS} WHERE word <> '' GROUP BY word ORDER BY n DESC, word LIMIT 1000",
    "grep": f"SELECT * FROM (SELECT row_number() OVER () AS line_number, line FROM {LINES}) WHERE regexp_matches(line, '{GREP}')",
    "inverted-index": "SELECT word, string_agg(document, ' ' ORDER BY document) AS documents "
                      f"FROM (SELECT DISTINCT word, document FROM {POSTINGS}) WHERE word <> '' GROUP BY word ORDER BY word",
    "group-counts": f"SELECT key, count(*) AS n FROM {EDGES} GROUP BY key",
    "distinct": f"SELECT DISTINCT key FROM {EDGES}",
    "csv-groups": "SELECT count, count(*) AS n, max(price) AS most FROM read_csv('{input}') GROUP BY count",
}


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    config = {
        "memory_limit": f"{asked.memory}B",
        "threads": str(asked.threads),
        "temp_directory": os.path.join(os.path.abspath(asked.temp), "duckdb"),
        "preserve_insertion_order": str(asked.setting == "grep").lower(),
    }
    query = SETTINGS[asked.setting].format(input=asked.input)
    with duckdb.connect(config=config) as engine:
        engine.execute(f"COPY ({query}) TO '{asked.output}' (FORMAT csv, HEADER true)")


main()
