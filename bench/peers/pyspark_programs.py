"""Counts the words of lines with PySpark in one process, on all cores.

    .venv/bin/python bench/peers/pyspark_programs.py --setting word-count --memory BYTES --threads N --temp DIR -o OUT IN

Session as in pyspark_sort.py's `default`, but as many partitions after the shuffle as there are threads: what is counted is small
("Performance Tuning", "Tuning Partitions"). Words as in duckdb_programs.py. Few lines come out, so they are written from here.
"""

from pyspark.sql import functions

from asked import parse_flags
from pyspark_session import ended, started

SETTINGS = ("word-count",)


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    spark = started("words", asked, {"spark.sql.shuffle.partitions": str(asked.threads)})
    lines = spark.read.option("lineSep", "\n").text(asked.input)
    words = lines.select(functions.explode(functions.split(functions.lower("value"), " ")).alias("word"))
    counts = words.where("word <> ''").groupBy("word").count()
    most = counts.orderBy(functions.desc("count"), "word").limit(1000).collect()
    with open(asked.output, "w") as output:
        output.write("word,n\n")
        output.writelines(f"{row['word']},{row['count']}\n" for row in most)
    ended(spark)


main()
