"""Rows → messages at the broker over AMQP, without Spark."""

import uuid
from contextlib import closing

import pyarrow as pa
import pytest
from broker_j import EmbeddedBrokerJ
from proton import Delivery
from proton_broker import ProtonBroker
from streaming import access
from waiting import await_count, await_value

from pyspark_jms.amqp.sink import AmqpSinkLink, CommitLedger
from pyspark_jms.columns.row_parts import RowsDigest
from pyspark_jms.delivery.commit_token import LedgerEntry, LedgerOwner
from pyspark_jms.errors import (
    BrokerError,
    InvalidDestinationError,
    JMSSecurityError,
    UnsupportedError,
)
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.sending import RowEncoder, send_at_least_once
from pyspark_jms.testing import EmbeddedClassic, JmsClient


def options(broker, **more):
    given = access(broker, "amqp") | more
    return SinkOptions.parse(given)


def batches(*texts, **columns):
    return iter([pa.RecordBatch.from_pydict({"text": list(texts)} | columns)])


@pytest.mark.parametrize("transaction", ["task", "none", "2"])
def test_every_row_is_sent(broker, queue, transaction):
    sent = send_at_least_once(
        AmqpSinkLink, options(broker, queue=queue, transaction=transaction), batches("a", "b", "c")
    )
    assert sent.rows == 3
    with JmsClient(broker) as java:
        found = [java.receive(queue) for _ in range(3)]
    assert [message.body for message in found] == ["a", "b", "c"]
    assert len({message.message_id for message in found}) == 3


def test_rows_name_their_destinations(broker, queue):
    rows = batches("a", "b", destination=[f"queue://{queue}.1", f"queue://{queue}.2"])
    send_at_least_once(AmqpSinkLink, options(broker), rows)
    await_value(lambda: [broker.message_count(f"{queue}.{n}") for n in (1, 2)], [1, 1])


def test_a_row_to_where_the_user_may_not_send_is_an_error(restricted, queue):
    """Artemis refuses the message only, and would commit the others."""
    user, mine = {"user": "mine-only", "password": "pw"}, f"mine.{queue}"

    def commit(link, block):
        link.send(block)
        link.commit_with_entry(entry("w/0"), admit=lambda _: True)

    def rows_to_both():
        return batches("a", "b", destination=[f"queue://other.{queue}", f"queue://{mine}"])

    with pytest.raises(JMSSecurityError):
        send_at_least_once(AmqpSinkLink, options(restricted, queue=queue, **user), batches("a"))
    for transaction in ("task", "1", "none"):
        with pytest.raises(JMSSecurityError, match="other"):
            send_at_least_once(AmqpSinkLink, options(restricted, transaction=transaction, **user), rows_to_both())
    assert restricted.message_count(mine) <= 1, "without a transaction, a row that was sent stays"
    ledger = CommitLedger(options(restricted, queue=queue, **user).connection, LedgerOwner("query", uuid.uuid4().hex))
    with closing(ledger.connect()) as link:
        (block,) = RowEncoder(options(restricted), link).take(next(rows_to_both()))
        with pytest.raises(JMSSecurityError, match="other"):
            commit(link, block)
    assert ledger.find() == ()


@pytest.mark.parametrize("destination", ["queue://released", "topic://released"])
def test_a_row_that_no_queue_takes_is_an_error(destination):
    outcomes = {"released": Delivery.RELEASED}
    with ProtonBroker(outcomes=outcomes) as peer:
        given = SinkOptions.parse({"brokerUrl": peer.amqp_url, "transaction": "none"})
        with pytest.raises(InvalidDestinationError, match="amqp:released"):
            send_at_least_once(AmqpSinkLink, given, batches("a", "b", destination=["queue://taken", destination]))
        assert peer.queues["taken"] == ["a"]


@pytest.mark.parametrize("ends", ["link", "session", "nothing"])
def test_without_transactions_the_default_is_refused_with_the_remedy(ends):
    with ProtonBroker(coordinator=ends) as peer:
        for transaction in ("auto", "task", "2"):
            given = SinkOptions.parse({"brokerUrl": peer.amqp_url, "queue": "q", "transaction": transaction})
            with pytest.raises(UnsupportedError, match=r"no transactions over AMQP.*Set transaction=none"):
                send_at_least_once(AmqpSinkLink, given, batches("a"))
        assert not peer.queues["q"]


@pytest.mark.parametrize("named", [True, False])
def test_on_a_broker_that_is_known_to_have_no_transactions_each_row_is_confirmed(named):
    """And a row in the middle that is refused stops the task."""
    with ProtonBroker(product="RabbitMQ", outcomes={"/queues/full": Delivery.REJECTED}) as peer:
        broker = {"broker": "rabbitmq"} if named else {}
        given = {"brokerUrl": peer.amqp_url, **broker}
        assert send_at_least_once(AmqpSinkLink, SinkOptions.parse(given | {"queue": "a b"}), batches("a", "b")) == (
            2,
            0,
        )
        assert peer.queues["/queues/a%20b"] == ["a", "b"]
        rows = batches("a", "b", "c", destination=["queue://q", "queue:///queues/full", "topic:///exchanges/x/k"])
        with pytest.raises(BrokerError, match="amqp:rejected"):
            send_at_least_once(AmqpSinkLink, SinkOptions.parse(given), rows)
        assert (peer.queues["/queues/q"], peer.queues["/exchanges/x/k"]) == (["a"], ["c"])
        refused = SinkOptions.parse(given | {"queue": "q"} | ({} if named else {"transaction": "task"}))
        if not named:
            with pytest.raises(UnsupportedError, match=r"rabbitmq has no transactions.*Set transaction=none"):
                send_at_least_once(AmqpSinkLink, refused, batches("d"))
        assert peer.queues["/queues/q"] == ["a"]


# --- exactly once ------------------------------------------------------------------------------------


def entry(task, rows=1, digest="a1-0", execution="e"):
    return LedgerEntry(task=task, batch=0, rows=rows, digest=digest, execution=execution)


@pytest.fixture
def ledger(broker):
    return CommitLedger(options(broker, queue="q").connection, LedgerOwner("query", uuid.uuid4().hex))


def committed(ledger, queue, entry, *texts):
    rows, settings = next(batches(*texts)), SinkOptions.parse({"brokerUrl": "amqp://h", "queue": queue})
    with closing(ledger.connect()) as link:
        encoder = RowEncoder(settings, link)
        for block in encoder.take(rows):
            link.send(block)
        link.commit_with_entry(entry, admit=lambda known: entry.task not in {e.task for e in known})


def test_the_entries_of_all_tasks_are_found(broker, queue, ledger):
    for each in (entry("w/0"), entry("w/1", execution="f"), entry("w/x/0"), entry("w/0", digest="other")):
        committed(ledger, queue, each, "row")
    await_count(broker, queue, 3)
    assert [each.task for each in ledger.find()] == ["w/0", "w/1", "w/x/0"]
    assert [each.digest for each in ledger.find() if each.task == "w/0"] == ["a1-0"]


def test_the_ledger_of_a_query_is_not_shortened(broker, queue, ledger):
    committed(ledger, queue, entry("w/0"), "row")
    ledger.finish("w")
    assert [each.task for each in ledger.find()] == ["w/0"]


def test_the_digest_of_rows_knows_neither_the_time_nor_the_message_id(broker, queue, ledger):
    settings, digests = SinkOptions.parse({"brokerUrl": "amqp://h", "queue": queue}), set()
    for texts in (("a", "b"), ("b", "a")):
        with closing(ledger.connect()) as link:
            digest, encoder = RowsDigest(), RowEncoder(settings, link)
            (rows,) = batches(*texts, time_to_live=pa.array([3_600_000] * 2))
            digest.add(encoder.at_the_epoch(rows))
            digests.add(digest.text())
    assert len(digests) == 1


def test_blocks_of_another_link_are_sent_to_the_destinations_they_name(broker, queue, ledger):
    """As the driver does with rows that tasks have held."""
    by_row = next(batches("a", "b", destination=[f"queue://{queue}.1", f"topic://{queue}.2"]))
    with closing(ledger.connect()) as link:
        held = RowEncoder(SinkOptions.parse({"brokerUrl": "amqp://h"}), link).take(by_row)
    with closing(ledger.connect()) as link:
        held += RowEncoder(SinkOptions.parse({"brokerUrl": "amqp://h", "queue": queue}), link).take(by_row.slice(0, 1))
    with closing(ledger.connect()) as link:
        for block in held:
            link.send(block)
        link.commit_with_entry(entry("w/0"), admit=lambda _: True)
    await_count(broker, f"{queue}.1", 2)


@pytest.mark.parametrize("broker_class", [EmbeddedClassic, EmbeddedBrokerJ])
@pytest.mark.deep
def test_other_brokers_refuse_with_the_reason(broker_class):
    with broker_class() as other:
        given = {"user": other.user, "password": other.password, "brokerUrl": other.amqp_url, "queue": "q"}
        ledger = CommitLedger(SinkOptions.parse(given).connection, LedgerOwner("query", "q"))
        for act in (ledger.find, ledger.connect):
            with pytest.raises(UnsupportedError, match=r"exactly-once.*use Artemis"):
                act()
