"""The scratch queue of the conformance tests, on Artemis. tests/brokers/test_conformance.py runs all of them."""

import pytest
from rawstomp import RawStomp
from waiting import await_count

from pyspark_jms.check.conformance.queue import ConformanceQueue
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.network.address import parse_broker_url

pytestmark = pytest.mark.broker


@pytest.fixture(params=["stomp", "amqp"])
def scratch(request, broker, queue, settings_for):
    url = broker.url if request.param == "stomp" else broker.amqp_url
    return ConformanceQueue(settings_for(broker, addresses=parse_broker_url(url)), queue)


def test_rows_come_back_and_what_is_left_of_them_is_removed(scratch, broker):
    scratch.send([{"text": "a"}, {"text": "b", "properties": [("kind", "x")]}])
    with scratch.reader() as reader:
        assert [row["text"] for row in scratch.own(reader.receive(2))] == ["a", "b"]
        reader.acknowledge(1)
    await_count(broker, scratch.name, 1)
    scratch.remove_own()
    await_count(broker, scratch.name, 0)


def test_a_queue_with_a_message_of_somebody_else_is_refused_and_keeps_it(scratch, broker):
    scratch.send([{"text": "ours"}])
    with RawStomp(broker) as client:
        client.send(scratch.name, [([], "theirs")])
    with pytest.raises(InvalidDestinationError, match="has 1 messages that these tests did not send"):
        scratch.remove_own()
    await_count(broker, scratch.name, 2)
