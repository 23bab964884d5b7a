"""Counts the words of lines, or what stands in their last field, finds lines and groups CSV, with the streaming engine of Polars.

    .venv/bin/python bench/peers/polars_programs.py --setting word-count --memory BYTES --threads N --temp DIR -o OUT IN

Limits and reader as in polars_sort.py; words as in duckdb_programs.py.
"""

import os

from asked import GREP, parse_flags

SETTINGS = {"word-count": None, "grep": None, "group-counts": None, "distinct": None, "csv-groups": None}


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    # Read when the library is loaded, so it is loaded afterwards.
    os.environ |= {
        "POLARS_MAX_THREADS": str(asked.threads),
        "POLARS_OOC_MEMORY_BUDGET_MB": str(asked.memory // 10**6),
        "POLARS_OOC_SPILL_DIR": os.path.join(os.path.abspath(asked.temp), "polars"),
    }
    import polars

    lines = polars.scan_csv(asked.input, has_header=False, schema={"line": polars.String}, separator="\x01",
                            quote_char=None)
    edges = polars.scan_csv(asked.input, has_header=False, schema={"source": polars.String, "key": polars.String}, separator="\t",
                            quote_char=None)
    if asked.setting == "word-count":
        words = lines.select(word=polars.col("line").str.to_lowercase().str.split(" ")).explode("word")
        counts = words.filter(polars.col("word") != "").group_by("word").len("n")
        made = counts.sort(["n", "word"], descending=[True, False]).head(1000)
    elif asked.setting == "grep":
        numbered = lines.with_row_index("line_number", offset=1)
        made = numbered.filter(polars.col("line").str.contains(GREP))
    elif asked.setting == "group-counts":
        made = edges.group_by("key").len("n")
    elif asked.setting == "csv-groups":
        made = polars.scan_csv(asked.input).group_by("count").agg(n=polars.len(), most=polars.col("price").max())
    else:
        made = edges.select("key").unique()
    made.sink_csv(asked.output, engine="streaming")


main()
