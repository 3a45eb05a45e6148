"""Rows → messages at the broker over AMQP, without Spark."""

import pyarrow as pa
import pytest
from streaming import access
from waiting import await_count

from pyspark_jms.amqp.sink import AMQP_SINK
from pyspark_jms.errors import JMSSecurityError, MessageFormatError, UnsupportedError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.testing import JmsClient, User


def options(broker, **more):
    given = access(broker) | {"brokerUrl": broker.amqp_url} | more
    return SinkOptions.parse(given)


def batches(*texts, **columns):
    return iter([pa.RecordBatch.from_pydict({"text": list(texts)} | columns)])


@pytest.mark.parametrize("transaction", ["task", "none", "2"])
def test_every_row_is_sent(broker, queue, transaction):
    sent = send_at_least_once(AMQP_SINK, options(broker, queue=queue, transaction=transaction), batches("a", "b", "c"))
    assert sent.rows == 3
    with JmsClient(broker) as java:
        found = [java.receive(queue) for _ in range(3)]
    assert [message.body for message in found] == ["a", "b", "c"]
    assert len({message.message_id for message in found}) == 3


def test_rows_name_their_destinations(broker, queue):
    rows = batches("a", "b", destination=[f"queue://{queue}.1", f"queue://{queue}.2"])
    send_at_least_once(AMQP_SINK, options(broker), rows)
    assert [broker.message_count(f"{queue}.{n}") for n in (1, 2)] == [1, 1]


def test_a_row_that_cannot_be_sent_stops_all(broker, queue):
    rows = batches("a", "b", body_type=["text", "nonsense"])
    with pytest.raises(MessageFormatError):
        send_at_least_once(AMQP_SINK, options(broker, queue=queue), rows)
    await_count(broker, queue, 0)


def test_a_bad_row_is_dropped_if_the_user_says_so(broker, queue):
    rows = batches("a", "b", body_type=["text", "nonsense"])
    sent = send_at_least_once(AMQP_SINK, options(broker, queue=queue, onBadRow="drop"), rows)
    assert (sent.rows, sent.dropped) == (1, 1)
    await_count(broker, queue, 1)


def test_a_user_who_may_not_send(fresh_broker):
    with fresh_broker(users=[User("reader", "pw", permissions={"consume"})]) as broker:
        refused = options(broker, queue="q", user="reader", password="pw")
        with pytest.raises(JMSSecurityError):
            send_at_least_once(AMQP_SINK, refused, batches("a"))


def test_exactly_once_needs_stomp(broker):
    with pytest.raises(UnsupportedError, match="stomp://"):
        AMQP_SINK.commit_ledger(options(broker, queue="q").connection, "ledger")
