"""Offsets of a stream's messages, and what is no stream. With a broker: tests/brokers/test_streams.py."""

from datetime import UTC, datetime

import pytest
from proton_broker import ProtonBroker

from pyspark_jms.amqp.dialects import AMQP, RABBITMQ
from pyspark_jms.amqp.link.log_reader import LogReader, _offset, _require_sql, _spelled
from pyspark_jms.amqp.wire.sections import DATA, MESSAGE_ANNOTATIONS
from pyspark_jms.amqp.wire.values import Described, Symbol, TypedValue, encode
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition

STREAM = Destination.parse("queue://s")


def message(annotations):
    return encode(Described(MESSAGE_ANNOTATIONS, annotations)) + encode(Described(DATA, b"x"))


@pytest.mark.parametrize("offset", [0, 5, 1 << 40])
@pytest.mark.parametrize("kind", ["ulong", "long"])
def test_the_offset_is_an_annotation(offset, kind):
    annotations = {Symbol("x-exchange"): "", Symbol("x-stream-offset"): TypedValue(kind, offset)}
    assert _offset(message(annotations), STREAM) == offset


@pytest.mark.parametrize("annotations", [{}, {Symbol("x-stream-offset"): "5"}])
def test_a_message_without_one_is_of_no_stream(annotations):
    with pytest.raises(UnsupportedError, match="queue://s has no offset: it is not a stream"):
        _offset(message(annotations), STREAM)


def test_a_position_has_the_type_that_the_broker_reads():
    assert _spelled("first") == "first"
    assert _spelled(7) == TypedValue("ulong", 7)
    assert _spelled(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == TypedValue("timestamp", 1000)


@pytest.mark.parametrize(
    ("dialect", "server"), [(RABBITMQ, "RabbitMQ/4.1.9"), (RABBITMQ, "RabbitMQ"), (RABBITMQ, ""), (AMQP, "X/5.0")]
)
def test_a_broker_that_would_repeat_a_filter_and_not_apply_it_is_refused(dialect, server):
    _require_sql(RABBITMQ, "RabbitMQ/4.2.0")
    _require_sql(RABBITMQ, "RabbitMQ/10.0.1")
    with pytest.raises(UnsupportedError, match="does not filter its streams"):
        _require_sql(dialect, server)


def test_another_broker_has_no_streams():
    subscription = Subscription(destination=STREAM, window_bytes=1 << 20)
    with ProtonBroker() as peer, pytest.raises(UnsupportedError, match="amqp has no streams"):
        LogReader(peer.settings, StateCondition(), subscription, "first", None)
