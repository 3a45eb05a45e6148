"""Reading over AMQP through the source's engine, without Spark: batches, reconnects, AvailableNow, bad messages."""

import contextlib
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from amqp_messages import (
    FALSE,
    NULL,
    TRUE,
    annotations,
    application_properties,
    binary,
    block_of,
    int_,
    list_,
    properties,
    section,
    string,
    symbol,
    text_message,
    timestamp,
    uint,
)
from amqp_sending import put_encoded
from element_limit import limit_elements
from proton_broker import ProtonBroker
from proxy import Proxy
from streaming import access
from waiting import await_count, wait_until

from pyspark_jms.amqp.dialects import ARTEMIS, RABBITMQ
from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.amqp.source import RECOGNITION, AmqpSource, MessageAnswers, _may_be_redelivered, recognition_of
from pyspark_jms.jms.model import BodyType
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.source.peek import peek
from pyspark_jms.source.receiver import BatchReceiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.testing import JmsClient


@contextlib.contextmanager
def receiving(broker, queue, url=None, **options):
    how = {name: options.pop(name) for name in ("restarted",) if name in options}
    if options.pop("drain", False):
        how["drain_since_ms"] = time.time() * 1000
    given = access(broker) | {"brokerUrl": url or broker.amqp_url, "queue": queue} | options
    with contextlib.closing(
        BatchReceiver(reading_of(SourceOptions.parse(given)), StopRequest(), store=None, sequence=0, **how)
    ) as receiver:
        yield receiver


def send(broker, queue, count, start=0):
    with JmsClient(broker) as java:
        for number in range(start, start + count):
            java.send(queue, str(number))


def rows(receiver, start, end):
    """The texts of a batch."""
    batch = receiver.batch(start, end)
    found = []
    for range_ in batch.ranges:
        link = receiver.links[range_.subscription]
        decoded = AmqpSource().decode(
            range_.messages(),
            dialect=link.dialect.name,
            source=link.subscription.destination,
            first_sequence=start,
            body_type="auto",
        )
        found += decoded.column("text").to_pylist()
    return found


def read(receiver, count, start=0):
    """Batches until so many messages were read, each acknowledged before the next."""
    found, end = [], start
    while len(found) < count:
        before, end = end, receiver.next_batch_end()
        if end > before:
            found += rows(receiver, before, end)
            receiver.acknowledge_through(end)
    return found


def test_batches_are_read_acknowledged_and_gone(broker, queue):
    send(broker, queue, 250)
    with receiving(broker, queue, maxMessagesPerTrigger="100") as receiver:
        assert read(receiver, 250) == list(map(str, range(250)))
        wait_until(lambda: broker.message_count(queue) == 0)
        wait_until(lambda: receiver.next_batch_end() == 250 and receiver.progress()["acknowledged"] == 250)
        assert (receiver.progress()["guarantee"], receiver.progress()["lostCredit"]) == ("at-least-once", 0)


def test_unconfirmed_acknowledgements_are_part_of_the_guarantee():
    with ProtonBroker(product="RabbitMQ") as peer:
        peer.queues["/queues/q"] = ["one"]
        given = SourceOptions.parse({"brokerUrl": peer.amqp_url, "queue": "q"})
        with contextlib.closing(BatchReceiver(reading_of(given), StopRequest(), store=None, sequence=0)) as receiver:
            assert read(receiver, 1) == ["one"]
            guarantee = receiver.progress()["guarantee"]
        assert guarantee == "at-least-once (the broker confirms no acknowledgement)"
        wait_until(lambda: not peer.is_busy)


@pytest.mark.parametrize(("product", "address"), [("RabbitMQ", "/queues/q"), ("a router", "q")])
def test_a_broker_that_was_not_seen_to_browse_gets_its_messages_back(product, address):
    """The peer repeats the distribution mode copy, as RabbitMQ 4.0 does, and delivers to an ordinary consumer."""
    with ProtonBroker(product=product) as peer:
        peer.queues[address] = ["one", "two", "three"]
        for limit, shown in ({}, 3), ({"maxMessagesPerTrigger": "2"}, 2):
            read = {"brokerUrl": peer.amqp_url, "queue": "q", "idleTimeout": "200ms"}
            batches = peek(reading_of(SourceOptions.parse(read | limit)))
            assert sum(batch.num_rows for batch in batches) == shown
            wait_until(lambda: not peer.is_busy)
        assert sorted(peer.queues[address]) == ["one", "three", "two"]
        assert peer.browses == 0


def test_a_pause_of_the_broker_is_not_the_end_of_a_batch_read(broker, queue):
    """Over AMQP the broker proves that the queue is empty, so a pause before a message takes nothing from the read."""
    with JmsClient(broker) as java:
        for text in "first", "held", "last":
            java.send(queue, text)
    with Proxy("127.0.0.1", broker.amqp_port, protocol="amqp") as proxy:
        proxy.to_client.hold_at(b"held")

        def go_on():
            assert proxy.to_client.held.wait(30)
            time.sleep(1)  # ten times idleTimeout
            proxy.to_client.release()

        with ThreadPoolExecutor(1) as threads:
            going_on = threads.submit(go_on)
            given = access(broker) | {"brokerUrl": proxy.url, "queue": queue, "idleTimeout": "100ms", "broker": "amqp"}
            assert sum(batch.num_rows for batch in peek(reading_of(SourceOptions.parse(given)))) == 3
            going_on.result()


def tick(text, message_id=None):
    named = b"" if message_id is None else properties(message_id=string(message_id))
    return section(0x70, list_(TRUE)) + named + section(0x77, string(text))


@pytest.mark.parametrize(
    ("message_ids", "texts"),
    [((None,) * 5, ("tick",) * 5), (("5",) * 5, ("tick",) * 5), (("5",) * 5, ("a", "b", "c", "a", "b"))],
    ids=["equal, no id", "equal, one id", "one id, other content"],
)
def test_equal_messages_in_flight_when_a_connection_is_lost_are_each_read_once(broker, queue, message_ids, texts):
    put_encoded(broker, queue, list(map(tick, texts, message_ids)))
    with Proxy(broker.host, broker.port) as proxy:
        url = proxy.url.replace("stomp", "amqp")
        with receiving(broker, queue, url, maxMessagesPerTrigger="3") as receiver:
            wait_until(lambda: receiver.progress()["inFlightMessages"] == len(texts))  # else the batch may have fewer
            assert receiver.next_batch_end() == 3
            first = rows(receiver, 0, 3)
            proxy.cut()
            wait_until(lambda: receiver.links[0].is_down)
            receiver.acknowledge_through(3)
            rest = read(receiver, len(texts) - 3, 3)
            assert [*first, *rest] == list(texts)
            assert receiver.progress()["recognised"] == 3
            wait_until(lambda: receiver.next_batch_end() == 5 and broker.message_count(queue) == 0)


def test_what_cannot_be_mapped_goes_to_the_dead_letter_queue(broker, queue, put):
    put(broker, queue, "good")
    put_encoded(broker, queue, [section(0x77, b"\xe0\x03\x01\x50\x01")])  # an array as body
    with receiving(broker, queue, onBadMessage="deadLetter", deadLetterQueue=f"{queue}.dead") as receiver:
        assert read(receiver, 1) == ["good"]
        wait_until(lambda: receiver.next_batch_end() == 1 and broker.message_count(queue) == 0)
        assert receiver.progress()["deadLetters"] == 1
    await_count(broker, f"{queue}.dead", 1)


def test_a_compressed_body_arrives_whole_or_is_an_error(broker, queue):
    """A CORE client compressed it. Artemis cuts a BytesMessage, and only that."""
    factory = broker.connection_factory()
    factory.setMinLargeMessageSize(10_240)
    factory.setCompressLargeMessage(True)
    connection = factory.createConnection(broker.user, broker.password)
    session = connection.createSession(False, 1)
    made = [session.createTextMessage("é" * 50_000), session.createBytesMessage(), session.createMapMessage()]
    made += [session.createStreamMessage(), session.createObjectMessage("o" * 50_000)]
    made[1].writeBytes(bytes(50_000))
    made[2].setString("k", "m" * 50_000)
    made[3].writeString("s" * 50_000)
    producer = session.createProducer(session.createQueue(queue))
    for message in made:
        producer.send(message)
    connection.close()
    text, cut, map_, stream, object_ = peeked(broker, queue)
    assert text["text"] == "é" * 50_000
    assert "of 50,000 bytes, as Artemis sends it over AMQP" in cut["body_error"]
    assert map_["map"] == [("k", {"type": "string", "value": "m" * 50_000})]
    assert stream["stream"] == [{"type": "string", "value": "s" * 50_000}]
    assert object_["bytes"].endswith(b"o" * 50_000)


def test_an_answer_names_the_request_by_the_id_that_it_had(broker, queue):
    """A requester compares ids with their types."""
    proton = pytest.importorskip("proton")
    from proton.utils import BlockingConnection

    ids = [uuid.UUID(int=7), proton.ulong(42), b"\x00\xff", "plain", "ID:x", "ID:AMQP_UUID:x"]
    connection = BlockingConnection(broker.amqp_url, user=broker.user, password=broker.password, allowed_mechs="PLAIN")
    with contextlib.closing(connection):
        sender = connection.create_sender(f"{queue}.in", options=OfQueue())
        for id_ in ids:
            sender.send(proton.Message(id=id_, correlation_id=id_, durable=True))
        requests = peeked(broker, f"{queue}.in")
        answers = [request[name] for request in requests for name in ("JMSMessageID", "JMSCorrelationID")]
        assert answers[6:8] == ["ID:AMQP_NO_PREFIX:plain", "plain"]
        options = SinkOptions.parse(access(broker, "amqp") | {"queue": queue})
        batch = pa.record_batch({"JMSCorrelationID": pa.array(answers, pa.string())})
        assert send_at_least_once(AmqpSinkLink, options, iter([batch])) == (len(answers), 0)
        receiver = connection.create_receiver(queue)
        messages = [receiver.receive(timeout=30) for _ in answers]
        found = [message.correlation_id for message in messages]
        found = [bytes(id_) if isinstance(id_, memoryview) else id_ for id_ in found]  # while the messages live
    assert found == [id_ for id_ in ids for _ in range(2)]
    assert [isinstance(id_, int) for id_ in found[::2]] == [isinstance(id_, int) for id_ in ids]


def test_properties_that_jms_does_not_have_arrive_and_can_be_written(broker, queue):
    values = {"uint": uint(7), "uuid": b"\x98" + bytes(15) + b"\7", "timestamp": timestamp(5), "symbol": symbol("s")}
    values |= {"binary": binary(b"a"), "char": b"\x73\0\0\0A", "decimal64": b"\x84" + bytes(8), "list": list_(int_(1))}
    put_encoded(broker, queue, [application_properties(**values) + section(0x77, string("hi"))])
    (row,) = peeked(broker, queue)
    properties, types = dict(row["properties"]), dict(row["property_types"])
    assert (row["text"], row["body_error"]) == ("hi", None)
    assert {name: types[name] for name in values} == {name: name for name in values}
    assert (properties["uint"], properties["uuid"][-1], properties["list"]) == ("7", "7", None)
    for text in ("uint = 7", "NOT (uuid = 'x')", f"NOT (uuid = '{properties['uuid']}')", "list IS NOT NULL"):
        assert len(peeked(broker, queue, selector=text)) == 1, text
    options = SourceOptions.parse(access(broker, "amqp") | {"queue": queue})
    target = SinkOptions.parse(access(broker, "amqp") | {"queue": f"{queue}.out"})
    assert send_at_least_once(AmqpSinkLink, target, iter(list(peek(reading_of(options))))) == (1, 0)
    (written,) = peeked(broker, f"{queue}.out")
    assert properties.pop("list") is None
    assert (written["text"], dict(written["properties"])) == ("hi", properties)
    found = dict(written["property_types"])
    assert {found.pop(name) for name in ("uint", "timestamp")} == {"long"}
    assert {found[name] for name in values if name in found} == {"string"}


class OfQueue:
    """The address of a sender is a queue."""

    def apply(self, link):
        from proton import symbol

        link.target.capabilities.put_object(symbol("queue"))

    def test(self, _link):
        return True


def peeked(broker, queue, **given):
    options = SourceOptions.parse(access(broker, "amqp") | {"queue": queue} | given)
    return [row for batch in peek(reading_of(options)) for row in batch.to_pylist()]


def test_a_message_that_is_too_large_is_skipped_if_the_user_says_so(broker, queue, put):
    put(broker, queue, "one", "x" * 5_000, "three")
    with receiving(broker, queue, maxMessageBytes="1k", onTooLarge="drop") as receiver:
        assert read(receiver, 2) == ["one", "three"]
        wait_until(lambda: receiver.next_batch_end() == 2 and broker.message_count(queue) == 0)
        assert receiver.progress()["droppedTooLarge"] == 1


def test_a_message_that_is_too_large_goes_to_the_dead_letter_queue(broker, queue, put):
    put(broker, queue, "one", "x" * 500_000, "three")
    dead = f"{queue}.dead"
    with receiving(broker, queue, maxMessageBytes="1k", onTooLarge="deadLetter", deadLetterQueue=dead) as receiver:
        assert read(receiver, 2) == ["one", "three"]
        wait_until(lambda: receiver.next_batch_end() == 2 and broker.message_count(queue) == 0)
        assert (receiver.progress()["deadLetters"], receiver.progress()["droppedTooLarge"]) == (1, 0)
    with JmsClient(broker) as java:
        message = java.receive(dead)
    assert message.body == "x" * 500_000
    assert message.properties["spark_jms_error"].value.endswith("bytes exceed maxMessageBytes (1,024)")
    assert message.properties["spark_jms_message_id"].value == "ID:1"


def test_a_message_with_too_many_elements_goes_to_the_dead_letter_queue(broker, queue, put, monkeypatch):
    limit_elements(monkeypatch, 4)
    with JmsClient(broker) as java:
        java.send(queue, ["v"] * 5, body_type=BodyType.STREAM)
    put(broker, queue, "two")
    dead = f"{queue}.dead"
    options = {"onBadMessage": "deadLetter", "deadLetterQueue": dead}
    with receiving(broker, queue, **options) as receiver:
        assert read(receiver, 1) == ["two"]
    with JmsClient(broker) as java:
        message = java.receive(dead)
    assert [element.value for element in message.body] == ["v"] * 5
    assert message.properties["spark_jms_error"].value == "the body has more than 4 elements"


def test_a_browse_goes_on_when_what_it_brought_is_shown(broker, queue, put, subscription_to):
    put(broker, queue, *map(str, range(20)))
    settings = SourceOptions.parse(access(broker, "amqp") | {"queue": queue}).connection
    with contextlib.closing(AmqpSource().connect(settings, StateCondition())) as link:
        link.subscribe(subscription_to(queue, browse=True, window_messages=5))
        for _ in range(4):
            wait_until(lambda: link.waiting()[0] == 5)
            assert link.prefetch.receiver.credit == 0
            for block in link.take():
                link.shown(block)


# --- recognition ------------------------------------------------------------------------------------


def counted(count, body):
    return section(0x70, list_(TRUE, NULL, NULL, NULL, uint(count))) + body


def test_a_message_is_known_by_its_content_with_its_id():
    body = properties(message_id=string("ID:7")) + section(0x77, string("x"))
    other = properties(message_id=string("ID:7")) + section(0x77, string("y"))
    renamed = properties(message_id=string("ID:8")) + section(0x77, string("x"))
    block = block_of([counted(0, body), counted(1, body), counted(0, other), counted(0, renamed)])
    first, again, *different = (RECOGNITION.identity(block, index) for index in range(4))
    assert first == again
    assert len({first, *different}) == 3
    assert not RECOGNITION.by_broker


def test_a_count_in_the_annotations_is_not_content_on_rabbitmq():
    """A quorum queue adds it at the first redelivery."""
    body = properties(message_id=string("ID:7")) + section(0x77, string("x"))
    block = block_of([counted(0, body), counted(1, annotations(acquired_count=int_(1)) + body)])
    for dialect, is_same in ((RABBITMQ, True), (ARTEMIS, False)):
        found = recognition_of(dialect)
        assert (found.identity(block, 0) == found.identity(block, 1)) is is_same
        assert (found.fingerprint(block, 0) == found.fingerprint(block, 1)) is is_same


def test_an_equal_message_is_the_same_one_if_it_has_an_id():
    body = section(0x77, string("x"))
    ids = [string("ID:7"), string(""), b"\x40"]
    block = block_of([*(properties(message_id=each) + body for each in ids), body])
    assert [RECOGNITION.is_named(block, index) for index in range(4)] == [True, False, False, False]


def test_without_an_id_the_content_is_the_identity():
    body = section(0x77, string("x"))
    block = block_of([counted(0, body), counted(2, body), section(0x77, string("y"))])
    first, again, different = (RECOGNITION.identity(block, index) for index in range(3))
    assert first == again != different


def test_bytes_that_are_no_message_have_an_identity_too():
    block = block_of([b"\xff\xff", b"\xff\xff"])
    assert RECOGNITION.identity(block, 0) == RECOGNITION.identity(block, 1)


def test_redelivered_messages_are_counted():
    body = section(0x77, string("x"))
    wide = section(0x70, list_(TRUE, NULL, NULL, NULL, uint(2), wide=True)) + body
    block = block_of([counted(0, body), counted(3, body), text_message(), body, wide, b"\xff", b""])
    redelivered = MessageAnswers().redelivered
    assert redelivered(block) == 2
    assert redelivered(block_of([b""])) == redelivered(block_of([])) == 0


def test_usual_headers_are_not_read_one_by_one():
    body = section(0x77, string("x"))
    usual = [section(0x70, list_(TRUE, FALSE, wide=wide)) + body for wide in (False, True)]
    assert _may_be_redelivered(block_of([*usual, body, counted(1, body)])).tolist() == [3]


GOOD = properties(message_id=string("ID:7"), creation_time=timestamp(5)) + section(0x77, string("text"))
BAD = b"\x00\x53\x77\xff"
BLOCK = block_of([GOOD, BAD, GOOD])


def test_when_messages_were_sent():
    assert [MessageAnswers().sent_ms(BLOCK, index) for index in range(3)] == [5, None, 5]


def test_the_log_names_a_message_by_its_delivery():
    assert MessageAnswers().message_id(b"\0\0\1\0") == "delivery 256"
