"""Sorts lines bytewise with PySpark in one process, on all cores.

    .venv/bin/python bench/peers/pyspark_sort.py --setting NAME --memory BYTES --threads N --temp DIR -o OUT IN

The output is a folder of files that are in order one after the other: one file would be written by one core.

The settings, and whose advice they are:
- `default` is Spark's own, with the job's limit as the heap: Spark, "Submitting Applications", local[N], and
  "Configuration", `spark.driver.memory` and `spark.local.dir`.
- `small-partitions` reads 32 MiB at a time and sorts partitions of about 64 MiB. Spark, "Performance Tuning",
  "Tuning Partitions" (`spark.sql.files.maxPartitionBytes`, `spark.sql.shuffle.partitions`); "Tuning Spark", "Memory
  Usage of Reduce Tasks": more and smaller ones where they do not fit.
"""

import os

from pyspark.sql import SparkSession

from asked import parse_flags

MIB = 1 << 20
SETTINGS = ("default", "small-partitions")


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    config = {
        "spark.driver.memory": f"{asked.memory // MIB}m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": os.path.abspath(asked.temp),
        "spark.sql.warehouse.dir": os.path.join(os.path.abspath(asked.temp), "warehouse"),
        "spark.ui.enabled": "false",
    }
    if asked.setting == "small-partitions":
        config |= {
            "spark.sql.files.maxPartitionBytes": str(32 * MIB),
            "spark.sql.shuffle.partitions": str(max(2 * asked.threads, os.path.getsize(asked.input) // (64 * MIB))),
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
        }
    builder = SparkSession.builder.master(f"local[{asked.threads}]").appName("sort")
    for name, value in config.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    java = spark.sparkContext._gateway.proc
    # Line ends are "\n" alone, so that the carriage return stays in the line.
    lines = spark.read.option("lineSep", "\n").text(os.path.abspath(asked.input))
    lines.sort("value").write.option("lineSep", "\n").text(os.path.abspath(asked.output))
    spark.stop()
    # It ends when its standard input does. Waited for, so that its CPU time counts as ours.
    java.stdin.close()
    java.wait()


main()
