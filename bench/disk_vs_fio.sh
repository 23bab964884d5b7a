#!/usr/bin/env bash
# Whether `sortmill bench disk` says what fio says: the same size, depth, file length and time, direct,
# io_uring, buffers in huge pages, for which glibc asks as our pools do (2.35 or later; --mem=mmaphuge would
# need pages reserved for the whole machine). In each round fio runs before and after ours, because disks
# drift, and ours is compared with the mean of the two; what counts is the median of the rounds. Each lays its
# files out anew.
#   ROUNDS=3 SECONDS_EACH=3 BLOCK=4MiB DEPTH=8 FILE=256MiB bench/disk_vs_fio.sh [DIR]
# Below 3 seconds fio says too much for reading and writing at once: its two jobs do not begin together, and
# whichever is alone for a while is faster.
# Files go to DIR (default large/fio, which git ignores) and are deleted at the end. Raw results are appended
# to bench/runs/<date>-<commit>-disk-vs-fio.csv. Needs fio and Python 3.11.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${ROUNDS:-3} seconds=${SECONDS_EACH:-3} block=${BLOCK:-4MiB} depth=${DEPTH:-8} file=${FILE:-256MiB}
folder=${1:-large/fio}
sortmill=target/release/sortmill

for needed in fio python3; do
	if ! command -v "$needed" >/dev/null; then
		echo "disk_vs_fio: $needed is missing; install it and try again" >&2
		exit 2
	fi
done
make --no-print-directory build
mkdir -p "$folder"
results=$(mktemp -d)
trap 'rm -rf "$results" "$folder"/fio-read "$folder"/fio-write; rmdir "$folder" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
# fio wants its sizes as 4M.
fio_block=${block%iB} fio_file=${file%iB}

fio_run() {
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio --output-format=json --direct=1 --ioengine=io_uring --bs="$fio_block" \
		--iodepth="$depth" --mem_align=2M --directory="$folder" --size="$fio_file" "$@"
}
milliseconds() { python3 -c "print(f'{$seconds * $1:.0f}ms')"; }
timed=(--time_based "--ramp_time=$(milliseconds 250)" "--runtime=$(milliseconds 1000)")
# Files anew for each, as ours are: where on a disk a file lies may be worth a fifth of its rate.
fio_round() {
	rm -f "$folder"/fio-read "$folder"/fio-write
	for name in fio-read fio-write; do
		fio_run --name="$name" --filename="$name" --rw=write --end_fsync=1 >/dev/null
	done
	fio_run "${timed[@]}" --name=read --filename=fio-read --rw=read >"$1-read.json"
	fio_run "${timed[@]}" --name=write --filename=fio-write --rw=write >"$1-write.json"
	fio_run "${timed[@]}" --name=read --filename=fio-read --rw=read \
		--name=write --filename=fio-write --rw=write >"$1-both.json"
	rm -f "$folder"/fio-read "$folder"/fio-write
}
for round in $(seq "$rounds"); do
	fio_round "$results/$round-before"
	"$sortmill" bench disk "$folder" --json --overwrite --rounds 1 --seconds "$seconds" --block "$block" --depth "$depth" \
		--bytes "$file" >"$results/$round-ours.json"
	fio_round "$results/$round-after"
done
commit=$(git rev-parse --short HEAD)
git diff --quiet HEAD -- crates || commit+=+
python3 - "$results" "$rounds" "bench/runs/$(date -u +%F)-$commit-disk-vs-fio.csv" "$commit" "$seconds" <<'PYTHON'
import csv, json, os, statistics, sys
from pathlib import Path

results, rounds, out, commit, seconds = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:]
WAYS = {"read": ["read"], "write": ["write"], "both": ["read", "write"]}

def fio(name, way):
    jobs = json.loads((results / f"{name}-{way}.json").read_text())["jobs"]
    return {job["jobname"]: job[job["jobname"]]["bw_bytes"] for job in jobs}

rows = []
for round_number in range(1, rounds + 1):
    ours = json.loads((results / f"{round_number}-ours.json").read_text())
    for (way, kinds), row in zip(WAYS.items(), ours["rows"], strict=True):
        before, after = (fio(f"{round_number}-{name}", way) for name in ("before", "after"))
        for kind in kinds:
            rate = row[f"{kind}_bytes_per_s"]["median"]
            mean = (before[kind] + after[kind]) / 2
            rows.append({"commit": commit, "round": round_number, "way": way, "kind": kind,
                         "block_bytes": row["block_bytes"], "depth": row["depth"],
                         "file_bytes": ours["file_bytes"], "seconds": seconds,
                         "fio_before_bytes_per_s": before[kind], "sortmill_bytes_per_s": rate,
                         "fio_after_bytes_per_s": after[kind], "ratio": round(rate / mean, 4),
                         "load_1min": os.getloadavg()[0], "kernel": os.uname().release})
is_new = not out.exists()
with open(out, "a", newline="") as file:
    lines = csv.DictWriter(file, rows[0], lineterminator="\n")
    if is_new:
        lines.writeheader()
    lines.writerows(rows)
print(f"{rounds} rounds, sortmill over the mean of fio before and after: median (least - most)")
for way, kinds in WAYS.items():
    for kind in kinds:
        of = [row for row in rows if (row["way"], row["kind"]) == (way, kind)]
        ratios = [row["ratio"] for row in of]
        drift = [row["fio_after_bytes_per_s"] / row["fio_before_bytes_per_s"] for row in of]
        print(f"{way:<6} {kind:<6} {statistics.median(ratios):.3f} ({min(ratios):.3f} - {max(ratios):.3f})"
              f"   fio after over before {min(drift):.3f} - {max(drift):.3f}")
sums = {}
for row in rows:
    if row["way"] == "both":
        ours, fios = sums.setdefault(row["round"], [0, 0])
        mean = (row["fio_before_bytes_per_s"] + row["fio_after_bytes_per_s"]) / 2
        sums[row["round"]] = [ours + row["sortmill_bytes_per_s"], fios + mean]
ratios = [ours / fios for ours, fios in sums.values()]
print(f"both   sum    {statistics.median(ratios):.3f} ({min(ratios):.3f} - {max(ratios):.3f})")
print(out)
PYTHON
