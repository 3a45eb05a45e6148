import tracemalloc
from contextlib import closing
from dataclasses import replace

import pytest
from amqp_messages import (
    NULL,
    TRUE,
    annotations,
    application_properties,
    block_of,
    int_,
    list_,
    long,
    map_,
    properties,
    section,
    string,
    timestamp,
    ubyte,
    uint,
)
from proton import Delivery
from proton_broker import ProtonBroker
from waiting import await_count

from pyspark_jms.amqp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.amqp.link.producer import Producer, pieces_of, send_dead_letters
from pyspark_jms.amqp.link.read_register import RegisterName
from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.amqp.wire.sections import sections
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.amqp.wire.values import decode
from pyspark_jms.blocks.dead_letter import KEPT, DeadLetter, OversizedMessage
from pyspark_jms.errors import BrokerError, InvalidDestinationError, JMSSecurityError, TransactionRolledBackError
from pyspark_jms.jms.model import ERROR_PROPERTY, MESSAGE_ID_PROPERTY, SOURCE_PROPERTY, Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.testing import JmsClient


def texts(*bodies):
    return block_of([section(0x70, list_(TRUE)) + section(0x77, string(body)) for body in bodies])


def to(queue):
    return Target(address=queue, capabilities=("queue",))


def test_a_transaction_is_visible_after_its_commit(broker, queue, settings_for):
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts("one", "two"))
        producer.send(texts("three" * 100_000))
        await_count(broker, queue, 0)
        producer.commit()
        await_count(broker, queue, 3)
        producer.send(texts("four"))
        producer.commit()
        producer.commit()
    with JmsClient(broker) as java:
        assert [java.receive(queue).body for _ in range(4)] == ["one", "two", "three" * 100_000, "four"]


def test_without_a_commit_nothing_is_sent(broker, queue, settings_for):
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts("one"))
    await_count(broker, queue, 0)


def test_more_messages_than_the_broker_grants_credit_for(broker, queue, settings_for):
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts(*map(str, range(5_000))))
        producer.commit()
    await_count(broker, queue, 5_000)


def test_messages_outside_of_a_transaction_are_confirmed_one_by_one(broker, queue, settings_for):
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts(*map(str, range(1_500))), in_transaction=False)
        producer.await_all()
        await_count(broker, queue, 1_500)


@pytest.mark.parametrize(
    ("outcome", "kind", "reason"),
    [
        (Delivery.RELEASED, InvalidDestinationError, "amqp:released .*Create the queue or the binding"),
        (Delivery.MODIFIED, BrokerError, "amqp:modified"),
        (Delivery.REJECTED, BrokerError, "amqp:rejected"),
        (Delivery.RECEIVED, BrokerError, "without an outcome"),
        (None, BrokerError, "without an outcome"),
        ("detach", InvalidDestinationError, "amqp:resource-deleted refused by the test"),
    ],
)
def test_a_message_that_is_not_accepted_is_an_error(outcome, kind, reason):
    with ProtonBroker(outcomes={"q": outcome}) as peer, Producer(peer.settings) as producer:
        producer.open(to("q"))
        with pytest.raises(kind, match=reason):
            send_and_await(producer)


def send_and_await(producer):
    """The answer may come before the first call returns, which then raises it."""
    producer.send(texts("one"), in_transaction=False)
    producer.await_all()


def test_a_full_address_rolls_the_transaction_back_with_its_reason(restricted, queue, settings_for):
    address = f"full.{queue}"
    with Producer(settings_for(restricted)) as producer:
        producer.open(to(address))
        producer.send(texts(*map(str, range(50))))
        with pytest.raises(TransactionRolledBackError, match="is full"):
            producer.commit()
    await_count(restricted, address, 0)
    with Producer(settings_for(restricted)) as producer:
        producer.open(to(address))
        producer.send(texts(*map(str, range(50))), in_transaction=False)
        with pytest.raises(BrokerError, match="resource-limit"):
            producer.await_all()


def test_a_user_who_may_not_send(restricted, queue, settings_for):
    settings = settings_for(restricted, user="consumer", password="pw")
    with Producer(settings) as producer, pytest.raises(JMSSecurityError):
        producer.open(to(queue))


def test_a_killed_broker_has_nothing_of_an_open_transaction_and_all_of_a_confirmed_one(killable, queue, settings_for):
    broker = killable
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts(*map(str, range(300))))
        producer.commit()
        producer.send(texts("lost"))
        broker.kill()
        with pytest.raises(TransactionRolledBackError):
            producer.commit()
    broker.start()
    await_count(broker, queue, 300)


# --- dead letters ----------------------------------------------------------------------------------

REASONS = {ERROR_PROPERTY: "why", SOURCE_PROPERTY: "queue://q", MESSAGE_ID_PROPERTY: "ID:1"}


NO_ID = {MESSAGE_ID_PROPERTY: ""}


def letter(message):
    return DeadLetter(block_of([message]), "why", "queue://q")


def sent(message, dialect=ARTEMIS):
    return read(b"".join(pieces_of(letter(message), dialect)))


def read(message):
    """Section code → value."""
    found, begin = {}, 0
    for each in sections(message):
        described, begin = decode(message, begin, each.end)
        found[each.code] = described.value
    return found


FIELDS = {"message_id": string("ID:1"), "to": string("q"), "absolute_expiry_time": timestamp(1)}


def test_the_sections_travel_on_and_say_why():
    message = (
        section(0x70, list_(TRUE, NULL, uint(5)))
        + section(0x72, map_([]))
        + properties(**FIELDS, creation_time=timestamp(9))
        + application_properties(a=int_(1), _AMQ_DUPL_ID=string("d"), **{ERROR_PROPERTY: string("old")})
        + section(0x77, string("body"))
    )
    found = sent(message)
    assert found[0x70] == [True, None]
    assert found[0x73] == ["ID:1", None, None, None, None, None, None, None, None, 9]
    assert found[0x74] == {"a": 1} | REASONS
    assert found[0x77] == "body"
    assert list(found) == sorted(found)


def test_what_a_broker_added_does_not_travel_on():
    """Its id would become that of the dead letter, and the first queue of a message is not where it was read."""
    added = ("NATIVE_MESSAGE_ID", "JMS_AMQP_MA_x", "_AMQ_ORIG_QUEUE", "JMSXDeliveryCount", "_AMQ_DUPL_ID")
    given = {"a": int_(1), "_AMQ_LARGE_COMPRESSED": TRUE, "_AMQ_LVQ_NAME": string("k"), "spark_jms_types": string("{}")}
    message = (
        annotations(a=int_(1), ORIG_QUEUE=string("old"), ACTUAL_EXPIRY=long(1))
        + application_properties(**given, **dict.fromkeys(added, string("x")))
        + section(0x77, string("body"))
    )
    found = sent(message)
    assert found[0x72] == {"x-opt-a": 1}
    assert found[0x74].keys() == given.keys() | REASONS.keys()
    classic = application_properties(originalExpiration=long(1), dlqDeliveryFailureCause=string("x"), a=int_(1))
    assert sent(classic, CLASSIC)[0x74] == {"a": 1} | REASONS | NO_ID


def test_rabbitmq_gets_neither_the_user_of_a_message_nor_its_further_queues():
    """It refuses a message with another user's user-id, and routes one with x-cc to more queues."""
    message = (
        section(0x72, map_([(string("x-cc"), string("other")), (string("x-exchange"), string("e"))]))
        + properties(message_id=string("ID:1"), user_id=b"\xa0\x01u")
        + section(0x77, string("body"))
    )
    for dialect, user, kept in ((ARTEMIS, b"u", {"x-cc", "x-exchange"}), (RABBITMQ, None, set())):
        found = sent(message, dialect)
        assert (found[0x73][1], set(found[0x72])) == (user, kept)


def test_classic_gets_no_message_id():
    message = properties(message_id=string("ID:1"), subject=string("s")) + section(0x77, string("body"))
    found = sent(message, CLASSIC)
    assert (found[0x73][0], found[0x73][3], found[0x74][MESSAGE_ID_PROPERTY]) == (None, "s", "ID:1")


@pytest.mark.parametrize("priority", [0, 7])
def test_the_priority_stays_and_the_time_to_live_does_not(priority):
    header = section(0x70, list_(NULL, ubyte(priority), uint(5), TRUE, uint(3)))
    assert sent(header + section(0x77, string("body")))[0x70] == [True, priority]


@pytest.mark.parametrize("before", [b"", properties(**FIELDS)])
def test_a_message_without_properties_gets_some(before):
    found = sent(before + section(0x75, b"\xa0\x01x"))
    assert found[0x74] == (REASONS if before else REASONS | NO_ID)
    assert found[0x75] == b"x"


@pytest.mark.parametrize("message", [b"\xff\xff", b"", section(0x77, b"\xa1\xff")])
def test_bytes_that_are_no_message_become_a_body(message):
    found = sent(message)
    assert found[0x74] == REASONS | NO_ID
    assert found.get(0x75, b"") == message


def test_no_payload_is_shown():
    assert "secret" not in repr(letter(b"secret"))


def test_a_message_in_a_file_is_sent_as_it_came(broker, queue, settings_for):
    message = properties(**FIELDS) + section(0x75, b"\xb0" + (300_000).to_bytes(4, "big") + b"x" * 300_000)
    with OversizedMessage(b"", b"1", KEPT["deadLetter"]()) as large:
        large.add(message)
        send_dead_letters(settings_for(broker), queue, [DeadLetter(large, "why", "queue://q")])
    with JmsClient(broker) as java:
        assert java.receive(queue).body == b"x" * 300_000


@pytest.mark.parametrize("megabytes", [24, pytest.param(100, marks=pytest.mark.deep)])
@pytest.mark.parametrize("way", ["driver", "task", "bytes that are no message"])
def test_a_message_in_a_file_is_not_kept_in_memory(broker, queue, settings_for, megabytes, way):
    size = megabytes << 20
    head = b"\xff" * 64 if way.startswith("bytes") else section(0x75, b"\xb0" + size.to_bytes(4, "big"))
    settings = replace(settings_for(broker), receipt_timeout=120)
    with OversizedMessage(b"", b"1", KEPT["deadLetter"]()) as large:
        large.add(head)
        for _ in range(megabytes):
            large.add(bytes(1 << 20))
        letters = [DeadLetter(large, "why", "queue://q")]
        tracemalloc.start()
        try:
            if way == "task":
                with closing(ReaderLink(settings, RegisterName(f"{queue}.staging", 0), StateCondition())) as link:
                    source = Subscription(destination=Destination(DestinationKind.QUEUE, queue), window_bytes=4_096)
                    link.subscribe([source])
                    link.send_away(0, [], f"{queue}.dead", letters)
            else:
                send_dead_letters(settings, f"{queue}.dead", letters)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < size / 4
    await_count(broker, f"{queue}.dead", 1)
    broker.purge(f"{queue}.dead")


@pytest.mark.parametrize("ends", ["link", "session", "nothing"])
def test_without_transactions_each_is_confirmed(ends):
    letters = [letter(section(0x77, string(text))) for text in ("one", "two")]
    with ProtonBroker(coordinator=ends, outcomes={"full": Delivery.REJECTED}) as peer:
        send_dead_letters(peer.settings, "dead", letters)
        assert peer.queues["dead"] == ["one", "two"]
        with pytest.raises(BrokerError, match="amqp:rejected"):
            send_dead_letters(peer.settings, "full", letters)


def test_java_reads_them(broker, queue, settings_for):
    message = properties(**FIELDS) + application_properties(a=int_(1)) + section(0x77, string("body"))
    send_dead_letters(settings_for(broker), queue, [letter(message), letter(b"\xff\xff")])
    with JmsClient(broker) as java:
        first, second = java.receive(queue), java.receive(queue)
    assert first.body == "body"
    assert second.body == b"\xff\xff"
    for found in (first, second):
        assert found.properties[ERROR_PROPERTY].value == "why"
        assert (found.destination, found.expiration) == (f"queue://{queue}", 0)
