"""Sorts 100-byte records by their first 10 bytes with chDB, ClickHouse as a library.

    .venv/bin/python bench/peers/chdb_sort.py --setting NAME --memory BYTES --threads N --temp DIR -o OUT IN

A process of its own, so that its time, CPU and memory are counted like every other contestant's.

The settings, and whose advice they are:
- `seven-tenths` spills at 0.7 of the job's limit, 1.5 GB of 2 GiB: with it chDB's memory comes out at about the
  limit. ClickHouse, "ORDER BY clause", "Implementation Details": a value well below `max_memory_usage`, 80 GB to
  100 GB in its example. So `max_memory_usage` is 1.25 times the limit: at the limit itself the merge fails on small
  jobs, and what it really takes is measured from outside.
- `half` spills at half of it. ClickHouse, "Session settings", `max_bytes_before_external_sort`: "the recommended
  value is half of the available system memory".
- Both without compressing temporary files: these records do not compress.
- `fixed-strings` reads ASCII records as what they are, 10 and 90 bytes, and `lines` as lines (ClickHouse, "Formats
  for input and output data", LineAsString and TSVRaw). Temporary files are compressed, because this text is.
- `max_bytes_ratio_before_external_sort` = 0, so that the figure above alone decides.
- INTO OUTFILE, and chDB's own default of mapping the input: never slower than INSERT INTO FUNCTION file() and
  than pread when tried in turns on 4 GB; the difference was below the machine's noise.
"""

import os
import shutil
import sys
import time

from asked import parse_flags

RECORDS = ("RowBinary", "key FixedString(10), value FixedString(90)", "key, value", "key", "RowBinary")
LINES = ("LineAsString", "line String", "line", "line", "TSVRaw")
# Name: how it is read and written, the part of memory at which it spills, the codec of what is spilled.
SETTINGS = {
    "seven-tenths": (RECORDS, 0.7, "NONE"),
    "half": (RECORDS, 0.5, "NONE"),
    "fixed-strings": (RECORDS, 0.7, "LZ4"),
    "lines": (LINES, 0.7, "LZ4"),
}


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    (input_format, structure, columns, key, output_format), part, codec = SETTINGS[asked.setting]
    settings = {
        "max_threads": asked.threads,
        "max_memory_usage": asked.memory * 5 // 4,
        "max_bytes_before_external_sort": int(asked.memory * part),
        "max_bytes_ratio_before_external_sort": 0,
        "temporary_files_codec": codec,
    }
    settings_sql = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    query = (f"SELECT {columns} FROM file('{os.path.abspath(asked.input)}', '{input_format}', '{structure}')"
             f" ORDER BY {key} SETTINGS {settings_sql}"
             f" INTO OUTFILE '{os.path.abspath(asked.output)}' FORMAT {output_format}")

    start = time.monotonic()
    from chdb import session  # its library is 500 MB: loading it is part of the start, not of the query
    home = os.path.join(os.path.abspath(asked.temp), "chdb")
    engine = session.Session(home)
    loaded = time.monotonic()
    engine.query(query)
    done = time.monotonic()
    engine.close()
    shutil.rmtree(home, ignore_errors=True)
    print(f"chdb: start {loaded - start:.2f} s, query {done - loaded:.2f} s", file=sys.stderr)


main()
