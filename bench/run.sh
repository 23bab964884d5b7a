#!/usr/bin/env bash
# The benchmark: see bench/compare.py, whose flags it takes.
#   bench/run.sh --cases memory-sweep --rounds 1 --records 1000000
#   bench/run.sh --check
# Data go to $BENCH_DIR (default large/bench, which git ignores) and are deleted at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

# What only reads and writes text needs neither a build nor a disk.
case " $* " in
*" --check "* | *" --readme "* | *" --help "* | *" --space-only "*) exec python3 bench/compare.py "$@" ;;
esac

python3 bench/compare.py --space-only "$@"

# COMMAND PACKAGE: whether it is there, or could be installed.
install() {
	command -v "$1" >/dev/null && return
	[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
	apt-get install -y -q "$2" >&2 || { apt-get update -q >&2 && apt-get install -y -q "$2" >&2; }
}
install fio fio || { echo "bench: fio is missing; install it (Debian: apt-get install fio) and try again" >&2; exit 2; }
# Without these a contestant, or one of its settings, takes no part; the table says so.
install lz4 lz4 || echo "bench: without lz4, which is one setting of GNU sort" >&2
install java default-jre-headless || echo "bench: without Java, so without PySpark" >&2

make --no-print-directory build
exec python3 bench/compare.py "$@"
