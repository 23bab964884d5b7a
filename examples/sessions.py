"""Cuts click logs into sessions: sessions.py CLICKS... OUTPUT.csv

A click is a line of milliseconds since 1970, user and page, with tabs between (`sortmill gen clicks` makes such). A session is
what a user clicks until a pause of more than half an hour. The engine puts each user's clicks in the order of time, so
nothing here sorts and no user's clicks need fit into memory.
"""

import sys

import sortmill as sm

PAUSE_MS = 30 * 60 * 1000


def main() -> None:
    *clicks, output = sys.argv[1:]
    job = sm.Pipeline()
    lines = job.read_text(clicks)
    table = lines.flat_map(sm.fields("line", "\t", {"time": int, "user": str, "page": str}))
    numbered = table.group_by("user").sessions("time", PAUSE_MS)
    sessions = numbered.group_by("user", "session").agg(
        begins=sm.min("time"), ends=sm.max("time"), clicks=sm.count(), pages=sm.count_distinct("page")
    )
    sessions.sort(["user", "session"]).write_csv(output)
    print(job.run(memory="512 MiB"))


if __name__ == "__main__":
    main()
