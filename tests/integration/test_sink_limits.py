"""Sinks that cannot: no permission, no room, no such queue, no answer. A clear error, and nothing is half there."""

import pyarrow as pa
import pytest
from broker_rows import write_batch
from proxy import Proxy
from rawstomp import RawStomp
from streaming import access, left
from waiting import await_count, wait_until

from pyspark_jms.errors import (
    InvalidDestinationError,
    MessageTooLargeError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
)
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis, User

pytestmark = pytest.mark.broker

FULL = {"max_size_bytes": 100_000, "auto_create_queues": True}


@pytest.fixture(scope="module")
def strict():
    """Addresses that take 100 KB, some that are not made by themselves, and a user who may send to ``open.#`` only."""
    settings = [
        AddressSettings(match="full.fail.#", address_full_policy="FAIL", **FULL),
        AddressSettings(match="full.block.#", address_full_policy="BLOCK", **FULL),
        AddressSettings(match="full.page.#", address_full_policy="PAGE", **FULL),
        AddressSettings(match="full.drop.#", address_full_policy="DROP", **FULL),
        AddressSettings(match="made.#", auto_create_queues=False, auto_create_addresses=False),
    ]
    create = {"createAddress", "createDurableQueue"}
    limited = User("limited", "pw", create, at={"open.#": {"send", *create}})
    with EmbeddedArtemis(address_settings=settings, users=[limited], heap="512m") as broker:
        yield broker


def rows_to(*destinations, count=30, text="x"):
    """``count`` rows, to each of these in turn; every text tells its number."""
    texts = [f"{n} {text}" for n in range(count)]
    return pa.record_batch({"text": texts, "destination": [destinations[n % len(destinations)] for n in range(count)]})


def numbers(broker, queue, **wanted):
    with RawStomp(broker) as client:
        return [int(message.body.split()[0]) for message in client.read(queue, **wanted or {"quiet": 0.5})]


# --- one of many destinations ------------------------------------------------------------------------


@pytest.fixture
def names(queue):
    return [f"open.{queue}.a", f"topic://open.{queue}.t", f"open.{queue}.b"]


def test_no_permission_for_one_of_many_destinations(strict, queue, names):
    closed = f"closed.{queue}"
    for name in (names[0], names[2], closed):
        strict.create_queue(name)
    limited = access(strict) | {"user": "limited", "password": "pw"}
    with pytest.raises(TransactionRolledBackError, match=r"\[JMS_TRANSACTION_ROLLED_BACK\].* AMQ\d+ ") as caught:
        write_batch(limited, None, rows_to(*names, closed, text="s3cr3t"))
    assert "s3cr3t" not in str(caught.value)
    assert [left(strict, name) for name in (names[0], names[2], closed)] == [0, 0, 0]
    assert write_batch(limited, None, rows_to(*names)) == (30, 0)
    assert numbers(strict, names[2]) == list(range(2, 30, 3))


@pytest.mark.parametrize(("transaction", "there"), [("task", 0), (5, 20), (10, 20), (20, 20), (30, 0)])
def test_one_of_many_destinations_does_not_exist_and_may_not_come_into_being(strict, queue, transaction, there):
    """Row 23 goes there. The transactions before its own are done, as the option says; of its own nothing is seen."""
    names = [f"made.{queue}" if n == 23 else f"open.{queue}" for n in range(30)]
    refused = pytest.raises((InvalidDestinationError, TransactionRolledBackError), match=rf"\[JMS_\w+\].*made\.{queue}")
    with refused:
        write_batch(access(strict), None, rows_to(*names), transaction=str(transaction))
    assert numbers(strict, f"open.{queue}") == list(range(there))


def test_rows_for_many_destinations_keep_their_order_in_each(strict, queue):
    names = [f"open.{queue}.{k}" for k in range(50)]
    assert write_batch(access(strict), None, rows_to(*names, count=2_000), transaction="77") == (2_000, 0)
    for k, name in enumerate(names):
        assert numbers(strict, name, wanted=40) == list(range(k, 2_000, 50))


# --- no room -----------------------------------------------------------------------------------------


def test_a_full_address_that_fails_takes_back_the_whole_transaction(strict, queue):
    full = f"full.fail.{queue}"
    with pytest.raises(TransactionRolledBackError, match=r"\[JMS_TRANSACTION_ROLLED_BACK\].*full"):
        write_batch(access(strict), None, rows_to(f"open.{queue}", full, count=400, text="x" * 1000))
    assert [left(strict, name) for name in (f"open.{queue}", full)] == [0, 0]
    assert write_batch(access(strict), None, rows_to(full, count=20)) == (20, 0)


@pytest.mark.parametrize("policy", ["block", "page"])
def test_a_full_address_that_blocks_or_pages_takes_every_row(strict, queue, policy):
    """Over STOMP Artemis does not hold a producer back: what BLOCK should stop it keeps in memory."""
    full = f"full.{policy}.{queue}"
    for start in (0, 400):
        assert write_batch(access(strict), None, rows_to(full, count=400, text="x" * 1000)) == (400, 0)
        assert left(strict, full, start + 400) == start + 400


def test_a_full_address_that_drops_loses_rows_and_confirms_them(strict, queue):
    """Nobody but the broker knows: the guarantees say so (docs/guarantees.md)."""
    full = f"full.drop.{queue}"
    assert write_batch(access(strict), None, rows_to(full, count=400, text="x" * 1000)) == (400, 0)
    wait_until(lambda: strict.message_count(full), what="the rows that the broker kept")  # it counts a moment later
    assert strict.message_count(full) < 400


@pytest.mark.parametrize(("transaction", "there"), [("task", 0), ("none", 0), (1, 1)])
def test_a_row_beyond_the_limit_is_named_with_its_size_before_it_is_sent(strict, queue, transaction, there):
    rows = pa.record_batch({"text": ["a", "x" * 70_000, "b"]})
    limits = {"maxMessageBytes": "64k", "transaction": str(transaction)}
    with pytest.raises(MessageTooLargeError, match=r"\[JMS_MESSAGE_TOO_LARGE\] Row 1 .*\b70\d{3} .*65536"):
        write_batch(access(strict), f"open.{queue}", rows, **limits)
    await_count(strict, f"open.{queue}", there)


# --- no answer ---------------------------------------------------------------------------------------


def test_a_broker_that_takes_nothing_more_fails_the_task(strict, queue):
    """As one does that blocks its producers: what was written so far is rolled back with the connection."""
    with Proxy(strict.host, strict.port) as proxy:
        options = SinkOptions.parse(access(strict) | {"brokerUrl": proxy.url, "receiptTimeout": "1s"})
        with pytest.raises(ReceiptTimeoutError, match=r"\[JMS_RECEIPT_TIMEOUT\].* 1 s"):
            send_at_least_once(StompSinkLink, options, stalled_on_the_way(proxy, f"open.{queue}"))
    assert left(strict, f"open.{queue}") == 0


def stalled_on_the_way(proxy, name):
    """Far more than sockets hold; the broker takes nothing after the first batch."""
    for _ in range(40):
        yield rows_to(name, text="x" * 100_000)
        proxy.to_broker.stall()
