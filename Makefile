# MemPlane: every task of this repository. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TESTS ?= tests
# So many tests at once; of those marked `alone`, one and nothing beside it.
WORKERS ?= 2
# Of `make chaos`: each run lasts until it has had both.
SECONDS ?= 90
OPERATIONS ?= 4000
SEED ?= 1
CHAOS = --seconds $(SECONDS) --operations $(OPERATIONS) --seed $(SEED)
# One OpenMP thread per process: two collapse on a busy machine.
export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help setup proto proto-check run demo test check quality chaos bench clean

help: ## List the tasks
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make the virtual environment .venv with everything in it

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,stores]'
	touch $(STAMP)

proto: $(STAMP) ## Generate the stubs in memplane/v1 from proto/
	$(BIN)/python tools/generate_proto.py

proto-check: $(STAMP) ## Check that the stubs are current and the contract keeps its rules
	$(BIN)/python tools/generate_proto.py --check
	$(BIN)/python tools/generate_proto.py --lint

run: $(STAMP) ## Start both planes on the embedded stores
	$(BIN)/memplane up

demo: $(STAMP) ## Show the main job end to end and stop
	$(BIN)/memplane demo

test: $(STAMP) check ## Run every test
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal $(TESTS)

check: $(STAMP) proto-check ## Lint, types, layers and stubs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

quality: $(STAMP) ## Measure memory quality on the data of MEMPLANE_EVAL_DATA into build/quality
	$(BIN)/python tools/measure_quality.py

chaos: $(STAMP) ## Break everything under load, on both kinds of stores, and judge what clients saw
	GRPC_ENABLE_FORK_SUPPORT=0 $(BIN)/python -m tests.chaos --stores embedded $(CHAOS)
	GRPC_ENABLE_FORK_SUPPORT=0 $(BIN)/python -m tests.chaos --stores company $(CHAOS)

bench: $(STAMP) ## Measure speed against the raw parts
	$(BIN)/python -m bench.run
	$(BIN)/python -m bench.servers

clean: ## Remove what the tasks made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
