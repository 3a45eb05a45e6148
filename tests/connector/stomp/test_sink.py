"""The links of the sink on a real broker: what is encoded for which way of sending, and what confirms it."""

import pyarrow as pa
import pytest
from rawstomp import RawStomp
from streaming import access
from waiting import await_count

from pyspark_jms.columns.sink_schema import SendDefaults
from pyspark_jms.delivery.ledger_owner import LedgerOwner
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import DeliveryMode, Destination, DestinationKind
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.stomp.sink import STOMP_SINK

pytestmark = pytest.mark.broker


def settings_of(broker, dialect="auto"):
    options = {"reconnectTimeout": "0", "transaction": "none", "broker": dialect}
    return SinkOptions.parse(access(broker) | options).connection


def defaults(queue, **changed):
    usual = {"delivery_mode": DeliveryMode.PERSISTENT, "priority": 4, "time_to_live_ms": 0, "delivery_delay_ms": 0}
    return SendDefaults(destination=Destination(DestinationKind.QUEUE, queue), **usual | changed)


def encoded(link, queue, *texts, **how):
    rows = pa.record_batch({"text": list(texts)})
    return link.encode(rows, defaults=defaults(queue), property_columns=(), now_ms=0, **how)


def bodies(broker, queue):
    with RawStomp(broker) as client:
        return sorted(message.body.decode() for message in client.read(queue, quiet=0.3))


def test_a_transaction_becomes_visible_with_its_commit(broker, queue):
    with STOMP_SINK.connect(settings_of(broker)) as link:
        link.require_transactions()
        for block in encoded(link, queue, "a", "b"):
            link.send(block)
        assert bodies(broker, queue) == []
        link.commit()
        for block in encoded(link, queue, "not committed"):
            link.send(block)
    assert bodies(broker, queue) == ["a", "b"]


def test_each_message_outside_of_a_transaction_is_confirmed(broker, queue):
    with STOMP_SINK.connect(settings_of(broker)) as link:
        for block in encoded(link, queue, "a", "b", "c", in_transaction=False, confirm_each=True, first_row=17):
            link.send_at_once(block)
        link.await_each(17, 3)
        await_count(broker, queue, 3)
        link.commit()  # nothing is open


def test_a_dialect_says_what_its_broker_confirms(broker):
    reason = {}
    for name in ("artemis", "rabbitmq"):
        with STOMP_SINK.connect(settings_of(broker, name)) as link:
            reason[name] = link.confirms_single_messages
    assert reason == {"artemis": False, "rabbitmq": True}
    with STOMP_SINK.connect(settings_of(broker, "rabbitmq")) as link, pytest.raises(UnsupportedError):
        link.require_transactions()


def test_there_is_no_commit_ledger():
    with pytest.raises(UnsupportedError, match=r"amqp://"):
        STOMP_SINK.commit_ledger(None, LedgerOwner("query", "q"))
