import pytest
from amqp_messages import block_of
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.pull import Pull
from pyspark_jms.amqp.link.sources import OUTCOMES
from pyspark_jms.amqp.link.transacted import Transacted
from pyspark_jms.amqp.wire.sections import DATA
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.amqp.wire.values import Described, encode


@pytest.fixture
def connection(broker, settings_for, opened):
    return opened(connect(settings_for(broker)))


def data(text):
    return encode(Described(DATA, text))


def test_nothing_is_visible_before_the_discharge(broker, queue, connection):
    transacted, whole = Transacted(connection), data(b"x" * 300_000)
    transacted.send(queue, "queue", block_of([data(b"a"), data(b"b")]))
    transacted.send_pieces(f"{queue}.2", "queue", [whole[:7], memoryview(whole)[7:]])
    wait_until(lambda: broker.has_queue(f"{queue}.2"))
    await_value(lambda: (broker.message_count(queue), broker.message_count(f"{queue}.2")), (0, 0))
    transacted.discharge()
    await_count(broker, queue, 2)
    pull = Pull(connection, Source(address=f"{queue}.2", outcomes=OUTCOMES, capabilities=("queue",)))
    block = pull.exactly(1, 10)
    assert block.message(0).endswith(whole)
    transacted.accept([(pull.receiver, block.ids)])
    transacted.discharge()
    await_count(broker, f"{queue}.2", 0)


def test_two_transactions_of_a_connection_end_each_by_itself(broker, queue, connection):
    first, second = Transacted(connection), Transacted(connection)
    first.send(queue, "queue", block_of([data(b"a")]))
    second.send(f"{queue}.2", "queue", block_of([data(b"b")]))
    second.discharge()
    await_count(broker, f"{queue}.2", 1)
    first.roll_back()
    first.send(queue, "queue", block_of([data(b"c")]))
    first.discharge()
    await_count(broker, queue, 1)
