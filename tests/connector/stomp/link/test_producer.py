"""The transactions of one connection on a real broker: when messages become visible, and the error of each failure."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from connection_settings import settings_over
from proxy import Proxy
from rawstomp import RawStomp, frame, read_all
from waiting import await_count

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.blocks.dead_letter import DeadLetter, OversizedMessage
from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
)
from pyspark_jms.network.settings import TlsSettings
from pyspark_jms.stomp.link.producer import Producer, send_dead_letters

COMMIT = b"COMMIT\n"


def row(queue, body, *, transaction=Producer.transaction, **headers):
    fixed = [("destination", queue), ("destination-type", "ANYCAST"), ("persistent", "true")]
    tied = [("transaction", transaction)] if transaction else []
    return frame("SEND", [*fixed, *tied, *headers.items()], body)


def test_nothing_is_visible_before_the_commit_and_all_is_after(broker, queue):
    with Producer(settings_over(broker)) as producer:
        producer.send_frames(row(queue, b"1") + row(queue, b"2"))
        with RawStomp(broker) as client:
            assert client.read(queue, quiet=0.3) == []
        producer.commit()
        await_count(broker, queue, 2)
        producer.send_frames(row(queue, b"3"))
        producer.commit()
    await_count(broker, queue, 3)


def test_without_a_commit_nothing_was_sent(broker, queue):
    with Producer(settings_over(broker)) as producer:
        producer.send_frames(row(queue, b"1"))
    await_count(broker, queue, 0)


def test_a_commit_without_messages_sends_nothing(broker):
    with Proxy(broker.host, broker.port) as proxy, Producer(settings_over(broker, url=proxy.url)) as producer:
        before = proxy.to_broker.size
        producer.commit()
        assert proxy.to_broker.size == before


@pytest.mark.parametrize("error", [ConnectionLostError, ReceiptTimeoutError])
def test_a_commit_that_is_not_confirmed(broker, queue, error):
    waits = {"receipt_timeout": 0.5} if error is ReceiptTimeoutError else {}
    for commit, expected in ((Producer.try_commit, error), (Producer.commit, TransactionRolledBackError)):
        with Proxy(broker.host, broker.port) as proxy:
            with Producer(settings_over(broker, url=proxy.url, **waits)) as producer:
                producer.send_frames(row(queue, b"1"))
                if error is ConnectionLostError:
                    proxy.to_broker.cut_at(COMMIT)
                else:
                    proxy.to_client.stall()
                with pytest.raises(expected) as caught:
                    commit(producer)
            if expected is not error:
                assert "send these rows twice" in caught.value.remedy


def test_a_commit_that_the_broker_refuses(broker, queue):
    marked = row(queue, b"1", _AMQ_DUPL_ID=queue)
    for expected in (None, BrokerError, TransactionRolledBackError):
        with Producer(settings_over(broker)) as producer:
            producer.send_frames(row(queue, b"2") + marked)
            if expected is None:
                producer.commit()
            elif expected is BrokerError:
                with pytest.raises(BrokerError):
                    producer.try_commit()
            else:
                with pytest.raises(TransactionRolledBackError, match=r"No row .*sent"):
                    producer.commit()
    await_count(broker, queue, 2)


@pytest.mark.parametrize("attempts", [1, pytest.param(3, marks=pytest.mark.deep)])
def test_the_commit_also_confirms_messages_sent_outside_of_the_transaction(killable, queue, attempts):
    """A receipt for BEGIN or DISCONNECT does not confirm them: some of 3,000 messages were missing after the kill."""
    for attempt in range(attempts):
        with Producer(settings_over(killable)) as producer:
            for _ in range(30):
                producer.send_frames(row(queue, b"x", transaction=None) * 100, in_transaction=False)
            producer.send_frames(row(queue, b"last"))
            producer.commit()
            killable.kill()
        killable.start()
        await_count(killable, queue, 3_001 * (attempt + 1))


@pytest.mark.parametrize("user", ["reader", "nobody"])
def test_a_user_who_may_not_send(secured, queue, settings_for, user):
    secured.create_queue(queue)
    with Producer(settings_for(secured, user=user)) as producer:
        with pytest.raises((BrokerError, TransactionRolledBackError), match="AMQ339011") as error:
            send_and_commit(producer, row(queue, b"SECRET-BODY", card="SECRET-CARD"))
        assert "SECRET" not in f"{error.value} {error.value!r}"
    await_count(secured, queue, 0)


def send_and_commit(producer, data):
    producer.send_frames(data)
    producer.commit()


def test_a_refused_message_rolls_back_its_transaction(secured, queue, settings_for):
    """Artemis carries out a COMMIT that follows the refused SEND directly, without that message: 3 times of 10."""
    for _ in range(30):
        with Producer(settings_for(secured)) as producer, pytest.raises(InvalidDestinationError):
            send_and_commit(producer, row(queue, b"good") + row(f"closed.{queue}", b"refused"))
    assert not secured.has_queue(queue) or secured.message_count(queue) == 0


@pytest.mark.parametrize("transaction", [Producer.transaction, None])
def test_a_refusal_that_waits_until_new_queues_are_stored(secured, queue, settings_for, transaction):
    """Artemis refuses only then. When a receipt of another session was awaited, 18 of 40 COMMITs were confirmed."""
    for attempt in range(8):
        names = [f"{queue}.{attempt}.{n}" for n in range(30)]
        good = b"".join(row(name, b"good", transaction=transaction) for name in names)
        with Producer(settings_for(secured)) as producer:
            producer.send_frames(row(queue, b"of the transaction"))
            producer.send_frames(
                good + row(f"closed.{queue}", b"refused", transaction=transaction), in_transaction=False
            )
            with pytest.raises(InvalidDestinationError):
                producer.try_commit()
        assert not secured.has_queue(queue) or secured.message_count(queue) == 0


# --- dead letters ----------------------------------------------------------------------------------

HEAD = b"""MESSAGE
subscription:1
message-id:5,77
destination:orders
correlation-id:a\\cb
expires:1700000000000
redelivered:false
priority:8
persistent:false
reply-to:queue\\c//answers
timestamp:1700000000000
type:order
destination-type:ANYCAST
transaction:other
city:Z\xc3\xbcrich\\nN
city:second
nul:a\0b
_AMQ_GROUP_ID:g
_AMQ_DUPL_ID:d
_AMQ_OperationName:destroyQueue
spark_jms_error:an older one
spark_jms_body:map
content-length:3
ack:5,77"""
BODY = b"\0\xff\n"
ID = b"5,77"


def letter(body=BODY, reason="element 1 of the map is not of type int"):
    """``body``: of a message in a block, or in a file."""
    if isinstance(body, bytes):
        frame = HEAD + b"\n\n" + body + b"\0\n"
        heads, ends = (index_of(np.array([position])) for position in (len(HEAD), len(frame)))
        message = MessageBlock(frame, heads, ends, [ID])
    else:
        message = OversizedMessage(HEAD, ID, body)
    return DeadLetter(message, reason, "queue://orders")


@pytest.mark.parametrize(
    "body", [BODY, io.BytesIO(BODY), b"", io.BytesIO()], ids=["bytes", "file", "none", "empty file"]
)
def test_properties_and_body_are_kept_and_what_a_broker_sets_is_not(broker, queue, settings_for, body):
    send_dead_letters(settings_for(broker), queue, [letter(body)])
    (found,) = read_all(broker, queue)
    assert found.body == (body if isinstance(body, bytes) else body.getvalue())
    expected = {
        "correlation-id": "a:b", "priority": "8", "persistent": "true", "expires": "0", "reply-to": "queue://answers",
        "type": "order", "city": "Zürich\nN", "spark_jms_body": "map", "spark_jms_source": "queue://orders",
        "spark_jms_error": "element 1 of the map is not of type int", "spark_jms_message_id": "77",
    }  # fmt: skip
    assert expected.items() <= found.headers.items()
    assert not {"nul", "_AMQ_GROUP_ID", "_AMQ_DUPL_ID", "_AMQ_OperationName"} & found.headers.keys()
    assert found.headers["timestamp"] != "1700000000000"


def test_a_long_reason_is_cut(broker, queue, settings_for):
    send_dead_letters(settings_for(broker), queue, [letter(reason="x" * 5000)])
    assert len(read_all(broker, queue)[0].headers["spark_jms_error"]) == 1000


def test_all_or_none(secured, settings_for):
    with pytest.raises(Exception, match="JMS_"):
        send_dead_letters(settings_for(secured), "closed.dead", [letter(), letter()])
    assert not secured.has_queue("closed.dead")


def test_a_large_one_over_tls(secured, settings_for, authority):
    """Written by another thread, after this one has gone on."""
    body = bytes(range(256)) * 20_000
    letters = [letter(io.BytesIO(body)), letter()]
    settings = settings_for(secured, tls=TlsSettings(ca_file=authority.cert), receipt_timeout=100)
    send_dead_letters(settings, "large", letters)
    plain = SimpleNamespace(url=secured.plain_url, user=secured.user, password=secured.password)
    with RawStomp(plain) as client:
        assert [found.body for found in client.read("large", wanted=2)] == [body, BODY]
