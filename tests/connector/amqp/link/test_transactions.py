import pytest
from amqp_messages import TRUE, block_of, list_, section, string
from waiting import await_value

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.types import Target
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
