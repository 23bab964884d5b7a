"""Small jobs with functions of Python's and columns of all kinds, for builds that count what jobs do (train.sh):
train_functions.py LINES ROWS.csv OUT
"""

import sys

import sortmill as sm

ROW = {"id": int, "time": str, "count": int, "price": float, "note": str}


def same(batch):
    return batch


def main(lines, rows, out):
    for processes in (0, 2):
        for size in (1000, 16384):
            job = sm.Pipeline()
            job.read_text(lines).map_batches(same, pure=True, batch_size=size).write_text(out)
            job.run(memory="128 MiB", processes=processes)
        job = sm.Pipeline()
        table = job.read_csv(rows, ROW).filter(lambda row: row["id"] % 3 > 0)
        table = table.map(lambda row: {"key": row["count"], "note": row["note"]}, {"key": int, "note": str})
        table.group_by("key").agg(n=sm.count(), first=sm.min("note")).write_jsonl(out)
        job.run(memory="128 MiB", processes=processes)
    job = sm.Pipeline()
    table = job.read_csv(rows, ROW).with_columns(cents=(sm.col("price") * 100).cast(int))
    table.group_by("count").agg(n=sm.count(), mean=sm.mean("price"), cents=sm.sum("cents")).sort("mean").write_csv(out)
    job.run(memory="128 MiB")
    job = sm.Pipeline()
    job.read_csv(rows, ROW).sort(["note", "id"], descending=[False, True]).write_arrow(out)
    job.run(memory="64 MiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
