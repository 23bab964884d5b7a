#!/usr/bin/env bash
# The main job against its peers and the disk's floor: see bench/compare.py, whose flags it takes.
#   bench/run.sh --rounds 3 --contestants sortmill,chdb
# Data go to $BENCH_DIR (default large/bench, which git ignores) and are deleted at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

python3 bench/compare.py --space-only "$@"

if ! command -v fio >/dev/null; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo "bench: fio is missing; install it (Debian: apt-get install fio) and try again" >&2
		exit 2
	fi
	apt-get install -y -q fio || { apt-get update -q && apt-get install -y -q fio; }
fi
cargo build --release -p sortmill-cli
exec python3 bench/compare.py "$@"
