# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
ENGINES := .venv-engines/bin
FLINK := .venv-flink/bin
SPARK := .venv-spark/bin
RUST := $(shell find rust/arrow rust/core rust/kafka rust/python -name '*.rs' -o -name 'Cargo.toml' 2>/dev/null)

.PHONY: help demo test test-engines test-flink test-kafka test-spark check check-k picture bench bench-quick bench-engines \
	bench-engines-quick engine-jars soak wheel clean
help:
	@echo "make demo    install into .venv and show what zveil does"
	@echo "make test    install into .venv and run every test"
	@echo "make test-engines   put all engines to the test (needs Java 17 and Maven)"
	@echo "make test-kafka     Kafka alone, on a real broker"
	@echo "make test-spark     Spark alone, on a cluster of two workers"
	@echo "make test-flink     Flink alone, on a cluster of two TaskManagers"
	@echo "make check   lints and types: ruff, mypy, stubs against the module, rustfmt, clippy"
	@echo "make check-k hold the audit's k against an independent program"
	@echo "make bench   measure side by side with the peers (about half an hour)"
	@echo "make bench-engines  measure the engines the same way"
	@echo "make picture make the picture of the console in the documents anew"
	@echo "make soak    hours of stream with kills in between: SOAK=2h, or as long as you like"
	@echo "make wheel   build the wheel and test it in a clean environment"

.venv/ready: pyproject.toml Cargo.toml Cargo.lock $(RUST)
	@command -v cargo >/dev/null || { echo "zveil needs a Rust toolchain: see rustup.rs"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "zveil needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || { echo "making .venv ..."; $(PYTHON) -m venv .venv; }
	@echo "installing (the first build takes some minutes) ..."
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --group test --group check 'maturin>=1.9,<2'
	@PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --release --quiet
	@touch $@

demo: .venv/ready
	@$(BIN)/zveil demo

# Files of tests side by side, as many as there are cores; each file's in their order.
AT_ONCE := --numprocesses auto --dist loadfile

test: .venv/ready
	cargo test --quiet
	$(BIN)/python -m pytest $(AT_ONCE)

# What is missing is said before anything is built.
engine-jars:
	@$(PYTHON) tests/engines/jars.py >/dev/null

# The engines do not install side by side: their ranges of pyarrow exclude each other.
.venv-engines/ready .venv-spark/ready .venv-flink/ready: .venv-%/ready: .venv/ready pyproject.toml
	@test -x .venv-$*/bin/python || { echo "making .venv-$* ..."; $(PYTHON) -m venv .venv-$*; }
	@.venv-$*/bin/python -m pip install --quiet --upgrade pip
	@.venv-$*/bin/python -m pip install --quiet --group test-$*
	@PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/.venv-$* $(BIN)/maturin develop --release --quiet
	@touch $@

# One engine behind the other: each wants the machine for itself.
test-engines: test-kafka test-spark test-flink

# Most of it is waiting, for groups to form and brokers to start: so more at once than there are cores.
test-kafka: engine-jars .venv-engines/ready .venv-spark/ready .venv-flink/ready
	$(ENGINES)/python -m pytest --numprocesses 3 --dist worksteal tests/engines --ignore tests/engines/spark \
		--ignore tests/engines/flink

test-spark: .venv-spark/ready
	$(SPARK)/python -m pytest tests/engines/spark

test-flink: engine-jars .venv-flink/ready
	$(FLINK)/python -m pytest tests/engines/flink

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest zveil._native
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings

check-k: .venv/ready
	$(BIN)/python tests/check_k.py .venv-check-k

picture: .venv/ready
	$(BIN)/python tests/console/picture.py docs/images/console.png

bench bench-quick: .venv/ready
	@$(BIN)/python -m pip install --quiet --requirement benchmarks/requirements.txt ./benchmarks/peers
	$(BIN)/python benchmarks/run.py $(if $(filter bench-quick,$@),--quick)

bench-engines bench-engines-quick: engine-jars .venv-engines/ready .venv-spark/ready .venv-flink/ready
	$(ENGINES)/python benchmarks/engines/run.py $(if $(filter bench-engines-quick,$@),--quick)

SOAK ?= 2h
soak: .venv/ready
	@$(BIN)/python benchmarks/soak.py --for $(SOAK)

# Without the tests that kill and starve the program for minutes: a wheel behaves there as the build does.
wheel: .venv/ready
	rm -rf dist .venv-wheel
	$(BIN)/maturin build --release --quiet --out dist
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --upgrade pip
	.venv-wheel/bin/python -m pip install --quiet --group test dist/*.whl
	cp -r tests dist/tests
	cd dist/tests && ../../.venv-wheel/bin/python -m pytest $(AT_ONCE) --quiet -p no:cacheprovider --ignore repository \
		--ignore-glob '*/test_killed_*' --ignore state/test_failing_disk.py .
	.venv-wheel/bin/zveil demo >/dev/null
	rm -rf dist/tests

clean:
	rm -rf .venv .venv-engines .venv-flink .venv-spark .venv-wheel .venv-check-k dist target benchmarks/peers/target
