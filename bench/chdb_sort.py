"""Sorts 100-byte binary records by their first 10 bytes with chDB: the rival's side of the main job.

    .venv/bin/python bench/chdb_sort.py --memory BYTES --threads N --temp DIR -o OUT IN

Runs under the virtual environment that compare.py makes, in a process of its own, so that its time,
CPU and memory are counted like every other contestant's.

The settings, and why:
- `max_bytes_before_external_sort` is 0.7 of the job's limit, 1.5 GB of 2 GiB: with it chDB's memory comes out
  at about the limit. ClickHouse's page on ORDER BY ("Implementation Details") asks for a value well below
  `max_memory_usage`, 80 GB to 100 GB in its example. So `max_memory_usage` is 1.25 times the limit: at the
  limit itself the merge fails on small jobs, and what it really takes is measured from outside.
- `max_bytes_ratio_before_external_sort` = 0, so that the figure above alone decides.
- `temporary_files_codec` = NONE: these records do not compress.
- INTO OUTFILE, and chDB's own default of mapping the input: never slower than INSERT INTO FUNCTION file() and
  than pread when tried in turns on 4 GB; the difference was below the machine's noise.
- `--into file` and `--set NAME=VALUE` try others.
"""

import argparse
import os
import shutil
import sys
import time

STRUCTURE = "key FixedString(10), value FixedString(90)"


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--memory", type=int, required=True, help="bytes")
    words.add_argument("--threads", type=int, required=True)
    words.add_argument("--temp", required=True, help="folder for chDB's own files")
    words.add_argument("-o", dest="output", required=True)
    words.add_argument("--into", choices=["outfile", "file"], default="outfile",
                       help="how the output is written: INTO OUTFILE, or INSERT INTO FUNCTION file()")
    words.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    words.add_argument("input")
    asked = words.parse_args()

    settings = {
        "max_threads": asked.threads,
        "max_memory_usage": asked.memory * 5 // 4,
        "max_bytes_before_external_sort": asked.memory * 7 // 10,
        "max_bytes_ratio_before_external_sort": 0,
        "temporary_files_codec": "NONE",
    }
    settings.update(pair.split("=", 1) for pair in asked.set)
    settings_sql = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    select = (f"SELECT key, value FROM file('{os.path.abspath(asked.input)}', 'RowBinary', '{STRUCTURE}')"
              " ORDER BY key")
    output = os.path.abspath(asked.output)
    if asked.into == "file":
        query = f"INSERT INTO FUNCTION file('{output}', 'RowBinary', '{STRUCTURE}') {select} SETTINGS {settings_sql}"
    else:
        query = f"{select} SETTINGS {settings_sql} INTO OUTFILE '{output}' FORMAT RowBinary"

    start = time.monotonic()
    from chdb import session  # its library is 500 MB: loading it is part of the start, not of the query
    home = os.path.join(os.path.abspath(asked.temp), "chdb")
    shutil.rmtree(home, ignore_errors=True)
    engine = session.Session(home)
    loaded = time.monotonic()
    engine.query(query)
    done = time.monotonic()
    engine.close()
    shutil.rmtree(home, ignore_errors=True)
    print(f"chdb: start {loaded - start:.2f} s, query {done - loaded:.2f} s", file=sys.stderr)


main()
