# Everything a contributor or CI runs. `make help` lists the targets; each one sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
export PYTHONWARNINGS =

.DEFAULT_GOAL := help
.PHONY: help setup check lint types layers mirror reference format test unit demo bench-quick broker clean

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install everything into it

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pyspark-jms needs Python 3.11 or newer: make setup PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(READY)

check: lint types layers mirror reference ## the static checks: style, types, layers, a test file for every module, pages up to date

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

mirror: $(READY)
	$(BIN)/python tools/mirror.py

reference: $(READY)
	$(BIN)/python tools/reference.py --check

format: $(READY) ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check ## everything a change must pass, on a real broker and a real Spark
	$(BIN)/python -m pytest

unit: $(READY) ## the tests that need neither broker nor Spark
	$(BIN)/python -m pytest -m 'not broker and not spark'

demo: $(READY) ## a broker, a Spark job, orders in and out: the main job in one command
	$(BIN)/pyspark-jms demo

broker: $(READY) ## run the embedded broker until Ctrl-C
	$(BIN)/pyspark-jms broker

bench-quick: $(READY) ## raw socket, stomp.py and Spark on one queue, under 3 minutes
	$(BIN)/python bench/quick.py

clean: ## remove what the targets above made
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
