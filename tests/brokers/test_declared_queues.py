"""Queues of RabbitMQ that were declared with arguments, over STOMP: refused with what to do instead, which works."""

import contextlib

import pytest
from broker_rows import access_over, write_rows
from broker_stage import require_rabbitmq
from installed_rabbit import InstalledRabbit
from receivers import OpenReceiver
from waiting import await_count, wait_until

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.options.source import SourceOptions

pytestmark = [pytest.mark.broker, pytest.mark.deep]

ARGUMENTS = {
    "priorities": {"x-max-priority": 10},
    "ttl": {"x-message-ttl": 600_000},
    "dead letters": {"x-dead-letter-exchange": "letters"},
    "quorum": {"x-queue-type": "quorum"},
    "stream": {"x-queue-type": "stream"},
}
ROW = [{"text": "row"}]


@pytest.fixture(scope="module")
def rabbit():
    require_rabbitmq()
    with InstalledRabbit() as broker:
        yield broker


def arrived(access, queue):
    with contextlib.closing(OpenReceiver(SourceOptions.parse(access | {"queue": queue}))) as receiver:
        wait_until(lambda: receiver.links[0].waiting()[0], what="the message")


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_a_queue_with_arguments_is_read_and_written_as_the_error_says(rabbit, kind):
    access, queue = access_over(rabbit, "stomp"), f"declared-{kind.replace(' ', '-')}"
    rabbit.create_queue(queue, ARGUMENTS[kind])
    refused = r"The queue was declared with arguments.*queue=/amq/queue/NAME\..*topic=/exchange/EXCHANGE/KEY "
    with pytest.raises(InvalidDestinationError, match=refused):
        write_rows(access, queue, ROW, transaction="none")
    with pytest.raises(InvalidDestinationError, match=refused):
        OpenReceiver(SourceOptions.parse(access | {"queue": queue}))
    with rabbit.amqp() as channel:
        channel.queue_bind(queue, "amq.direct", "key")
    write_rows(access, None, ROW, topic="/exchange/amq.direct/key", transaction="none")
    if kind == "stream":
        await_count(rabbit, queue, 1)  # it is read by offset, over AMQP
    else:
        arrived(access, f"/amq/queue/{queue}")
