# The commands of contributors and CI. `make help` lists the targets; each target sets up what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
SHARED := $(VENV)/spark.jsa $(COMPILED)
# An environment for each release of Spark that `make test-spark` was called with.
OTHER  := build/spark-$(SPARK)
# The releases of Spark of `make test-older` and `make test-deep`. CI sets none.
OLDER  := 4.0.5 4.1.4 4.2.1
# Where tests have the marker `releases`: the others may import what an older PySpark does not have.
RELEASES := $(addprefix tests/connector/spark/test_,batch_reader.py releases.py source.py stream_reading.py writers.py) \
            $(addprefix tests/integration/test_,moving_between_releases.py reader_reads.py restarts.py selectors_in_a_query.py) \
            $(addprefix tests/recipes/test_,binary_bodies.py lakes.py)
# Of `make test-deep`: the Debian whose RabbitMQ 4 all tests over STOMP run on. Debian 12 has 3.10. CI sets none.
RABBITMQ_4 := sid
# Of `make test-deep`: a live broker and its backup. CI sets none.
PAIR       := tests/brokers/test_pair.py
# Of `make test-deep`: YARN and HDFS. CI sets none.
YARN       := tests/yarn
OVER_STOMP := $(addprefix tests/brokers/test_,every_broker.py smoke.py topics.py permissions.py between_clients.py)
# Of `make test-deep`: the brokers as people run them, of tests/support/chosen_brokers.py. CI sets none.
BROKERS_AS := artemis-as-created artemis-built-in classic-as-run classic-in-production
ON_ANY_BROKER := $(addprefix tests/brokers/test_,every_broker.py smoke.py topics.py between_clients.py batch_reads.py \
                 over_amqp.py table.py java_over_amqp.py)
ON_ARTEMIS := $(addprefix tests/integration/test_,amqp.py every_message.py journal.py reader_reads.py restarts.py dead_letters.py \
              dead_letter_queue.py admission.py outage.py selectors_in_a_query.py selectors_over_amqp.py round_trip.py)
# With PART=yes, Spark 4.0 runs all of them that are not slow, and the later releases what differs there.
PART   :=
DIFFER := $(addprefix tests/connector/spark/test_,releases.py writers.py) tests/integration/test_reader_reads.py
CHOSEN  = $(if $(PART),-m 'releases and not slow' $(if $(filter 4.0.%,$(SPARK)),$(RELEASES),$(DIFFER)),-m releases --tested tests/tested/$(SPARK).json $(RELEASES))
# PySpark before 4.2 leaves sockets to the garbage collector. In the environment: also for tests that run again.
UNCLOSED := ignore:unclosed:ResourceWarning
# Tests run in parallel: they wait more than they compute: for the start of a Spark or a broker, for a timeout. Each worker has its own Spark and broker.
WORKERS := -n 3 --dist worksteal
# Two where tests compute more than they wait: `make unit`, and another release of Spark, which each worker starts.
FEWER   := -n 2 --dist worksteal
UNIT    := 'not broker and not spark and not deep and not container and not slow'
# CI sets another command: tools/retry_failed.py.
PYTEST := $(BIN)/python -m pytest
export PYTHONWARNINGS =
# Containers often set it. Every process of the tests would then compile the tests and the package anew.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup check lint types layers mirror sizes reference format docs test test-deep test-yarn test-spark test-older test-all unit coverage faults soak demo bench bench-quick bench-long broker dist sbom clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv and install everything into it

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pyspark-jms needs Python 3.11 or newer: make setup PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(READY)

check: $(READY) ## run the static checks: style, types, layers, a test file for every module, sizes, pages up to date
	@$(MAKE) --no-print-directory -j 2 --output-sync types lint layers mirror sizes reference

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/imports.ini

layers: $(READY)
	$(BIN)/lint-imports

mirror: $(READY)
	$(BIN)/python tools/mirror.py

sizes: $(READY)
	$(BIN)/python tools/sizes.py

reference: $(READY)
	env -u JMS_BROKER_USER $(BIN)/python tools/reference.py --check
	$(BIN)/python tools/pictures.py --check

$(VENV)/spark.jsa: $(COMPILED) tests/support/class_archive.py # optional: drivers then start with half the CPU
	-$(BIN)/python tests/support/class_archive.py $@

$(COMPILED): $(READY) tests/support/compiled_zip.py # Spark's Python processes then start with half the CPU
	$(BIN)/python tests/support/compiled_zip.py
	@touch $@

format: $(READY) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check $(SHARED) ## test every guarantee once, on a real broker and a real Spark; a change must pass this
	$(PYTEST) $(WORKERS) -m 'not deep and not container and not slow'

test-deep: check $(SHARED) ## run the further tests of CI: more brokers, more crashes, containers, older releases of Spark
	EXAMPLES=1 $(PYTEST) $(WORKERS) -m '(deep or examples) and not container and not slow' --tested tests/tested/newest.json
	$(if $(RABBITMQ_4),RABBITMQ_4=$(RABBITMQ_4) $(PYTEST) $(WORKERS) -m 'not container' -k rabbitmq $(OVER_STOMP))
	$(if $(PAIR),$(PYTEST) $(PAIR))
	$(foreach as,$(BROKERS_AS),BROKER_AS=$(as) $(PYTEST) $(WORKERS) -m 'not container' $(ON_ANY_BROKER) $(if $(filter artemis-%,$(as)),$(ON_ARTEMIS)) &&) true
	$(PYTEST) -m 'container and not slow' tests/e2e
	$(if $(YARN),$(PYTEST) $(YARN))
	$(MAKE) --no-print-directory test-older PART=yes

test-yarn: $(READY) ## run queries on YARN and HDFS: processes die, nodes stop (20 minutes)
	$(PYTEST) tests/yarn --tested tests/tested/yarn.json

test-spark: $(READY) $(if $(SPARK),$(OTHER)/.ready) ## run the main tests on another release of Spark, in an environment of its own: SPARK=4.0.5
	@test -n "$(SPARK)" || { echo "name the release of PySpark: make test-spark SPARK=4.0.5"; exit 1; }
	NEWEST_PYTHON=$(BIN)/python PYTEST_ADDOPTS="-W $(UNCLOSED)" $(patsubst $(BIN)/%,$(OTHER)/bin/%,$(PYTEST)) $(FEWER) $(CHOSEN)

test-older: $(OLDER:%=build/spark-%/.ready) ## run the main tests on three older releases of Spark, one after the other
	for release in $(OLDER); do $(MAKE) --no-print-directory test-spark SPARK=$$release || exit 1; done

# All but PySpark is what $(VENV) has.
build/spark-%/.ready: $(READY) tests/support/compiled_zip.py
	$(BIN)/python -m venv --clear --without-pip build/spark-$*
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	    > "$$(build/spark-$*/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/newest.pth"
	$(BIN)/python -m pip --python build/spark-$*/bin/python install --quiet --ignore-installed 'pyspark==$*'
	build/spark-$*/bin/python tests/support/compiled_zip.py
	@touch $@

test-all: check $(SHARED) ## run all tests, including slow ones: every guarantee on every broker
	EXAMPLES=4 $(PYTEST)

unit: $(READY) ## run the tests of make test that need neither broker nor Spark
	$(PYTEST) $(FEWER) -m $(UNIT)

coverage: $(READY) ## run make unit, and measure the branches of wire, delivery and meaning that it takes
	$(PYTEST) $(FEWER) -m $(UNIT) --cov --cov-report=term --cov-report=html:build/coverage \
	    $(if $(GITHUB_STEP_SUMMARY),--cov-report=markdown-append:$(GITHUB_STEP_SUMMARY))

faults: $(SHARED) ## cause every fault at every point, and count lost and duplicate messages (two hours; ARGS="--mode journal --list")
	$(BIN)/python tests/faults/matrix.py $(ARGS)

soak: $(SHARED) ## kill processes at random, N=200 times; SEED=… repeats a plan (ARGS="--deaths --mode amqp")
	$(BIN)/python tests/faults/soak.py --kills $(or $(N),200) $(if $(SEED),--seed $(SEED)) $(ARGS)

docs: $(READY) ## build the documentation site into build/site; every warning and dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "To look at it: $(BIN)/python -m http.server -d build/site, then http://localhost:8000"

demo: $(READY) ## run the demo: a broker, a Spark job, orders in and out
	$(BIN)/pyspark-jms demo

broker: $(READY) ## run the embedded broker until Ctrl-C
	$(BIN)/pyspark-jms broker

bench: $(READY) ## compare the connector with all alternative clients, under 25 minutes; see docs/performance.md
	$(BIN)/python -m bench.compare full --docs

dist: $(READY) ## build wheel and source distribution twice, compare them, and write dist/ and its SHA256SUMS
	$(BIN)/python tools/distributions.py dist

sbom: $(READY) ## list what `pip install` of the wheel in dist/ installs: dist/pyspark-jms.cdx.json (CycloneDX)
	$(BIN)/python tools/sbom.py dist

bench-quick: $(READY) ## compare the connector with raw sockets and a naive source, over STOMP and AMQP, under 3 minutes
	$(BIN)/python -m bench.compare quick

bench-long: $(READY) ## measure growth and run a soak, for hours; WHAT="size soak" selects a part
	$(BIN)/python -m bench.long --docs $(WHAT)

clean: ## remove what the other targets created
	rm -rf $(VENV) build/site build/spark-* dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
	find bench connector selector tests tools -name __pycache__ -prune -exec rm -rf {} +
