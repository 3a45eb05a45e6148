"""What is sent to the name of a topic as to a queue, on a real broker."""

import pyarrow as pa
import pytest
from proxy import Proxy
from streaming import access

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
    owner = LedgerOwner("query", "q")
    task = LedgerTask(owner=owner, write="q/0", partition=0, batch=0, execution="first", may_be_repeated=False)
    return send_exactly_once(CommitLedger(parsed.connection, owner), parsed, task, batches).sent


def types_of(running, name):
    address = running.jvm.org.apache.activemq.artemis.api.core.SimpleString.of(name)
    return running.server.getAddressInfo(address).getRoutingTypes().toString()


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


@pytest.mark.parametrize("way", ["stomp", "amqp"])
def test_a_process_asks_for_a_queue_once(broker, queue, way):
    url = broker.url if way == "stomp" else broker.amqp_url
    with Proxy(broker.host, parse_broker_url(url)[0].port, way) as proxy:
        for connections in (2, 3):
            send(broker, way, {"text": ["x"]}, queue=queue, brokerUrl=proxy.url)
            assert proxy.accepted == connections
