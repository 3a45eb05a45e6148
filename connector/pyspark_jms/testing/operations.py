"""What a test asks about queues: answered by the broker's own objects, in its JVM, through py4j."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark_jms.errors import EmbeddedBrokerError

__all__ = ["Broker", "DeadLetter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One message of the dead-letter queue."""

    queue: str | None
    """The queue it came from."""

    message_id: int | str
    """The broker's id in that queue: on Artemis the part of a STOMP ``message-id`` after the comma."""


class Broker(ABC):
    host: str
    port: int
    user: str
    password: str

    @property
    @abstractmethod
    def url(self) -> str:
        """What option ``brokerUrl`` takes."""

    @property
    @abstractmethod
    def jvm(self) -> Any:
        """The broker's own JVM: ``broker.jvm.java.lang.System``, and every class of Artemis and Jakarta JMS."""

    @property
    @abstractmethod
    def gateway(self) -> Any:
        """The py4j gateway to it, for arrays and the like."""

    @property
    @abstractmethod
    def server(self) -> Any:
        """The running ``org.apache.activemq.artemis.core.server.ActiveMQServer``."""

    @abstractmethod
    def _release(self, _reference: Any) -> None:
        """Forget a Java object this process holds; py4j keeps it for ever otherwise."""

    @contextlib.contextmanager
    def _held(self, reference: Any) -> Iterator[Any]:
        try:
            yield reference
        finally:
            if reference is not None:
                self._release(reference)

    @contextlib.contextmanager
    def _queue(self, name: str) -> Iterator[Any]:
        with self._held(self.server.locateQueue(name)) as queue:
            if queue is None:
                raise EmbeddedBrokerError(f"The broker has no queue {name!r}.", "create_queue() makes one.")
            queue.flushExecutor()  # what a sender has a receipt for may still be on its way into the counts
            yield queue

    def has_queue(self, queue: str) -> bool:
        with self._held(self.server.locateQueue(queue)) as found:
            return found is not None

    def message_count(self, queue: str) -> int:
        """Messages the queue holds, those in delivery and those scheduled included; 0 where there is no queue."""
        if not self.has_queue(queue):
            return 0
        with self._queue(queue) as found:
            return int(found.getMessageCount())

    def delivering_count(self, queue: str) -> int:
        """Messages sent to consumers and not acknowledged yet."""
        with self._queue(queue) as found:
            return int(found.getDeliveringCount())

    def consumer_count(self, queue: str) -> int:
        with self._queue(queue) as found:
            return int(found.getConsumerCount())

    def delivery_counts(self, queue: str) -> list[int]:
        """How often each waiting message was delivered, head first; what is in delivery is not in the list."""
        return [int(reference.getDeliveryCount()) for reference in self._waiting(queue)]

    def dead_letters(self, dead_letter_queue: str = "DLQ") -> list[DeadLetter]:
        letters = []
        for reference in self._waiting(dead_letter_queue):
            with self._held(reference.getMessage()) as message:
                letters.append(_dead_letter(message))
        return letters

    def _waiting(self, queue: str) -> Iterator[Any]:
        """The message references of a queue, in order, paged ones too; each is good until the next."""
        with (
            self._queue(queue) as found,
            self._held(found.browserIterator()) as references,
            contextlib.closing(references),
        ):
            while references.hasNext():
                with self._held(references.next()) as reference:
                    yield reference

    def create_queue(self, name: str, *, topic: bool = False) -> None:
        """A durable queue of that address, or with ``topic`` the address that topic subscribers share."""
        core = self.jvm.org.apache.activemq.artemis.api.core
        if topic:
            address = self.jvm.org.apache.activemq.artemis.core.server.impl.AddressInfo(name)
            self.server.addOrUpdateAddressInfo(address.addRoutingType(core.RoutingType.MULTICAST))
        else:
            configuration = core.QueueConfiguration.of(name).setRoutingType(core.RoutingType.ANYCAST)
            self.server.createQueue(configuration.setDurable(True), True)  # noqa: FBT003 - ignore if it exists

    def purge(self, queue: str) -> int:
        """Delete what waits in the queue; returns how many that were."""
        with self._queue(queue):
            # The management object, not the queue: it returns when the journal has it, and the counts with it.
            control = self.server.getManagementService().getResource(f"queue.{queue}")
        with self._held(control):
            return int(control.removeAllMessages())


def _dead_letter(message: Any) -> DeadLetter:
    """A message that was sent to the queue by hand has no origin: its own id stands for itself."""
    queue = message.getObjectProperty("_AMQ_ORIG_QUEUE")
    origin = message.getObjectProperty("_AMQ_ORIG_MESSAGE_ID")
    return DeadLetter(
        queue=None if queue is None else str(queue),
        message_id=int(message.getMessageID() if origin is None else origin),
    )
