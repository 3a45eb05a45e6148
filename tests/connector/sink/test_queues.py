"""What is sent to a topic as to a queue, and to a queue whose address has another name, on a real broker."""

import uuid

import pyarrow as pa
import pytest
from addresses import create_in, types_of
from proxy import Proxy
from streaming import access
from waiting import await_count

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.sink.sending_once import send_exactly_once
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.spark.protocols import connect_sink
from pyspark_jms.testing import EmbeddedArtemis

IS_TOPIC = "{} is a topic on the broker, and no queue"


def send(running, way, rows, **options):
    url = {} if way == "stomp" else {"brokerUrl": running.amqp_url}
    if way == "exactly once":
        options["deliveryGuarantee"] = "exactly-once"
    parsed = SinkOptions.parse(access(running) | url | options)
    batches = iter([pa.record_batch(rows)])
    if way != "exactly once":
        return send_at_least_once(connect_sink(parsed), parsed, batches)
    owner = LedgerOwner("query", uuid.uuid4().hex)
    task = LedgerTask(owner=owner, write="q/0", partition=0, batch=0, execution="first", may_be_repeated=False)
    return send_exactly_once(CommitLedger(parsed.connection, owner), parsed, task, batches).sent


@pytest.fixture
def topic(broker, queue):
    if not isinstance(broker, EmbeddedArtemis):
        pytest.skip("needs an embedded Artemis")
    broker.server.getActiveMQServerControl().createAddress(queue, "MULTICAST")
    yield queue
    assert types_of(broker, queue) == "[MULTICAST]"


@pytest.mark.parametrize("way", ["stomp", "amqp", "exactly once"])
def test_a_topic_is_not_written_to_as_a_queue_and_stays_a_topic(broker, topic, way):
    for _ in range(2):
        with pytest.raises(InvalidDestinationError, match=IS_TOPIC.format(topic)):
            send(broker, way, {"text": ["x"]}, queue=topic)
        with pytest.raises(InvalidDestinationError, match=f"row 1 of the task is refused: {IS_TOPIC.format(topic)}"):
            send(broker, way, {"text": ["x", "y"], "destination": [f"{topic}.other", f"queue://{topic}"]})
    assert send(broker, way, {"text": ["x"]}, topic=topic) == (1, 0)
    assert send(broker, way, {"text": ["x"], "destination": [f"topic://{topic}"]}) == (1, 0)


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_rows_to_a_topic_as_a_queue_can_be_dropped(broker, topic, way):
    rows = {"text": ["x", "y", "z"], "destination": [f"{topic}.other", topic, f"{topic}.other"]}
    assert send(broker, way, rows, onBadRow="drop") == (2, 1)
    assert broker.message_count(f"{topic}.other") == 2


@pytest.mark.parametrize("way", ["stomp", "amqp", "exactly once"])
def test_a_queue_whose_address_has_another_name_is_written_to_by_its_full_name(broker, queue, way):
    if not isinstance(broker, EmbeddedArtemis):
        pytest.skip("needs an embedded Artemis")
    create_in(broker, f"{queue}.address", queue)
    error = f"Queue {queue} belongs to address {queue}.address. .* Send to queue={queue}.address::{queue} "
    with pytest.raises(InvalidDestinationError, match=error):
        send(broker, way, {"text": ["x"]}, queue=queue)
    rows = {"text": ["x", "y"], "destination": [f"{queue}.other", f"queue://{queue}"]}
    with pytest.raises(InvalidDestinationError, match=f"row 1 of the task is refused: {error}"):
        send(broker, way, rows)
    full_name = f"{queue}.address::{queue}"
    assert send(broker, way, rows | {"destination": [f"queue://{full_name}", None]}, queue=full_name) == (2, 0)
    await_count(broker, queue, 2)
    assert types_of(broker, f"{queue}.address") == "[ANYCAST]"


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_one_subscription_is_written_to_as_a_topic_with_its_full_name(broker, topic, way):
    for name in ("one", "two"):
        create_in(broker, topic, f"{topic}.{name}", "MULTICAST")
    with pytest.raises(InvalidDestinationError, match=f"the queue of a topic.* Send to topic={topic}::{topic}.one "):
        send(broker, way, {"text": ["x"]}, queue=f"{topic}::{topic}.one")
    assert send(broker, way, {"text": ["x"]}, topic=f"{topic}::{topic}.one") == (1, 0)
    await_count(broker, f"{topic}.one", 1)
    assert broker.message_count(f"{topic}.two") == 0


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_a_queue_is_not_written_to_as_a_topic_and_stays_a_queue(broker, queue, way):
    if not isinstance(broker, EmbeddedArtemis):
        pytest.skip("needs an embedded Artemis")
    broker.create_queue(queue)
    with pytest.raises(InvalidDestinationError, match=f"{queue} is a queue on the broker, and no topic"):
        send(broker, way, {"text": ["x"]}, topic=queue)
    assert types_of(broker, queue) == "[ANYCAST]"


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_a_process_asks_for_a_queue_once(broker, queue, way):
    url = broker.url if way == "stomp" else broker.amqp_url
    with Proxy(broker.host, parse_broker_url(url)[0].port, way) as proxy:
        for connections in (2, 3):
            send(broker, way, {"text": ["x"]}, queue=queue, brokerUrl=proxy.url)
            assert proxy.accepted == connections
