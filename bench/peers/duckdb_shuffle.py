"""Puts lines in random order with DuckDB.

    .venv/bin/python bench/peers/duckdb_shuffle.py --memory BYTES --threads N --temp DIR -o OUT IN

By `ORDER BY random()`, with limits and reader as in duckdb_sort.py.
"""

import os

import duckdb

from asked import parse_flags


def main():
    asked = parse_flags(__doc__.splitlines()[0], {"default": {}})
    config = {
        "memory_limit": f"{asked.memory}B",
        "threads": str(asked.threads),
        "temp_directory": os.path.join(os.path.abspath(asked.temp), "duckdb"),
        "max_temp_directory_size": f"{max(1 << 30, os.path.getsize(asked.input) * 3 // 2)}B",
    }
    with duckdb.connect(config=config) as engine:
        engine.execute(
            f"COPY (SELECT line || chr(13) FROM read_csv('{asked.input}', columns = {{'line': 'VARCHAR'}},"
            " header = false, auto_detect = false, delim = chr(1), quote = '', escape = '', new_line = '\\r\\n')"
            f" ORDER BY random()) TO '{asked.output}' (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '')")


main()
