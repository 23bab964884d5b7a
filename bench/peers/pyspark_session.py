"""Starts Spark within a job's limits, and ends it."""

import os

from pyspark.sql import SparkSession

MIB = 1 << 20


def started(name, asked, settings):
    """A session in this process: Spark, "Submitting Applications", local[N], and "Configuration", `spark.driver.memory` and
    `spark.local.dir`. The job's limit is the heap's."""
    config = {
        "spark.driver.memory": f"{asked.memory // MIB}m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": os.path.abspath(asked.temp),
        "spark.sql.warehouse.dir": os.path.join(os.path.abspath(asked.temp), "warehouse"),
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master(f"local[{asked.threads}]").appName(name)
    for key, value in (config | settings).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def ended(spark):
    java = spark.sparkContext._gateway.proc
    spark.stop()
    # It ends when its standard input does. Waited for, so that its CPU time counts as ours.
    java.stdin.close()
    java.wait()
