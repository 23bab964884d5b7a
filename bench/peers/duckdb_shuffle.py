"""Puts lines in random order with DuckDB.

    .venv/bin/python bench/peers/duckdb_shuffle.py --memory BYTES --threads N --temp DIR -o OUT IN

By `ORDER BY random()`, with limits and reader as in duckdb_sort.py.
"""

from asked import parse_flags
from duckdb_sort import rewrite


def main():
    rewrite(parse_flags(__doc__.splitlines()[0], {"default": {}}), "random()", {})


main()
