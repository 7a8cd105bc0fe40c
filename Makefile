# Two commands do everything: `make demo` and `make test`. Both may be repeated and interrupted.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo
ROWS ?= 2000
SETUP := PYTHON="$(PYTHON)" VENV="$(VENV)" bash scripts/setup.sh
# Without bytecode each worker, and each process that a test starts, compiles the sources anew.
unexport PYTHONDONTWRITEBYTECODE
# Compiled kernels go where those of an installed package do, under a digest of their sources: a fresh
# clone does not compile again what this machine has compiled before.
KERNELS := $(or $(NUMBA_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/halfmask/kernels)

.DELETE_ON_ERROR:
.PHONY: help demo test check lint type layers unit thorough fmt bench data lock clean

# List what can be made.
help:
	@awk '/^# /{about=substr($$0, 3)} /^[a-z]+:/{split($$1, name, ":"); printf "make %-9s %s\n", name[1], about}' $(MAKEFILE_LIST)

# The environment to run halfmask; the stamp is written last.
$(VENV)/.run: requirements.txt pyproject.toml scripts/setup.sh
	$(SETUP) requirements.txt
	@touch $@

# The environment to develop it.
$(VENV)/.dev: requirements-dev.txt pyproject.toml scripts/setup.sh
	$(SETUP) requirements-dev.txt
	@touch $(VENV)/.run $@

# Run the main job on an invented table and say where the report lies.
demo: $(VENV)/.run
	$(BIN)/halfmask demo --rows $(ROWS) -o $(DEMO)

# Run everything a change must pass.
test: check unit

# Check style, types and layers without running the tests.
check: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs=2 lint type layers

# Check style and formatting.
lint: $(VENV)/.dev
	$(BIN)/ruff check src tests scripts benchmarks
	$(BIN)/ruff format --check src tests scripts benchmarks

# Check types.
type: $(VENV)/.dev
	$(BIN)/mypy

# Check that lower layers import no higher ones.
layers: $(VENV)/.dev
	$(BIN)/lint-imports

# Each worker takes one half in order, so that one starts Spark, which comes first, and mostly one
# PostgreSQL; who is done first takes from the other's end. There is a worker per core: more threads
# in each would only wait for each other.
# Run the tests.
unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_CACHE_DIR="$(KERNELS)" \
		$(BIN)/python -m pytest -q -n auto --dist worksteal

# Run the tests with all random examples, draws and steps.
thorough: $(VENV)/.dev
	HYPOTHESIS_PROFILE=thorough $(MAKE) --no-print-directory unit

# Format the code and mend what the linter can.
fmt: $(VENV)/.dev
	$(BIN)/ruff check --fix-only -q src tests scripts benchmarks
	$(BIN)/ruff format src tests scripts benchmarks

# Run the benchmarks; each prints JSON with ratios against a yardstick of the same run.
bench: $(VENV)/.dev
	@for file in benchmarks/*.py; do case $$file in */_*) continue;; esac; echo "$$file" >&2; $(BIN)/python "$$file" || exit 1; done

# Fetch the real tables that tests and benchmarks use where they have none.
data: $(VENV)/.dev
	$(BIN)/python scripts/fetch_data.py

# Pin the dependencies again, with hashes.
lock: $(VENV)/.dev
	VENV="$(VENV)" bash scripts/lock.sh

# Remove what can be made again, but not the environment.
clean:
	rm -rf $(DEMO) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
