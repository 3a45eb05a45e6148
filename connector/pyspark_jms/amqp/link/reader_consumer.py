"""The consumer of a queue or subscription that a task reads, on the connection of its register.

No credit stands while nobody asks for messages.
"""

from collections.abc import Sequence

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.consumer import attach, check_oversized
from pyspark_jms.amqp.link.prefetch import Prefetch
from pyspark_jms.amqp.link.subscriptions import require_harmless
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import OnConnection
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["ReaderConsumer"]


class ReaderConsumer(OnConnection[Dialect]):
    """``resume``, and messages arrive; ``pause``, and no more can. They are accepted by a commit, or released."""

    def __init__(self, connection: Connection, subscription: Subscription, settings: ConnectionSettings) -> None:
        """Attach the receiver. Raises the broker's refusal."""
        self._settings = settings
        self.connection: Connection = connection
        self.subscription = subscription
        if subscription.durable is None:  # that of the driver is asked for before the first task (reading.Probe)
            require_harmless(settings, subscription, connection.dialect)
        self.receiver: Receiver = attach(connection, subscription)
        self._prefetch = Prefetch(connection, self.receiver, subscription, paused=True)
        self._asked_empty = 0

    def grant(self) -> None:
        """Called after bytes have arrived."""
        self._prefetch.grant()

    def resume(self) -> None:
        self._asked_empty = self.receiver.proven_empty
        self._prefetch.resume()

    def pause(self) -> None:
        self._prefetch.pause()

    @property
    def was_empty(self) -> bool:
        """Whether the last ``pause`` has proven that the queue has no message for this link."""
        return self.receiver.proven_empty > self._asked_empty

    def waiting(self) -> tuple[int, int]:
        return self._prefetch.waiting()

    def take(self, *, only_full: bool = False) -> list[MessageBlock]:
        return self._prefetch.take(only_full=only_full)

    def take_oversized(self) -> list[OversizedMessage]:
        return self._prefetch.take_oversized()

    def check(self) -> None:
        self.connection.check()
        self.connection.check_link(self.receiver)
        check_oversized(self.receiver, self._settings)

    def released(self, messages: int) -> None:
        """They were accepted, or given back."""
        self._prefetch.released(messages)

    def release(self, ids: Sequence[bytes | None]) -> None:
        """Give messages back; their delivery counts stay."""
        with self.connection.core():
            self.receiver.release(ids)
        self._prefetch.released(len(ids))

    def detach(self) -> None:
        """Give back what was not accepted. Never raises."""
        try:
            with self.connection.core():
                self.receiver.detach(closed=self.subscription.durable is None)
            self.connection.await_(lambda: not self.receiver.is_attached, "its detach")
        except JMSError:
            self.connection.drop()
