"""The links of the sink on a real broker: what is encoded for which way of sending, and what confirms it."""

from contextlib import closing

import pyarrow as pa
import pytest
from rawstomp import take_texts
from streaming import access
from waiting import await_count

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.stomp.sink import StompSinkLink

pytestmark = pytest.mark.broker


def settings_of(broker, dialect="auto"):
    options = {"reconnectTimeout": "0", "transaction": "none", "broker": dialect}
    return SinkOptions.parse(access(broker) | options).connection


def encoded(link, queue, *texts, **how):
    rows = pa.record_batch({"text": list(texts)})
    return link.encode(
        rows, destination=Destination(DestinationKind.QUEUE, queue), property_columns=(), now_ms=0, **how
    )


def test_a_transaction_becomes_visible_with_its_commit(broker, queue):
    with closing(StompSinkLink(settings_of(broker))) as link:
        for block in encoded(link, queue, "a", "b"):
            link.send(block)
        assert take_texts(broker, queue) == []
        link.commit()
        for block in encoded(link, queue, "not committed"):
            link.send(block)
    assert take_texts(broker, queue) == ["a", "b"]


def test_each_message_outside_of_a_transaction_is_confirmed(broker, queue):
    address = f"/queue/{queue}"  # as Classic and RabbitMQ, which confirm single messages, are sent to
    broker.create_queue(address)
    with closing(StompSinkLink(settings_of(broker, "classic"))) as link:
        blocks = encoded(link, queue, "a", "b", "c", in_transaction=False, first_row=17)
        assert [b"\nreceipt:s%d\n" % row in bytes(block.data) for block in blocks for row in (17, 18, 19)] == [True] * 3
        for block in blocks:
            link.send(block, in_transaction=False)
        link.commit()
        await_count(broker, address, 3)
        link.commit()  # nothing is left to confirm


def test_a_broker_that_keeps_no_transactions_gets_none(broker, queue):
    with closing(StompSinkLink(settings_of(broker, "rabbitmq"))) as link:
        blocks = encoded(link, queue, "a")
        with pytest.raises(UnsupportedError, match="transaction=none"):
            link.send(blocks[0])
    assert take_texts(broker, queue) == []
