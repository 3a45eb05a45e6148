# Everything a contributor or CI runs. `make help` lists the targets; each one sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SHARED := $(VENV)/spark.jsa
# Tests run side by side: most of their time is the start of a Spark or a broker. Each worker has its own of both.
WORKERS := -n 2 --dist worksteal
export PYTHONWARNINGS =

.DEFAULT_GOAL := help
.PHONY: help setup check lint types layers mirror sizes reference format test test-deep test-all unit faults soak demo bench bench-quick bench-long broker clean

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install everything into it

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pyspark-jms needs Python 3.11 or newer: make setup PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(READY)

check: lint types layers mirror sizes reference ## the static checks: style, types, layers, a test file for every module, sizes, pages up to date

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

mirror: $(READY)
	$(BIN)/python tools/mirror.py

sizes: $(READY)
	$(BIN)/python tools/sizes.py

reference: $(READY)
	$(BIN)/python tools/reference.py --check

$(SHARED): $(READY) tests/support/class_archive.py # drivers start with half the CPU; all works without it
	-$(BIN)/python tests/support/class_archive.py $@

format: $(READY) ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check $(SHARED) ## every promise once, on a real broker and a real Spark: what a change must pass
	$(BIN)/python -m pytest $(WORKERS) -m 'not deep and not container and not slow'

test-deep: check $(SHARED) ## what CI runs beside it: more brokers, more crashes, containers
	$(BIN)/python -m pytest $(WORKERS) -m 'deep and not container and not slow'
	$(BIN)/python -m pytest -m 'container and not slow'

test-all: check $(SHARED) ## that, and what takes long: every promise on every broker
	$(BIN)/python -m pytest

unit: $(READY) ## the tests that need neither broker nor Spark
	$(BIN)/python -m pytest -m 'not broker and not spark'

faults: $(SHARED) ## every fault at every point: what is lost, what comes twice (an hour; ARGS="--mode journal --list")
	$(BIN)/python tests/faults/matrix.py $(ARGS)

soak: $(SHARED) ## random kills, N=200 of them; SEED=… plays the same plan again
	$(BIN)/python tests/faults/soak.py --kills $(or $(N),200) $(if $(SEED),--seed $(SEED))

demo: $(READY) ## a broker, a Spark job, orders in and out: the main job in one command
	$(BIN)/pyspark-jms demo

broker: $(READY) ## run the embedded broker until Ctrl-C
	$(BIN)/pyspark-jms broker

bench: $(READY) ## the connector beside everything a user could pick instead, under 25 minutes; docs/performance.md
	$(BIN)/python -m bench.full --docs

bench-quick: $(READY) ## raw socket, a naive source and ours on one queue, under 3 minutes
	$(BIN)/python -m bench.quick

bench-long: $(READY) ## growth and a soak, hours; WHAT="size soak" for some of it
	$(BIN)/python -m bench.long --docs $(WHAT)

clean: ## remove what the targets above made
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
