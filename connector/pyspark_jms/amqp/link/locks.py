"""A queue → whether its one consumer has a lock. The lock of a stream and of a ledger is such a queue."""

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.pull import Pull
from pyspark_jms.amqp.link.sources import OUTCOMES
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.errors import MaxConsumersError, SubscriptionInUseError

__all__ = ["require_one_consumer"]


def require_one_consumer(connection: Connection, queue: str) -> None:
    """``MaxConsumersError`` unless the broker refuses a second consumer of a queue that the connection consumes from.

    A durable subscription has one consumer. But a queue with its name, which an administrator created beforehand, has
    as many as it was given: without ``max-consumers``, any number. ``queue``: by its fully qualified name.
    """
    try:
        second = Pull(connection, Source(address=queue, outcomes=OUTCOMES, capabilities=("topic",)))
    except SubscriptionInUseError:
        return
    second.detach()
    raise MaxConsumersError(
        f"The broker lets a second consumer read from {queue}, so this queue is no lock. Nothing was read or sent.",
        "The queue was created beforehand: set its max-consumers to 1. If it is empty, delete it and create it again.",
    )
