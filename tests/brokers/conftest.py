"""The same tests on every broker. One broker runs at a time: from its first test to its last."""

import os
import uuid
from functools import partial

import brokers_page
import pytest
from amqp_brokers import AMQP_BROKERS
from broker_stage import Stage, require_rabbitmq
from chosen_brokers import BROKER_AS, Artemis, Classic
from installed_rabbit import InstalledRabbit
from rabbit4 import Rabbit4, require_rabbit4

RABBITMQ_4 = os.environ.get("RABBITMQ_4")
"""A release of Debian (``sid``, ``trixie``) whose RabbitMQ 4 stands for the installed RabbitMQ."""

BROKERS = {
    "artemis": Artemis,
    "classic": Classic,
    "rabbitmq": partial(Rabbit4, RABBITMQ_4) if RABBITMQ_4 else InstalledRabbit,
}
OF_SESSION = ("artemis", "classic")
"""Fixtures, and names of brokers."""


def pytest_collection_modifyitems(items):
    """Mark what starts a broker and a Spark. `make test` has the smoke test of each broker but Artemis, and on Artemis
    the other tests.
    """
    for item in items:
        if "tests/brokers" in item.path.as_posix() and "stage" in item.fixturenames:
            item.add_marker("broker")
            item.add_marker("spark")
            if ("test_smoke" in item.path.name) == (item.callspec.params.get("stage") == "artemis"):
                item.add_marker("deep")
    if BROKER_AS:
        others = {*BROKERS, *AMQP_BROKERS} - {BROKER_AS.partition("-")[0]}
        items[:] = [item for item in items if others.isdisjoint(_texts(item))]


def _texts(item):
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {each for each in parameters if isinstance(each, str)}


@pytest.fixture(scope="session", params=list(BROKERS))
def stage(request):
    """A running broker under its name, with a client of the tests' own."""
    if request.param in OF_SESSION:
        yield Stage(request.param, request.getfixturevalue(request.param))
        return
    if request.param == "rabbitmq":
        require_rabbit4(RABBITMQ_4) if RABBITMQ_4 else require_rabbitmq()
    with BROKERS[request.param]() as broker:
        yield Stage(request.param, broker)


@pytest.fixture(autouse=True)
def _no_query_is_left(request):
    yield
    if "spark" in request.fixturenames:
        for query in request.getfixturevalue("spark").streams.active:
            query.stop()


@pytest.fixture(autouse=True)
def _tested_broker(request, tested):
    if "stage" in request.fixturenames:
        stage = request.getfixturevalue("stage")
        tested(stage.name.partition(" ")[0], stage.version)


@pytest.fixture
def own_stage(request, stage):
    """The same broker a second time: to kill."""
    with BROKERS[stage.name]() as broker:
        yield Stage(stage.name, broker)


@pytest.fixture
def documented(stage):
    """The column STOMP in the table of this broker's page in docs/brokers, by the first cell of the row."""
    return brokers_page.facts(stage.name)


@pytest.fixture
def queues():
    """Two queue names that no other test uses."""
    return f"in.{uuid.uuid4().hex[:8]}", f"out.{uuid.uuid4().hex[:8]}"
