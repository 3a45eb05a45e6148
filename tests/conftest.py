"""One broker and one Spark for the whole session; a queue of its own for every test."""

import contextlib
import os
import sys
import uuid

import class_archive
import pytest
from hypothesis import HealthCheck, settings

from pyspark_jms import testing
from pyspark_jms.errors import EmbeddedBrokerError


def pytest_configure():
    os.environ.update(class_archive.environment())
    # a busy machine is slow, and not wrong
    settings.register_profile("pyspark-jms", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("pyspark-jms")


def pytest_collection_modifyitems(items):
    """`make unit` leaves out what starts a broker or a Spark; asking for the fixture is the mark."""
    marks = {"broker": "broker", "fresh_broker": "broker", "spark": "spark"}
    for item in items:
        for fixture in marks.keys() & set(item.fixturenames):
            item.add_marker(marks[fixture])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    return (yield from _skipped_without_embedded_broker())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from _skipped_without_embedded_broker())


def _skipped_without_embedded_broker():
    """With JMS_BROKER_URL, what only the embedded broker can tell is not tested."""
    try:
        return (yield)
    except EmbeddedBrokerError as error:
        if "JMS_BROKER_URL" not in os.environ or "Only the embedded broker" not in error.fact:
            raise
        pytest.skip(str(error))


_FIGURE = "figure"


@pytest.fixture
def report(request):
    """``report(line)``: a figure that stands in the last lines of the run, whatever the verdict."""
    return lambda line: request.node.user_properties.append((_FIGURE, line))


def pytest_terminal_summary(terminalreporter):
    """Of all workers: what a test's report carries is brought here."""
    for reports in terminalreporter.stats.values():
        for ended in reports:
            if getattr(ended, "when", None) == "teardown":
                _say_figures(terminalreporter, ended)


def _say_figures(terminalreporter, ended):
    for name, line in ended.user_properties:
        if name == _FIGURE:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def broker():
    """The broker of JMS_BROKER_URL, or an embedded one. Never kill or reconfigure it: take ``fresh_broker``."""
    with testing.broker(max_delivery_attempts=10, heap="1g") as shared:
        yield shared


@pytest.fixture
def fresh_broker():
    """``fresh_broker(**options)`` starts an EmbeddedArtemis of the test's own."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(testing.EmbeddedArtemis(**options))


@pytest.fixture
def queue(request):
    """A queue name nobody used before, even on a broker that other sessions use too."""
    return f"{request.node.originalname}.{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    with pytest.MonkeyPatch.context() as environment:
        # Spark starts its workers with the first python3 of the PATH, which need not be this one.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        session = _spark_session(tmp_path_factory.mktemp("spark"))
        yield session
        session.stop()


def _spark_session(directory):
    from pyspark.sql import SparkSession  # half a second that `make unit` need not pay

    return (
        SparkSession.builder.master("local[2]")
        .appName("pyspark-jms tests")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.noDataProgressEventInterval", "500ms")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.warehouse.dir", str(directory))
        .getOrCreate()
    )
