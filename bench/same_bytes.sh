#!/usr/bin/env bash
# How long fio takes to move the bytes that a sort of 10 GB moves, phase by phase, beside the sort itself: what the
# floor F, which is made of rates of seconds, leaves out. Fio reads and writes at once, in sequence, as the sort does:
#   distribute   reads the input, writes what does not fit in memory to reserved, new space
#   sort         reads that back, writes the output over it
# Direct, io_uring, 1 MiB, 32 in flight each way, buffers in huge pages. In turn, from a cold page cache.
#   ROUNDS=3 MEMORY=2GiB bench/same_bytes.sh [DIR]
# Files (20 GB) go to DIR (default large/same-bytes, which git ignores) and are deleted at the end. Raw results are
# appended to bench/runs/<date>-<commit>-same-bytes.csv. Needs fio, Python 3.11, and root for the page cache.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${ROUNDS:-3} memory=${MEMORY:-2GiB} folder=${1:-large/same-bytes}
sortmill=target/release/sortmill bytes=10000000000

for needed in fio python3; do
	if ! command -v "$needed" >/dev/null; then
		echo "same_bytes: $needed is missing; install it and try again" >&2
		exit 2
	fi
done
make --no-print-directory build
mkdir -p "$folder"
trap 'rm -rf "$folder"/{in.bin,out.bin,fio.bin,report.json}; rmdir "$folder" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
commit=$(git rev-parse --short HEAD)
git diff --quiet HEAD -- crates || commit+=+
out=bench/runs/$(date -u +%F)-$commit-same-bytes.csv
[ -e "$out" ] || echo "round,who,memory,read_bytes,distribute_s,sort_s" >"$out"

cold() { sync; echo 3 >/proc/sys/vm/drop_caches; }
# Seconds until both ways are done, without fio's own start.
fio_s() {
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio --direct=1 --ioengine=io_uring --bs=1M --iodepth=32 --mem_align=2M \
		--fallocate=none --output-format=json "$@" | python3 -c '
import json, sys
jobs = json.load(sys.stdin)["jobs"]
print(max(job[way]["runtime"] for job in jobs for way in ("read", "write")) / 1000)'
}
way() { echo "--name=$1 --filename=$folder/$2 --rw=$1 --size=$3"; }

"$sortmill" gen records $((bytes / 100)) "$folder/in.bin"
for round in $(seq "$rounds"); do
	cold
	(cd bench && python3 -c 'import measure; measure.warm_memory(3 << 30)')
	"$sortmill" sort --format fixed:100 --key 0:10 --memory "$memory" --temp "$folder" --no-probe -q \
		--report "$folder/report.json" -o "$folder/out.bin" "$folder/in.bin"
	spilled=$(python3 - "$folder/report.json" "$out" "$round" "$memory" <<'PYTHON'
import json, sys

report, out, round_, memory = json.load(open(sys.argv[1])), *sys.argv[2:]
wall_s = {phase["name"]: phase["wall_ns"] / 1e9 for phase in report["phases"]}
spilled = report["bytes"]["temp_written"]
with open(out, "a") as file:
    print(round_, "sortmill", memory, spilled, f"{wall_s['distribute']:.2f}", f"{wall_s['sort']:.2f}", sep=",", file=file)
print(spilled)
PYTHON
	)
	rm "$folder/out.bin"
	fallocate -l "$bytes" "$folder/fio.bin"
	cold
	distribute_s=$(fio_s $(way read in.bin "$bytes") $(way write fio.bin "$spilled"))
	cold
	sort_s=$(fio_s $(way read fio.bin "$spilled") $(way write fio.bin "$bytes"))
	rm "$folder/fio.bin"
	echo "$round,fio,$memory,$spilled,$distribute_s,$sort_s" >>"$out"
done
cat "$out"
