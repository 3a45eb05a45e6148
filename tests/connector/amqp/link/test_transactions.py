import pytest
from amqp_messages import TRUE, block_of, list_, section, string
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.pull import Pull
from pyspark_jms.amqp.link.subscriptions import OUTCOMES
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.sections import DATA
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.types import Source, Target
from pyspark_jms.amqp.wire.values import Described, encode
from pyspark_jms.errors import IllegalStateError, TransactionRolledBackError


@pytest.fixture
def sending(broker, queue, settings_for, opened):
    """The transactions of a connection, and a function that sends a message to the test's queue in them."""
    connection = opened(connect(settings_for(broker)))
    transactions = Transactions(connection)
    with connection.core() as session:
        sender = session.link(Sender, "rows")
        sender.attach_to(Target(address=queue, capabilities=("queue",)))
    connection.await_attached(sender)
    message = block_of([section(0x70, list_(TRUE)) + section(0x77, string("a"))])

    def send(txn_id):
        connection.await_(lambda: sender.sendable, "credit")
        with connection.core():
            transactions.require_open(txn_id)
            sender.send(message, 0, 1, txn_id=txn_id)

    return transactions, send, connection


def test_one_transaction_at_a_time(broker, queue, sending):
    transactions, send, _ = sending
    assert not transactions.is_open
    first = transactions.begin()
    assert transactions.begin() == first
    send(first)
    transactions.commit()
    await_value(lambda: (transactions.is_open, broker.message_count(queue)), (False, 1))
    second = transactions.begin()
    send(second)
    transactions.roll_back()
    await_value(lambda: (transactions.is_open, broker.message_count(queue)), (False, 1))
    assert transactions.begin() not in {first, second}


def test_the_next_transaction_begins_with_the_end_of_one(broker, queue, sending):
    transactions, send, connection = sending
    first = transactions.begin()
    send(first)
    with connection.core():
        answer = transactions.go_on(first)
    second = transactions.await_open()
    connection.await_(lambda: answer.done, "the outcome")
    assert answer.error is None
    assert second == transactions.begin() != first
    await_count(broker, queue, 1)


def test_no_frame_names_a_transaction_after_its_end(sending):
    transactions, send, _ = sending
    txn_id = transactions.begin()
    transactions.commit()
    with pytest.raises(IllegalStateError):
        send(txn_id)


def test_a_commit_without_an_answer_is_an_error_and_ends_the_connection(sending):
    transactions, send, connection = sending
    send(transactions.begin())
    connection.drop()
    with pytest.raises(TransactionRolledBackError, match="may have committed nevertheless"):
        transactions.commit()
    transactions.commit()


# --- what is in them ----------------------------------------------------------------------------------------


@pytest.fixture
def connection(broker, settings_for, opened):
    return opened(connect(settings_for(broker)))


def data(text):
    return encode(Described(DATA, text))


def test_nothing_is_visible_before_the_discharge(broker, queue, connection):
    transactions, whole = Transactions(connection), data(b"x" * 300_000)
    transactions.send(queue, "queue", block_of([data(b"a"), data(b"b")]))
    transactions.send_pieces(f"{queue}.2", "queue", [whole[:7], memoryview(whole)[7:]])
    wait_until(lambda: broker.has_queue(f"{queue}.2"))
    await_value(lambda: (broker.message_count(queue), broker.message_count(f"{queue}.2")), (0, 0))
    transactions.discharge()
    await_count(broker, queue, 2)
    pull = Pull(connection, Source(address=f"{queue}.2", outcomes=OUTCOMES, capabilities=("queue",)))
    block = pull.exactly(1, 10)
    assert block.message(0).endswith(whole)
    transactions.accept([(pull.receiver, block.ids)])
    transactions.discharge()
    await_count(broker, f"{queue}.2", 0)


def test_two_transactions_of_a_connection_end_each_by_itself(broker, queue, connection):
    first, second = Transactions(connection), Transactions(connection)
    first.send(queue, "queue", block_of([data(b"a")]))
    second.send(f"{queue}.2", "queue", block_of([data(b"b")]))
    second.discharge()
    await_count(broker, f"{queue}.2", 1)
    first.roll_back()
    first.send(queue, "queue", block_of([data(b"c")]))
    first.discharge()
    await_count(broker, queue, 1)


# --- the sending links of a connection --------------------------------------------------------------


def test_an_address_has_one_link_until_the_link_ends(queue, connection):
    transactions = Transactions(connection)
    first = transactions.sender_to(queue, "queue")
    assert transactions.sender_to(queue, "queue") is first
    assert transactions.sender_to(f"{queue}.2", "queue") is not first
    with connection.core():
        first.detach()
    connection.await_(lambda: not first.is_attached, "its detach")
    second = transactions.sender_to(queue, "queue")
    assert second is not first
    connection.await_credit(second, "messages")
    assert second.name.startswith("sending-")
    assert second.sendable
