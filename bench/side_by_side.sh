#!/usr/bin/env bash
# What GNU sort and Sortmill leave behind when things go wrong: see bench/side_by_side.py. Needs root.
# A file system that lies takes FUSE 3 and a Python module, which goes to .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v fusermount3 >/dev/null || apt-get install -y -q fuse3 >&2 ||
	{ apt-get update -q >&2 && apt-get install -y -q fuse3 >&2; }
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/python -c 'import mfusepy' 2>/dev/null || .venv/bin/python -m pip install -q mfusepy==3.1.1
make --no-print-directory build
.venv/bin/python bench/side_by_side.py
.venv/bin/python bench/side_by_side.py --write
