"""Runs the programs of the recipes as a reader does: in an empty folder, on the broker that the environment names."""

import contextlib
import os
import sys
from pathlib import Path

import class_archive
import own_process
import pytest

from pyspark_jms.testing import EmbeddedArtemis

FOLDER = Path(__file__).parent
READER = {"JMS_BROKER_URL", "JMS_AMQP_URL", "JMS_BROKER_USER", "JMS_BROKER_PASSWORD", "SPARK_REMOTE", "PYTHONPATH"}
"""Variables of the tests, which a reader of the page does not have."""


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == FOLDER and "recipes_broker" in item.fixturenames:
            item.add_marker("broker")
            item.add_marker("spark")


@pytest.fixture(scope="module")
def recipes_broker():
    """A broker without other queues: the recipes name their queues."""
    with EmbeddedArtemis(start_timeout=180) as broker:
        yield broker


@pytest.fixture
def environment(recipes_broker):
    """``environment(**more)``: the variables of a reader's shell."""

    def environment(python=sys.executable, **more):
        own = {key: value for key, value in os.environ.items() if key not in READER}
        submit = f"{class_archive.environment()['SPARK_SUBMIT_OPTS']} -Dspark.ui.enabled=false"
        quiet = {"PYSPARK_PYTHON": str(python), "SPARK_SUBMIT_OPTS": submit}
        urls = {"JMS_BROKER_URL": recipes_broker.url, "JMS_AMQP_URL": recipes_broker.amqp_url}
        return own | quiet | urls | {"PYTHONWARNINGS": "ignore"} | more

    return environment


@pytest.fixture
def run(environment, tmp_path):
    """``run(name, *arguments, **variables)``: the lines that the recipe printed."""

    def run(name, *arguments, python=sys.executable, seconds=550, **variables):
        how = {"cwd": tmp_path, "env": environment(python, **variables)}
        return own_process.run([python, FOLDER / name, *arguments], seconds=seconds, **how).stdout

    return run


@pytest.fixture
def start(environment, tmp_path):
    """``start(*command, **variables)``: a process that the test ends, or that ends with the test."""

    def start(*command, log="log", python=sys.executable, **variables):
        env = environment(python, **variables)
        return running.enter_context(own_process.started(command, tmp_path / log, cwd=tmp_path, env=env))

    with contextlib.ExitStack() as running:
        yield start
