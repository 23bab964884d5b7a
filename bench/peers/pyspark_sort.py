"""Sorts lines bytewise with PySpark in one process, on all cores.

    .venv/bin/python bench/peers/pyspark_sort.py --setting NAME --memory BYTES --threads N --temp DIR -o OUT IN

The output is a folder of files that are in order one after the other: one file would be written by one core.

The settings, and whose advice they are:
- `default` is Spark's own within the job's limits (pyspark_session.py).
- `small-partitions` reads 32 MiB at a time and sorts partitions of about 64 MiB. Spark, "Performance Tuning",
  "Tuning Partitions" (`spark.sql.files.maxPartitionBytes`, `spark.sql.shuffle.partitions`); "Tuning Spark", "Memory
  Usage of Reduce Tasks": more and smaller ones where they do not fit.
"""

import os

from asked import parse_flags
from pyspark_session import MIB, ended, started

SETTINGS = ("default", "small-partitions")


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    settings = {}
    if asked.setting == "small-partitions":
        settings = {
            "spark.sql.files.maxPartitionBytes": str(32 * MIB),
            "spark.sql.shuffle.partitions": str(max(2 * asked.threads, os.path.getsize(asked.input) // (64 * MIB))),
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
        }
    spark = started("sort", asked, settings)
    # Line ends are "\n" alone, so that the carriage return stays in the line.
    lines = spark.read.option("lineSep", "\n").text(os.path.abspath(asked.input))
    lines.sort("value").write.option("lineSep", "\n").text(os.path.abspath(asked.output))
    ended(spark)


main()
