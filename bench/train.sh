#!/usr/bin/env bash
# Records what jobs do, for builds that are optimised by it (profile-guided optimisation): which way branches go, how often
# functions are called. Builds command, Python package and PageRank so that they count, has them do small jobs of all kinds and
# adds up what they counted in target/jobs.profdata. `make build`, `make wheel` and all that `make bench` builds use it from then on.
#   make train       some ten minutes on two cores, 1 GB of disk
# LLVM's tool for that comes with rustup; without, LLVM_PROFDATA names it, of a version as new as rustc's.
set -euo pipefail
cd "$(dirname "$0")/.."

counting=$PWD/target/counting folder=$PWD/large/train made=target/jobs.profdata
tool=${LLVM_PROFDATA:-}
if [ -z "$tool" ]; then
	tool=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/llvm-profdata
	[ -x "$tool" ] || rustup component add llvm-tools || true
fi
if ! command -v "$tool" >/dev/null; then
	echo "train: $tool is missing; name LLVM's llvm-profdata, of a version as new as rustc's, with LLVM_PROFDATA" >&2
	exit 2
fi

# What was trained before is no part of what counts.
rm -rf "$made" "$counting/counts"
# Each by itself, as it is built later: with the features of another in it the engine would be another crate.
for what in "-p sortmill-cli" "-p sortmill-py" "-p sortmill --example pagerank"; do
	# shellcheck disable=SC2086
	env RUSTFLAGS="-Cprofile-generate=$counting/counts" cargo build --release --target-dir "$counting" $what
done
sortmill=$counting/release/sortmill pagerank=$counting/release/examples/pagerank

mkdir -p "$folder" "$counting/python"
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
rm -rf "$counting/python/sortmill"
cp -r python/sortmill "$counting/python/"
cp "$counting/release/lib_sortmill.so" "$counting/python/sortmill/_sortmill.abi3.so"

cd "$folder"
"$sortmill" gen records 1000000 records
"$sortmill" gen records --ascii 1000000 ascii
"$sortmill" gen zipf 500000 zipf
"$sortmill" gen pareto --bytes 50MB --largest 1MB pairs
"$sortmill" gen text --bytes 100MB text
"$sortmill" gen numbers --bytes 20MB numbers
"$sortmill" gen csv --bytes 50MB rows.csv
"$sortmill" gen json --bytes 50MB rows.jsonl
"$sortmill" gen clicks --bytes 150MB clicks
"$sortmill" gen graph --bytes 100MB edges
"$sortmill" gen graph --degree 12 200000 graph

# Each line is a job: words for the command.
while read -r words; do
	echo "train: sortmill $words" >&2
	# shellcheck disable=SC2086
	"$sortmill" $words </dev/null >/dev/null
done <<-'JOBS'
	sort -q --format fixed:100 --key 0:10 --memory 32MiB -o out records
	sort -q --format fixed:100 --key 0:10 --memory 512MiB -o out records
	check --format fixed:100 --key 0:10 out
	sort -q --format fixed:100 --key 0:10 --memory 64MiB -o out zipf
	sort -q --format fixed:100 --key 0:10 --memory 32MiB --verify -o out ascii
	sort -q --memory 32MiB -o out ascii
	sort -q --memory 512MiB -o out.zst ascii
	sort -q --memory 32MiB -o out ascii out.zst
	sort -q --format kv --memory 32MiB -o out pairs
	sort -q --memory 64MiB -o out text
	sort -q --memory 64MiB -k2,2 -k1,1n -o out clicks
	sort -q --memory 64MiB -n -o out numbers
	sort -q --memory 64MiB -g -r -o out numbers
	sort -q --memory 64MiB -t, -k3,3nr -k1,1f -o out rows.csv
	sort -q --memory 64MiB -u -o out edges
	sort -q --format csv --by note,-count:num --memory 64MiB -o out rows.csv
	sort -q --format jsonl --by id:num --memory 64MiB -o out rows.jsonl
	sort -q --memory 64MiB --compress-temp lz4 -o out text
	sort -q --memory 128MiB -V -o out.gz clicks
	sort -q --memory 128MiB -h -o out.lz4 numbers
	sort -q --memory 128MiB -d -f -i -s -k1 -o out text out.gz
	sort -q --format fixed:100 --key 0:8:signed:le --key 8:2:r --memory 64MiB --parts parts --part-count 4 records
	check --parts parts
	sort -q --memory 128MiB --on local:2 -o out ascii
	uniq -c -q --memory 256MiB -o out edges
	uniq -c -q --memory 64MiB -o out edges
	uniq -c -q --memory 64MiB -o out text
	count -q --memory 64MiB --by-count -n 20 -o out clicks
	top 100 -q -k2,2n -o out clicks
	shuffle -q --seed 7 --memory 32MiB -o out ascii
	sort -q -o sorted text
	merge -q -o out sorted sorted
JOBS

# NAME MEMORY INPUT
while read -r name memory input; do
	echo "train: $name" >&2
	PYTHONPATH=$counting/python "$OLDPWD/.venv/bin/python" "$OLDPWD/bench/our_programs.py" "$name" --memory "$memory" --threads 2 \
		--temp . -o out "$input" </dev/null
done <<-'PROGRAMS'
	word-count 500000000 text
	5-grams 100000000 text
	sessions 60000000 clicks
	sessions 500000000 clicks
	group-counts 500000000 edges
	distinct 500000000 edges
	group-counts 50000000 edges
	distinct 50000000 edges
	shuffle 60000000 ascii
	csv-groups 500000000 rows.csv
	csv-groups 50000000 rows.csv
PROGRAMS
echo "train: functions" >&2
PYTHONPATH=$counting/python "$OLDPWD/.venv/bin/python" "$OLDPWD/bench/train_functions.py" text rows.csv out
mkdir ranks ranks-python
echo "train: pagerank" >&2
"$pagerank" graph out ranks 3 >/dev/null
PYTHONPATH=$counting/python "$OLDPWD/.venv/bin/python" "$OLDPWD/examples/pagerank.py" graph out ranks-python 3 >/dev/null

cd "$OLDPWD"
"$tool" merge -o "$made" "$counting"/counts/*.profraw
ls -l "$made"
