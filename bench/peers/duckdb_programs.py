"""Counts the words of lines, or what stands in their last field, with DuckDB.

    .venv/bin/python bench/peers/duckdb_programs.py --setting word-count --memory BYTES --threads N --temp DIR -o OUT IN

Limits and reader as in duckdb_sort.py, and without the order of the input, which nothing here needs ("Tuning Workloads", "The
preserve_insertion_order Option"). Words stand between single spaces in this data, so splitting there is enough; the split by a
regular expression takes several times as long.
"""

import os

import duckdb

from asked import parse_flags

LINES = ("read_csv('{input}', columns = {{'line': 'VARCHAR'}}, header = false, auto_detect = false, delim = chr(1), "
         "quote = '', escape = '')")
WORDS = f"(SELECT unnest(string_split(lower(line), ' ')) AS word FROM {LINES})"
SETTINGS = {
    "word-count": f"SELECT word, count(*) AS n FROM {WORDS} WHERE word <> '' GROUP BY word ORDER BY n DESC, word LIMIT 1000",
    "group-counts": f"SELECT split_part(line, chr(9), 2) AS key, count(*) AS n FROM {LINES} GROUP BY key",
    "distinct": f"SELECT DISTINCT split_part(line, chr(9), 2) AS key FROM {LINES}",
}


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    config = {
        "memory_limit": f"{asked.memory}B",
        "threads": str(asked.threads),
        "temp_directory": os.path.join(os.path.abspath(asked.temp), "duckdb"),
        "preserve_insertion_order": "false",
    }
    query = SETTINGS[asked.setting].format(input=asked.input)
    with duckdb.connect(config=config) as engine:
        engine.execute(f"COPY ({query}) TO '{asked.output}' (FORMAT csv, HEADER true)")


main()
