"""Old releases: rows in, messages out, a killed broker, and ``check``. Without Spark."""

import contextlib
import json
import uuid

import pyarrow as pa
import pytest
from broker_rows import access_over
from old_brokers import ARTEMIS, BROKER_J, CLASSIC, OldArtemis, OldBrokerJ, OldClassic
from waiting import await_count, wait_until

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.source.peek import peek
from pyspark_jms.source.receiver import BatchReceiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.spark.protocols import connect_sink, reading_of
from pyspark_jms.tools import cli

pytestmark = [pytest.mark.broker, pytest.mark.deep]

COUNT = 300


everywhere = pytest.mark.parametrize(
    ("old", "protocol"),
    [("artemis", "stomp"), ("artemis", "amqp"), ("classic", "stomp"), ("classic", "amqp"), ("broker-j", "amqp")],
    indirect=["old"],
)


@pytest.fixture(scope="module")
def old(request):
    with {"artemis": OldArtemis, "classic": OldClassic, "broker-j": OldBrokerJ}[request.param]() as broker:
        yield request.param, broker


@pytest.fixture(autouse=True)
def _tested_broker(old, tested):
    tested(old[0], {"artemis": ARTEMIS, "classic": CLASSIC, "broker-j": BROKER_J}[old[0]])


@pytest.fixture
def access(old, protocol):
    return access_over(old[1], protocol)


@everywhere
def test_rows_come_back_also_when_the_broker_is_killed(old, access):
    _, broker = old
    queue = f"q.{uuid.uuid4().hex[:8]}"
    texts = [str(n) for n in range(COUNT)]
    sink, source = SinkOptions.parse(access | {"queue": queue}), SourceOptions.parse(access | {"queue": queue})
    assert send_at_least_once(connect_sink(sink), sink, iter([pa.record_batch({"text": texts})])) == (COUNT, 0)
    shown = peek(reading_of(source))
    assert sorted(text for batch in shown for text in batch.column("text").to_pylist()) == sorted(texts)
    with contextlib.closing(BatchReceiver(reading_of(source), StopRequest(), store=None, sequence=0)) as receiver:
        wait_until(lambda: receiver.next_batch_end() == COUNT)
        broker.kill()
        broker.start()
        wait_until(lambda: receiver.next_batch_end() == COUNT and receiver.progress()["recognised"] == COUNT)
        receiver.acknowledge_through(COUNT)
        wait_until(lambda: receiver.next_batch_end() == COUNT and receiver.progress()["acknowledged"] == COUNT)
    await_count(broker, queue, 0)


@everywhere
def test_the_check_finds_no_problem_and_tries_exactly_once(old, access, capsys):
    name, _ = old
    where = [
        "--broker-url",
        access["brokerUrl"],
        "--user",
        access["user"],
        "--option",
        f"password={access['password']}",
    ]
    assert cli.main(["check", *where, "--json"]) == 0
    findings = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    if access["brokerUrl"].startswith("amqp"):
        assert findings["dialect"]["value"] == name
        for kind in ("reading, staging", "writing, ledger"):
            assert findings[kind]["value"].startswith("exactly-once" if name == "artemis" else "at-least-once only")
