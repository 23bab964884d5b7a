# The project's everyday commands. `make` alone lists them.

SHELL := /bin/bash
CARGO ?= cargo
SORTMILL := target/release/sortmill
# What a test needs beyond the defaults: altering records at a stage border.
TEST_FEATURES := --features sortmill/tamper

# What builds and tests the Python package; DuckDB, networkx and Arrow's libraries are what it is held against.
PYTHON_TOOLS := 'maturin>=1.9,<2' 'pytest>=8' 'pytest-xdist>=3.6,<4' 'mypy>=1.15' 'cloudpickle>=3' pyarrow numpy pandas polars 'duckdb>=2,<3' \
	'networkx>=3.2,<4'

# The C library is part of the command where it can be (glibc, and its archive is there): a process that sorts a few
# lines begins sooner than its libraries are found, mapped and bound, and its own addresses with them. And what such a
# process runs lies side by side. A linker that reads no scripts, as mold, wants `make build LINKED_IN=`.
comma := ,
LINKED_IN = $(and $(filter %-linux-gnu,$(shell rustc -vV)),$(filter /%,$(shell cc -print-file-name=libc.a)),\
	-C target-feature=+crt-static -C relocation-model=static -C link-arg=-Wl$(comma)-T$(comma)crates/sortmill-cli/first.ld)

# What `make train` recorded of jobs, once it has: release builds are optimised by it.
TRAINED = $(if $(shell ls target/jobs.profdata 2>/dev/null),\
	RUSTFLAGS="$$RUSTFLAGS -Cprofile-use=$(CURDIR)/target/jobs.profdata")
# The Python package in .venv, of this profile.
DEVELOP = VIRTUAL_ENV=$(CURDIR)/.venv PATH=$(CURDIR)/.venv/bin:$$PATH maturin develop -q

# Where `make install` puts things; DESTDIR goes in front, for packages.
PREFIX ?= /usr/local
SHARE = $(DESTDIR)$(PREFIX)/share

.DEFAULT_GOAL := help
.PHONY: help build train wheel install uninstall demo test test-python test-free-threaded check bench bench-shapes bench-pipelines bench-programs bench-functions bench-foreseen bench-compress-temp bench-generators bench-kernels side-by-side profile soak clean

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

build: ## build the command, target/release/sortmill
	$(TRAINED) $(CARGO) rustc --release -p sortmill-cli --bin sortmill -- $(LINKED_IN)

train: .venv/built ## record what jobs do, by which every later release build is optimised (ten minutes, 1 GB of disk)
	bench/train.sh

target/jobs.profdata:
	$(MAKE) --no-print-directory train

wheel: .venv/built ## a wheel of the Python package, in target/wheels
	$(TRAINED) .venv/bin/maturin build --release

install: build ## install command, man pages and completions (PREFIX=/usr/local DESTDIR=)
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/man/man1 $(SHARE)/bash-completion/completions \
		$(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -m 755 $(SORTMILL) $(DESTDIR)$(PREFIX)/bin/sortmill
	$(SORTMILL) man $(SHARE)/man/man1
	$(SORTMILL) completions bash > $(SHARE)/bash-completion/completions/sortmill
	$(SORTMILL) completions zsh > $(SHARE)/zsh/site-functions/_sortmill
	$(SORTMILL) completions fish > $(SHARE)/fish/vendor_completions.d/sortmill.fish

uninstall: ## remove what `make install` put there
	rm -f $(DESTDIR)$(PREFIX)/bin/sortmill $(SHARE)/man/man1/sortmill.1 $(SHARE)/man/man1/sortmill-*.1 \
		$(SHARE)/bash-completion/completions/sortmill $(SHARE)/zsh/site-functions/_sortmill \
		$(SHARE)/fish/vendor_completions.d/sortmill.fish

demo: build ## sort 1 GB in 256 MiB, check it, show the report (3 GB of disk, for a minute)
	@set -e; trap 'rm -rf large/demo' EXIT; trap 'exit 130' INT TERM; \
	mkdir -p large/demo; set -x; \
	$(SORTMILL) gen records 10000000 large/demo/in.bin; \
	$(SORTMILL) sort --format fixed:100 --key 0:10 --memory 256MiB --temp large/demo \
		-o large/demo/out.bin large/demo/in.bin --report large/demo/report.json; \
	$(SORTMILL) check --format fixed:100 --key 0:10 large/demo/out.bin; \
	$(SORTMILL) report large/demo/report.json

test: .venv/built ## run every test, Python's too, then those under the seeded scheduler
	$(CARGO) test --workspace $(TEST_FEATURES)
	$(MAKE) --no-print-directory test-python
	$(CARGO) test -p sortmill --features shuttle --test it

test-python: .venv/built ## the tests of the Python package alone, and its types
	$(DEVELOP) --profile dev --features tamper
	.venv/bin/python -m pytest -q -n 2 --dist worksteal
	.venv/bin/mypy

# abi3 is not for such an interpreter, so the module is built for it alone (PyO3: from 3.14 on).
test-free-threaded: ## the same where functions run in threads, on an interpreter without a GIL (PYTHON=python3.14t)
	$(PYTHON) -c 'import sys; sys.exit(sys._is_gil_enabled() and "this interpreter has a GIL")'
	$(PYTHON) -m venv .venv-free-threaded
	.venv-free-threaded/bin/pip install -q 'maturin>=1.9,<2' 'pytest>=8' 'cloudpickle>=3'
	VIRTUAL_ENV=$(CURDIR)/.venv-free-threaded .venv-free-threaded/bin/maturin develop -q --profile dev --features tamper
	.venv-free-threaded/bin/python -m pytest -q tests/test_threads.py

# What builds and tests the package, in a virtual environment of its own.
.venv/built: Makefile
	python3 -m venv .venv
	.venv/bin/pip install -q $(PYTHON_TOOLS)
	touch $@

check: ## formatting, lints, house rules
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets $(TEST_FEATURES) -- -D warnings
	$(CARGO) clippy -p sortmill --all-targets --features shuttle -- -D warnings
	$(CARGO) clippy -p sortmill-cli --no-default-features -- -D warnings
	$(CARGO) test --workspace $(TEST_FEATURES) --test it tidy
	cd bench && python3 -m unittest -q test_bench
	bench/run.sh --check
	python3 bench/shapes.py --check
	python3 bench/side_by_side.py --check
	python3 bench/compress_temp.py --check
	python3 bench/generators.py --check
	python3 bench/pipelines.py --check
	python3 bench/programs.py --check
	python3 bench/functions.py --check

bench: target/jobs.profdata ## time every case against its peers and the disk's floor, and programs on pipelines (45 GB of disk, hours; goes on where it was cut off)
	bench/run.sh --resume
	bench/run.sh --readme
	$(MAKE) bench-programs bench-functions

profile: build ## what each stage costs: a job of 1 GB ended after each in turn (4 GB of disk, a few minutes)
	bench/run.sh --cases steps --records 10000000 --rounds 3

bench-shapes: build ## time skewed, ordered and long records beside uniform ones, and pipes (30 GB of disk, two hours)
	python3 bench/shapes.py --resume
	python3 bench/shapes.py --write

bench-pipelines: build ## time a day's pipelines with GNU's programs and with this one (20 GB of disk, two hours)
	python3 bench/pipelines.py
	python3 bench/pipelines.py --write

bench-programs: target/jobs.profdata build .venv/built ## time programs on pipelines with four others and this one (40 GB of disk, two hours)
	$(TRAINED) $(CARGO) build --release -p sortmill --example pagerank
	$(TRAINED) $(DEVELOP) --release
	python3 bench/programs.py --resume
	python3 bench/programs.py --write

bench-functions: target/jobs.profdata .venv/built ## how fast batches pass through Python functions, and what processes that die cost (a quarter of an hour, 25 GB of disk)
	$(TRAINED) $(DEVELOP) --release
	.venv/bin/python bench/functions.py
	python3 bench/functions.py --write

side-by-side: ## what GNU sort and Sortmill leave behind when things go wrong (root, FUSE, 5 minutes, 2 GB of disk)
	bench/side_by_side.sh

bench-foreseen: build ## plans beside what came of them, and guesses of the time left (10 minutes, 6 GB of disk)
	python3 bench/foreseen.py

bench-compress-temp: build ## what compressing temporary data is worth, by what binds the job (root, half an hour, 10 GB of disk)
	python3 bench/compress_temp.py
	python3 bench/compress_temp.py --write

bench-generators: build ## how fast each kind of test data is made (some minutes, no disk)
	python3 bench/generators.py
	python3 bench/generators.py --write

bench-kernels: ## time the innermost loops, each beside what was tried instead (some minutes; KERNELS="sort gather")
	$(CARGO) bench -p sortmill --bench kernels -- $(KERNELS) \
		> bench/runs/$$(date +%F)-$$(git rev-parse --short HEAD)-kernels.csv

# One part: fresh seeds for SOAK_MINUTES, each bounded to 5 minutes, so that a part takes at most 25.
# A failure is repeated with the SEED it names; the next part goes on from the SEED printed last.
SOAK_MINUTES ?= 20
# Orders of lines that each seed holds against the installed sort; command lines are a tenth as many.
SOAK_CASES ?= 20000
SOAK_TESTS := installed_sort planted drawn_at_random
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')

soak: ## run the seeded tests over new seeds for 20 minutes (SEED=... begins at one)
	@$(CARGO) test -p sortmill --features shuttle --test it --no-run
	@$(CARGO) test --workspace $(TEST_FEATURES) --test it --no-run
	@seed=$(SEED); end=$$((SECONDS + 60 * ($(SOAK_MINUTES) < 20 ? $(SOAK_MINUTES) : 20))); \
	while [ $$SECONDS -lt $$end ]; do \
		echo "soak: SEED=$$seed"; \
		SEED=$$seed timeout --foreground 300 $(CARGO) test -q -p sortmill --features shuttle --test it faults || { \
			echo "soak: failed, repeat it with: make soak SEED=$$seed" >&2; exit 1; }; \
		SEED=$$seed CASES=$(SOAK_CASES) timeout --foreground 300 \
			$(CARGO) test -q --workspace $(TEST_FEATURES) --test it -- $(SOAK_TESTS) || { \
			echo "soak: failed, repeat it with: make soak SEED=$$seed" >&2; exit 1; }; \
		seed=$$((seed + 1)); \
	done; \
	echo "soak: no failure; go on with: make soak SEED=$$seed"

clean: ## delete what was built, generated and downloaded (target, large, .venv)
	$(CARGO) clean
	rm -rf large .venv
