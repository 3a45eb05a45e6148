"""What the start of a query says of queues of each kind, on a real broker."""

import contextlib
import json
import logging
from pathlib import Path

import pytest
from addresses import create_in
from amqp_messages import TRUE, list_, section, string
from amqp_sending import put, put_encoded, settings_of, subscription_to
from configured_artemis import ConfiguredArtemis
from connections import Connections
from rawstomp import RawStomp
from receivers import OpenReceiver
from registers import ReaderQuery
from streaming import access, scheduled, stopping
from waiting import await_count, await_value, settled

from pyspark_jms.amqp.link.commit_ledger import opened
from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.management import open_amqp_management
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.delivery.commit_token import LedgerEntry, LedgerOwner
from pyspark_jms.errors import InvalidDestinationError, UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.management.queue_facts import look_up_queues
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.queues import features_of, tried_out
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis, JmsClient


@pytest.fixture(autouse=True)
def _warnings(caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms")


def create(broker, name, **configuration):
    """By management, as an administrator does; the words are those of Artemis' console."""
    wanted = {"name": name, "address": name, "routing-type": "ANYCAST", "durable": True}
    wanted |= {key.replace("_", "-"): value for key, value in configuration.items()}
    options = SourceOptions.parse(access(broker, "amqp") | {"queue": name})
    with open_amqp_management(options.connection) as link:
        link.operation("broker", "createQueue", json.dumps(wanted))


def start(broker, queue, tmp_path, way):
    """Start a query and end it."""
    url = {"brokerUrl": broker.amqp_url} if way in {"at least once", "exactly once"} else {}
    journal = {"journalLocation": str(tmp_path / "journal"), "deliveryGuarantee": "exactly-once"}
    more = {"journal": journal, "connections": {"connections": "2"}}
    if way == "exactly once":
        query = ReaderQuery(broker, queue=queue)
        with stopping(query.source):
            query.plan()
        return
    raw = access(broker) | {"queue": queue} | url | more.get(way, {})
    OpenReceiver(SourceOptions.parse(raw)).close()


def write(broker, queue):
    options = SinkOptions.parse(access(broker, "amqp") | {"queue": queue, "deliveryGuarantee": "exactly-once"})
    entry = LedgerEntry(task="task", batch=0, rows=1, digest="digest", execution="first")
    with opened(options.connection, LedgerOwner("query", queue)) as ledger:
        ledger.commit(entry, lambda known: True)


NON_DESTRUCTIVE, PURGE = {"non_destructive": True}, {"purge_on_no_consumers": True}


@pytest.mark.parametrize(
    ("kind", "way", "fact"),
    [
        (NON_DESTRUCTIVE, "exactly once", "is non-destructive: an acknowledgement removes nothing, so each batch"),
        (NON_DESTRUCTIVE, "journal", "so each start would read all its messages again as new ones"),
        (NON_DESTRUCTIVE, "connections", "so each connection would read all its messages"),
        (PURGE, "exactly once", "so what is sent between two batches would be lost"),
        (PURGE, "journal", "so what was not acknowledged when a connection ends would be lost"),
        ({"max_consumers": 0}, "at least once", "has max-consumers 0, so nothing can be read from it"),
        ({"max_consumers": 1}, "connections", "has max-consumers 1, so it refuses some of the 2 consumers"),
    ],
)
def test_a_queue_that_breaks_the_promise_is_refused(broker, queue, tmp_path, kind, way, fact):
    create(broker, queue, **kind)
    if kind is NON_DESTRUCTIVE:
        put(broker, queue, "one", "two")
    with pytest.raises(UnsupportedError) as refused:
        start(broker, queue, tmp_path, way)
    assert refused.value.fact.startswith(f"Queue {queue} ")
    assert fact in refused.value.fact
    if kind is NON_DESTRUCTIVE:
        assert broker.message_count(queue) == 2
        assert broker.delivery_counts(queue) == [0, 0]


@pytest.mark.parametrize(
    ("kind", "way", "line"),
    [
        (PURGE, "at least once", "messages that are sent while the query is not connected are lost"),
        ({"ring_size": 1000}, "exactly once", "keeps the newest 1,000 messages only (ring-size)"),
        ({"last_value": True}, "at least once", "replaces a message by the next one with its key (last-value)"),
        ({"exclusive": True}, "connections", "one connection receives, and the others wait"),
        ({"consumers_before_dispatch": 2}, "at least once", "delivers nothing before it has 2 consumers"),
    ],
)
def test_a_queue_that_weakens_the_promise_is_warned_of(broker, queue, tmp_path, caplog, kind, way, line):
    create(broker, queue, **kind)
    start(broker, queue, tmp_path, way)
    [warned] = caplog.messages
    assert warned.startswith(f"! queue {queue} ")
    assert line in warned


@pytest.mark.parametrize("way", ["at least once", "exactly once", "journal"])
def test_an_exclusive_queue_that_another_consumer_has_is_warned_of(broker, queue, tmp_path, caplog, way):
    create(broker, queue, exclusive=True)
    with contextlib.closing(OpenReceiver(SourceOptions.parse(access(broker) | {"queue": queue}))):
        await_value(lambda: broker.consumer_count(queue), 1)
        assert not caplog.messages
        start(broker, queue, tmp_path, way)
    assert "(exclusive), and has 1, so this query gets nothing until that one ends" in caplog.text


def test_without_management_a_batch_with_the_messages_of_the_one_before_is_warned_of(restricted, queue, caplog):
    """The queue may not be asked what it is. The ids are a producer's claim, so nothing stops."""
    create(restricted, queue, **NON_DESTRUCTIVE)
    with JmsClient(restricted) as java:
        for text in ("one", "two"):
            java.send(queue, text)
    running = ReaderQuery(restricted, queue=queue, user="worker", password="pw")
    with stopping(running.source):
        for _ in range(3):
            assert running.texts(2) == ["one", "two"]
        running.plan()
    [warned] = [line for line in caplog.messages if "the messages of the batch before" in line]
    assert warned.startswith("! batch 2 begins and ends with")


def test_equal_messages_without_an_id_are_no_repetition(broker, queue, query, caplog):
    running = query()
    for _ in range(3):
        put_encoded(broker, queue, [section(0x70, list_(TRUE)) + section(0x77, string("tick"))])
        assert running.texts(1) == ["tick"]
    assert not [line for line in caplog.messages if "the batch before" in line]


@pytest.mark.parametrize("url", ["url", "amqp_url"])
@pytest.mark.parametrize("kind", ["paused", "consumers_before_dispatch"])
def test_a_run_that_ends_without_the_messages_of_its_queue_says_so(broker, queue, caplog, url, kind):
    """AvailableNow. The queue is paused after the start, or the start would have told it."""
    create(broker, queue, **({"consumers_before_dispatch": 2} if kind != "paused" else {}))
    raw = access(broker) | {"queue": queue, "brokerUrl": getattr(broker, url), "idleTimeout": "300ms"}
    with contextlib.closing(OpenReceiver(SourceOptions.parse(raw), drain=True)) as receiver:
        if kind == "paused":
            broker.server.locateQueue(queue).pause()
        put(broker, queue, "one", "two")
        await_count(broker, queue, 2)
        for _ in range(2):
            assert receiver.next_batch_end() == 0
    ends = [line for line in caplog.messages if "the run ends without a message" in line]
    assert ends == [ends[0]]
    assert f"although queue {queue} has 2 that it delivers to nobody" in ends[0]


def test_an_exactly_once_run_that_ends_without_messages_says_so(broker, queue, query, caplog):
    create(broker, queue, consumers_before_dispatch=2)
    put(broker, queue, "one")
    running = query(idleTimeout="300ms")
    running.source.drain()
    assert running.plan()
    assert running.rows() == [[]]
    running.commit()
    assert not running.plan()
    assert caplog.messages[1].startswith("! the run ends without a message, although the broker shows ")


@pytest.mark.parametrize(("queues", "consumers"), [(1, 4), (2, 2), (3, 1), (9, 1)])
def test_readers_are_divided_among_the_queues(queues, consumers):
    names = json.dumps([f"q{each}" for each in range(queues)])
    given = {"brokerUrl": "amqp://h:1", "deliveryGuarantee": "exactly-once", "readers": "4", "queue": names}
    assert features_of(SourceOptions.parse(given)) == [(Feature.REGISTER, consumers)]


@pytest.mark.parametrize("way", ["at least once", "exactly once", "journal", "connections"])
def test_an_ordinary_queue_is_fine(broker, queue, tmp_path, caplog, way):
    broker.create_queue(queue)
    put(broker, queue, "one", "two")
    start(broker, queue, tmp_path, way)
    assert not caplog.messages
    assert broker.delivery_counts(queue) == [0, 0]


@pytest.fixture(scope="module")
def breaking():
    bad = {"default_ring_size": 1, "default_consumers_before_dispatch": 2}
    settings = [AddressSettings(match=f"pyspark-jms.{name}.#", **bad) for name in ("staging", "commits")]
    settings += [AddressSettings(match="expiring.#", max_expiry_delay=600_000)]
    settings += [AddressSettings(match="late.#", redelivery_delay=40_000)]
    with EmbeddedArtemis(address_settings=settings, acceptor_options={"amqpIdleTimeout": "20000"}) as broker:
        yield broker


@pytest.mark.parametrize(
    "use",
    [lambda broker, queue: start(broker, queue, Path(), "exactly once"), write],
    ids=["staging queue", "commit ledger"],
)
def test_settings_that_break_the_queues_of_the_connector_are_refused(breaking, queue, use):
    """Of queues that do not exist yet: they would be created with these settings."""
    put(breaking, queue, "one")
    with pytest.raises(UnsupportedError, match="keeps the newest 1 messages only") as refused:
        use(breaking, queue)
    assert ": set default-ring-size to -1, and delete the queue." in refused.value.remedy
    assert breaking.message_count(queue) == 1


@pytest.mark.parametrize(
    ("staging", "fact"),
    [
        ("expiring.orders", r"expire after 600 s .max-expiry"),
        ("late.orders", "redelivery-delay is up to 40 s, so after a crash a query, which waits 30 s,"),
    ],
)
def test_a_setting_that_would_delete_or_withhold_staged_messages_is_refused(breaking, queue, staging, fact):
    """The broker announces half its idle time-out. A query waits for twice that, and 10 s."""
    put(breaking, queue, "one")
    running = ReaderQuery(breaking, queue=queue, stagingQueue=staging)
    with pytest.raises(UnsupportedError, match=fact):
        running.plan()
    assert breaking.message_count(queue) == 1


def test_dead_letters_are_not_sent_to_a_topic(broker, queue, query):
    """A sender to it as a queue would give the topic a second routing type for good."""
    topic = f"{queue}.topic"
    with contextlib.closing(Consumer(settings_of(broker))) as readers:
        readers.subscribe(subscription_to(topic, kind="topic"))
        with pytest.raises(InvalidDestinationError, match=f"{topic} is a topic on the broker"):
            query(onBadMessage="deadLetter", deadLetterQueue=topic).plan()


def test_dead_letters_are_not_sent_to_a_queue_whose_address_has_another_name(broker, queue, query):
    create_in(broker, f"{queue}.address", f"{queue}.dead")
    with pytest.raises(InvalidDestinationError, match=f"Queue {queue}.dead belongs to address {queue}.address"):
        query(onBadMessage="deadLetter", deadLetterQueue=f"{queue}.dead").plan()


@pytest.mark.parametrize("subscription", [None, "of its name"])
@pytest.mark.parametrize("way", ["stomp", "at least once", "exactly once", "journal"])
def test_a_topic_is_not_read_as_a_queue_and_stays_a_topic(broker, queue, tmp_path, way, subscription):
    """Artemis makes such an address for each topic of an MQTT client. Administrators make subscriptions of its name."""
    with JmsClient(broker) as java:
        if subscription:
            create(broker, queue, **{"routing-type": "MULTICAST"})
        java.send(f"topic://{queue}", "nobody subscribes")
        with pytest.raises(InvalidDestinationError, match=f"{queue} is a topic on the broker, and no queue"):
            start(broker, queue, tmp_path, way)
        with RawStomp(broker) as client:
            client.request("SUBSCRIBE", [("id", "1"), ("destination", queue), ("subscription-type", "MULTICAST")])
            java.send(f"topic://{queue}", "to the subscription")
            assert client.receive().body == b"to the subscription"


# --- the queues of durable subscriptions -------------------------------------------------------------


UNSHARED, SHARED = {"clientId": "jobs"}, {"sharedSubscription": "true"}


def subscribe(broker, topic, tmp_path, way, of_subscription):
    raw = access(broker) | {"topic": topic, "subscriptionName": topic.replace(".", "-")} | of_subscription
    if way == "exactly once":
        raw |= {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once", "stagingQueue": f"{topic}-staging"}
        query = ReaderQuery(broker, **raw)
        with stopping(query.source):
            query.plan()
        return
    more = {"amqp": {"brokerUrl": broker.amqp_url}, "stomp": {}}.get(way) or {}
    if way == "journal":
        more = {"journalLocation": str(tmp_path / "journal"), "deliveryGuarantee": "exactly-once"}
    OpenReceiver(SourceOptions.parse(raw | more)).close()


@pytest.mark.parametrize(
    ("way", "of_subscription", "named"),
    [
        ("stomp", UNSHARED, "jobs.{}"),
        ("amqp", UNSHARED, "jobs.{}"),
        ("exactly once", UNSHARED, "jobs.{}"),
        ("stomp", SHARED, "{}"),
        ("amqp", SHARED, "{}:global"),
    ],
)
def test_the_queue_of_a_subscription_is_judged(broker, queue, tmp_path, caplog, way, of_subscription, named):
    topic, name = queue, named.format(queue.replace(".", "-"))
    create(broker, name, address=topic, routing_type="MULTICAST", ring_size=1000)
    subscribe(broker, topic, tmp_path, way, of_subscription)
    assert [line for line in caplog.messages if "(ring-size)" in line and f"! queue {topic}::{name} " in line]


@pytest.mark.parametrize(
    ("way", "exists", "fact"),
    [
        ("journal", True, "is non-destructive: an acknowledgement removes nothing, so each start"),
        ("journal", False, "is non-destructive: an acknowledgement removes nothing, so each start"),
        ("exactly once", True, "is non-destructive: an acknowledgement removes nothing, so each batch"),
        ("exactly once", False, "is non-destructive: an acknowledgement removes nothing, so each batch"),
    ],
)
def test_a_subscription_that_breaks_the_promise_is_refused(broker, queue, tmp_path, way, exists, fact):
    name = f"jobs.{queue.replace('.', '-')}"
    if exists:
        create(broker, name, address=queue, routing_type="MULTICAST", **NON_DESTRUCTIVE)
        with JmsClient(broker) as java:
            java.send(f"topic://{queue}", "one")
    else:
        settings = broker.jvm.org.apache.activemq.artemis.core.settings.impl.AddressSettings()
        settings.setDefaultNonDestructive(True)
        broker.server.getAddressSettingsRepository().addMatch(queue, settings)
    with pytest.raises(UnsupportedError) as refused:
        subscribe(broker, queue, tmp_path, way, UNSHARED)
    assert refused.value.fact.startswith(f"Queue {queue}::{name} {fact}")
    if exists:
        assert (broker.message_count(name), broker.delivery_counts(name)) == (1, [0])


@pytest.mark.parametrize("way", ["stomp", "amqp", "journal", "exactly once"])
@pytest.mark.parametrize("of_subscription", [UNSHARED, SHARED])
def test_an_ordinary_subscription_is_fine(broker, queue, tmp_path, caplog, way, of_subscription):
    for _ in range(2):
        subscribe(broker, queue, tmp_path, way, of_subscription)
    assert not [line for line in caplog.messages if "! queue" in line]


# --- which queues are tried --------------------------------------------------------------------------


@pytest.fixture
def tried(broker):
    """Returns whether each queue is non-destructive, and the connections that this took."""

    def tried(names, selector=None):
        facts = look_up_queues(open_amqp_management, settings_of(broker), names)
        settled(broker.server.getConnectionCount)
        with Connections(broker) as seen:
            known = tried_out(list(facts.values()), AmqpSource(), settings_of(broker), lambda _: selector)
        return [each.non_destructive for each in known], seen

    return tried


def test_queues_are_tried_together(broker, queue, tried):
    """So they have one second together: those whose messages do not match the selector deliver nothing."""
    names = [f"{queue}.{number}" for number in range(5)]
    for name in names:
        create(broker, name, non_destructive=name == names[-1])
        put(broker, name, "mine" if name in names[-2:] else "of another", subject=string(name))
    found, seen = tried(names, f"JMSType IN ('{names[-2]}', '{names[-1]}')")
    assert found == [None, None, None, False, True]
    assert seen.made == 7
    assert seen.most > 5, "a connection that has ended may be counted a moment longer"


def test_a_queue_without_a_message_to_deliver_is_not_tried(broker, queue, tried):
    later, held = f"{queue}.later", f"{queue}.held"
    create(broker, held)
    put(broker, held, "one")
    other = Consumer(settings_of(broker))
    other.subscribe(subscription_to(held))
    await_value(lambda: other.waiting()[0], 1)
    with RawStomp(broker) as client:
        client.send(later, [([("AMQ_SCHEDULED_DELAY", "600000")], "one")])
    await_value(lambda: scheduled(broker, later), 1)
    found, seen = tried([later, held])
    assert (found, seen.made) == ([None, None], 0)
    other.close()


# --- management that is of no help -------------------------------------------------------------------

WAYS = ["stomp", "at least once", "exactly once", "journal"]


def run_to_end(broker, queue, tmp_path, way, **user):
    """AvailableNow, with all questions of a run: also at the end, of a queue that gives nothing."""
    more = {"idleTimeout": "300ms", "onBadMessage": "deadLetter", "deadLetterQueue": f"{queue}.dead", **user}
    if way == "exactly once":
        running = ReaderQuery(broker, queue=queue, **more)
        with stopping(running.source):
            running.source.drain()
            assert len(running.texts(2)) == 2
        return
    url = {"brokerUrl": broker.amqp_url} if way == "at least once" else {}
    journal = {"journalLocation": str(tmp_path / "journal"), "deliveryGuarantee": "exactly-once"}
    raw = access(broker) | {"queue": queue} | url | more | (journal if way == "journal" else {})
    with contextlib.closing(OpenReceiver(SourceOptions.parse(raw), drain=True)) as receiver:
        assert receiver.next_batch_end() == 0


def asked_in_vain(caplog):
    """How many questions were not answered, and the lines that a user sees with INFO."""
    found = [(record.levelno, record.getMessage()) for record in caplog.records if "not known" in record.getMessage()]
    questions = sum(level == logging.DEBUG for level, _ in found)
    return questions, [line for level, line in found if level == logging.INFO]


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_question_is_the_last_one_of_a_run(restricted, queue, tmp_path, caplog, way):
    caplog.set_level(logging.DEBUG, "pyspark_jms")
    restricted.create_queue(queue)
    for starts in (1, 2):
        if way == "exactly once":
            put(restricted, queue, "one", "two")
        run_to_end(restricted, queue, tmp_path, way, user="worker", password="pw")
        questions, lines = asked_in_vain(caplog)
        assert (questions, len(lines)) == (starts, starts), caplog.text
    assert "queues exist, how they are set and how many messages they have: User worker may not use" in lines[0]


@pytest.fixture(scope="module")
def managed_elsewhere():
    with ConfiguredArtemis(core="<management-address>ops</management-address>") as broker:
        yield broker


@pytest.mark.deep
@pytest.mark.parametrize("way", ["at least once", "exactly once"])
def test_a_start_waits_once_for_management_that_does_not_answer(managed_elsewhere, queue, tmp_path, caplog, way):
    caplog.set_level(logging.DEBUG, "pyspark_jms")
    managed_elsewhere.create_queue(queue)
    if way == "exactly once":
        put(managed_elsewhere, queue, "one", "two")
    run_to_end(managed_elsewhere, queue, tmp_path, way)
    questions, lines = asked_in_vain(caplog)
    assert (questions, len(lines)) == (1, 1), caplog.text
    assert "did not answer a management request" in lines[0]
