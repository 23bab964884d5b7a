"""Sorts lines bytewise with the streaming engine of Polars.

    .venv/bin/python bench/peers/polars_sort.py --setting NAME --memory BYTES --threads N --temp DIR -o OUT IN

The settings, and whose advice they are:
- `budget` gives the engine the job's limit, after which it spills. Polars, pull request 27998, "Add naive
  out-of-core spilling": POLARS_OOC_MEMORY_BUDGET_MB sets the budget; without it nothing is spilled at all.
- `half-budget` gives it half: by the same page not everything can be spilled and mapped files are not counted, so it
  goes over its budget.
- Scan, sort and sink in the streaming engine: Polars user guide, "Streaming" and "Sinks".
- Each line is one text column, read without quotes; the carriage return at the end of each line is taken for a part
  of the line end, and given back when writing.
"""

import os

from asked import parse_flags

SETTINGS = {"budget": 1.0, "half-budget": 0.5}


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    # Read when the library is loaded, so it is loaded afterwards.
    os.environ |= {
        "POLARS_MAX_THREADS": str(asked.threads),
        "POLARS_OOC_MEMORY_BUDGET_MB": str(int(asked.memory * SETTINGS[asked.setting]) // 10**6),
        "POLARS_OOC_SPILL_DIR": os.path.join(os.path.abspath(asked.temp), "polars"),
    }
    import polars

    lines = polars.scan_csv(asked.input, has_header=False, schema={"line": polars.String}, separator="\x01",
                            quote_char=None)
    lines.sort("line").sink_csv(asked.output, include_header=False, separator="\x01", quote_style="never",
                                line_terminator="\r\n", engine="streaming")


main()
