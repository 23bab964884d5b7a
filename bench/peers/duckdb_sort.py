"""Sorts lines bytewise with DuckDB.

    .venv/bin/python bench/peers/duckdb_sort.py --setting NAME --memory BYTES --threads N --temp DIR -o OUT IN

The settings, and whose advice they are:
- `default` is DuckDB's own, with `memory_limit`, `threads` and `temp_directory` as the job has them. DuckDB, "Tuning
  Workloads", "Larger-Than-Memory Workloads".
- `unordered` sets `preserve_insertion_order = false` besides. The same page, "The preserve_insertion_order Option",
  and "Out-of-Memory Issues": for exports larger than memory. What has an ORDER BY keeps its order.
- Half the space again as the input may go to temporary files, so that a job that goes astray fills no disk.
- Each line is one text column. Its separator and quote are bytes that the data do not have; the carriage return at
  the end of each line is taken for a part of the line end, and given back when writing.
"""

import os

import duckdb

from asked import parse_flags

SETTINGS = {"default": {}, "unordered": {"preserve_insertion_order": "false"}}


def rewrite(asked, order, settings):
    """Writes the lines of `asked.input` in this order, an SQL expression."""
    config = {
        "memory_limit": f"{asked.memory}B",
        "threads": str(asked.threads),
        "temp_directory": os.path.join(os.path.abspath(asked.temp), "duckdb"),
        "max_temp_directory_size": f"{max(1 << 30, os.path.getsize(asked.input) * 3 // 2)}B",
        **settings,
    }
    with duckdb.connect(config=config) as engine:
        engine.execute(
            f"COPY (SELECT line || chr(13) FROM read_csv('{asked.input}', columns = {{'line': 'VARCHAR'}},"
            " header = false, auto_detect = false, delim = chr(1), quote = '', escape = '', new_line = '\\r\\n')"
            f" ORDER BY {order}) TO '{asked.output}' (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '')")


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    rewrite(asked, "line", SETTINGS[asked.setting])


if __name__ == "__main__":
    main()
