"""One broker and one Spark for the whole session, and a new queue for every test."""

import contextlib
import os
import sys
import uuid

import class_archive
import generated
import pytest
import used_versions
from chosen_brokers import Artemis, Classic
from hypothesis import HealthCheck, is_hypothesis_test, settings
from waiting import wait_until

from pyspark_jms import testing
from pyspark_jms.errors import EmbeddedBrokerError


def pytest_addoption(parser):
    parser.addoption(
        "--tested", metavar="FILE", help="write the versions that the run used into FILE, if all tests pass"
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "examples: generates its cases; `make test-deep` runs it again with all")
    os.environ.update(class_archive.environment())
    # no deadlines: a busy machine is slow
    settings.register_profile(
        "pyspark-jms",
        max_examples=generated.examples(100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("pyspark-jms")


def pytest_collection_modifyitems(items):
    """Mark the tests by their fixtures, and those that generate their cases.

    `make unit` leaves out the tests with a broker or a Spark. `make test-deep` runs the tests with generated cases
    again, with more cases.
    """
    marks = {
        **dict.fromkeys(("broker", "fresh_broker", "guarded", "killable", "restricted", "secured", "strict"), "broker"),
        "spark": "spark",
    }
    for item in items:
        for mark in {marks[fixture] for fixture in marks.keys() & set(item.fixturenames)}:
            item.add_marker(mark)
        if "examples" in item.fixturenames or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("examples")
    _put_together(items)


_DEAR = ("secured", "restricted", "guarded", "stage", "classic", "killable")
"""Brokers of the session that few modules need. Each worker of xdist that needs one starts its own."""


def _put_together(items):
    """Let modules that need the same of these brokers follow each other: workers get contiguous parts of all tests."""
    needed, begins = {}, {}
    for item in items:
        needed.setdefault(item.path, set()).update(item.fixturenames)
    for place, (path, fixtures) in enumerate(needed.items()):
        dear = next((name for name in _DEAR if name in fixtures), path)
        needed[path] = begins.setdefault(dear, place)
    items.sort(key=lambda item: needed[item.path])


_NEEDS_EMBEDDED = ("JMS_BROKER_URL", "acceptor for CORE")
"""Parts of the remedies of the errors about a broker that is not embedded."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    return (yield from _skip_without_embedded_broker())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from _skip_without_embedded_broker())


def _skip_without_embedded_broker():
    """With JMS_BROKER_URL, skip the tests that need an embedded broker."""
    try:
        return (yield)
    except EmbeddedBrokerError as error:
        if "JMS_BROKER_URL" not in os.environ or not any(fact in error.remedy for fact in _NEEDS_EMBEDDED):
            raise
        pytest.skip(str(error))


_MEASUREMENT = "measurement"


@pytest.fixture
def report(request):
    """``report(line)``: print a measurement in the last lines of the run, also of failed tests."""
    return lambda line: request.node.user_properties.append((_MEASUREMENT, line))


@pytest.fixture
def tested(request):
    """``tested(name, version)``: what the test used, for the compatibility matrix."""
    return lambda name, version: request.node.user_properties.append((used_versions.KEY, (name, version)))


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """Print the measurements of all workers, and write the versions that they used.

    The workers of pytest-xdist come here too, and know only whether their own tests passed.
    """
    file = config.getoption("--tested")
    if file and exitstatus == pytest.ExitCode.OK and not hasattr(config, "workerinput"):
        used_versions.write(file, terminalreporter.stats.get("passed", []))
    for reports in terminalreporter.stats.values():
        for ended in reports:
            if getattr(ended, "when", None) == "teardown":
                _print_measurements(terminalreporter, ended)


def _print_measurements(terminalreporter, ended):
    for name, line in ended.user_properties:
        if name == _MEASUREMENT:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def artemis():
    """An embedded Artemis of the session."""
    with Artemis(heap="1g") as shared:
        yield shared


@pytest.fixture(scope="session")
def broker(request):
    """The broker of JMS_BROKER_URL, or ``artemis``. To kill one use ``killable``, for settings ``fresh_broker``.

    ``artemis`` must not ask for this one: for a file with a ``broker`` of its own that has parameters, pytest would
    make it anew, and end the broker of the session.
    """
    if "JMS_BROKER_URL" not in os.environ:
        yield request.getfixturevalue("artemis")
        return
    with testing.broker() as shared:
        yield shared


@pytest.fixture(scope="module")
def java(broker):
    """A JMS client of the broker, for all tests of a file."""
    with testing.JmsClient(broker) as client:
        yield client


@pytest.fixture(scope="session")
def classic():
    with Classic() as shared:
        yield shared


@pytest.fixture(scope="session")
def _killable():
    with Artemis() as shared:
        yield shared


@pytest.fixture
def killable(_killable):
    """An embedded Artemis of the session that a test may kill and start again. Its queues may have old messages."""
    return _killable.start()


@pytest.fixture
def fresh_broker():
    """``fresh_broker(**options)`` starts an Artemis for the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(Artemis(**options))


@pytest.fixture
def examples():
    """``examples(count)``: how many cases a test generates if it does not use hypothesis."""
    return generated.examples


@pytest.fixture
def queue(request):
    """A new queue name, also on a broker that other sessions use. It does not end in a number, as registers do."""
    return f"{request.node.originalname}.q{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    with pytest.MonkeyPatch.context() as environment:
        # Without it Spark starts its workers with the first python3 on the PATH, which may be another one.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("JMS_PASSWORD", "artemis")  # what the blocks of the pages read
        session = _spark_session(tmp_path_factory.mktemp("spark"))
        _start_once(session, tmp_path_factory.mktemp("first"))
        yield session
        session.stop()


@pytest.fixture
def set_spark(spark, request):
    """``set_spark(name, value)``: a setting of the session until the end of the test."""

    def change(name, value):
        before = spark.conf.get(name, None)
        spark.conf.set(name, value)
        request.addfinalizer(lambda: spark.conf.unset(name) if before is None else spark.conf.set(name, before))

    return change


def _start_once(session, checkpoint):
    """Two first starts at the same time can break the session: docs/errors.md, "Errors of Spark"."""
    frame = session.readStream.format("jms").options(brokerUrl="stomp://127.0.0.1:1", queue="none").load()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    wait_until(lambda: not query.status["message"].startswith("Initializing"), what="the first start")
    query.stop()


def _spark_session(directory):
    from pyspark.sql import SparkSession  # imported here: takes half a second, which `make unit` saves

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
