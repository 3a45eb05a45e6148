"""Queue operations for tests. They call the broker's Java objects through py4j."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Never
from urllib.parse import urlsplit

from pyspark_jms.errors import EmbeddedBrokerError

__all__ = ["Broker", "DeadLetter", "ExternalBroker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One message of the dead-letter queue."""

    queue: str | None
    """The queue on which the message was dead-lettered."""

    message_id: int | str
    """The broker's id in that queue: on Artemis the part of a STOMP ``message-id`` after the comma."""


class Broker(ABC):
    """A broker whose queues a test asks about. The operations are those of Artemis."""

    host: str
    port: int
    user: str
    password: str

    @property
    @abstractmethod
    def url(self) -> str:
        """The value of option ``brokerUrl``."""

    @property
    @abstractmethod
    def jvm(self) -> Any:
        """The broker's JVM: ``broker.jvm.java.lang.System``, and every class of Artemis and Jakarta JMS."""

    @property
    @abstractmethod
    def gateway(self) -> Any:
        """The py4j gateway to the broker's JVM, for instance for arrays."""

    @property
    @abstractmethod
    def server(self) -> Any:
        """The running ``org.apache.activemq.artemis.core.server.ActiveMQServer``."""

    @contextlib.contextmanager
    def _releasing(self, reference: Any) -> Iterator[Any]:
        """Release a Java object at the end: py4j would keep it for ever."""
        try:
            yield reference
        finally:
            if reference is not None:
                self.gateway.detach(reference)

    @contextlib.contextmanager
    def _queue(self, name: str) -> Iterator[Any]:
        with self._releasing(self._find(name)) as queue:
            if queue is None:
                raise EmbeddedBrokerError(f"The broker has no queue {name!r}.", "Create it with create_queue().")
            yield queue

    def _find(self, queue: str) -> Any:
        """Return the Java object of a queue, or None."""
        found = self.server.locateQueue(queue)
        if found is not None:
            found.flushExecutor()  # the counts may lag behind the receipts
        return found

    def has_queue(self, queue: str) -> bool:
        with self._releasing(self._find(queue)) as found:
            return found is not None

    def message_count(self, queue: str) -> int:
        """Return the number of messages on the queue, in delivery or not, with scheduled ones; 0 without the queue."""
        return self._count(queue, "Message") if self.has_queue(queue) else 0

    def delivering_count(self, queue: str) -> int:
        """Return the number of messages that are delivered and not acknowledged."""
        return self._count(queue, "Delivering")

    def consumer_count(self, queue: str) -> int:
        return self._count(queue, "Consumer")

    def _count(self, queue: str, counted: str) -> int:
        with self._queue(queue) as found:
            return int(getattr(found, f"get{counted}Count")())

    def delivery_counts(self, queue: str) -> list[int]:
        """Return the number of deliveries of each waiting message in order, without messages in delivery."""
        return [int(reference.getDeliveryCount()) for reference in self._waiting(queue)]

    def dead_letters(self, dead_letter_queue: str = "DLQ") -> list[DeadLetter]:
        letters = []
        for reference in self._waiting(dead_letter_queue):
            with self._releasing(reference.getMessage()) as message:
                letters.append(_dead_letter(message))
        return letters

    def _waiting(self, queue: str) -> Iterator[Any]:
        """Yield the message references of a queue in order, including paged ones. Each is valid until the next."""
        with (
            self._queue(queue) as found,
            self._releasing(found.browserIterator()) as references,
            contextlib.closing(references),
        ):
            while references.hasNext():
                with self._releasing(references.next()) as reference:
                    yield reference

    def create_queue(self, name: str, *, topic: bool = False) -> None:
        """Create a durable queue, or with ``topic`` the address of a topic."""
        core = self.jvm.org.apache.activemq.artemis.api.core
        if topic:
            address = self.jvm.org.apache.activemq.artemis.core.server.impl.AddressInfo(name)
            self.server.addOrUpdateAddressInfo(address.addRoutingType(core.RoutingType.MULTICAST))
        else:
            configuration = core.QueueConfiguration.of(name).setRoutingType(core.RoutingType.ANYCAST)
            self.server.createQueue(configuration.setDurable(True), True)  # noqa: FBT003 - ignore if it exists

    def purge(self, queue: str) -> int:
        """Delete the waiting messages and return their number."""
        with self._queue(queue):
            # The management object, unlike the queue, returns after journal and counts are updated.
            control = self.server.getManagementService().getResource(f"queue.{queue}")
        with self._releasing(control):
            return int(control.removeAllMessages())


def _dead_letter(message: Any) -> DeadLetter:
    """Return the dead letter. If it was sent directly to the dead-letter queue, it has no origin but its own id."""
    queue = message.getObjectProperty("_AMQ_ORIG_QUEUE")
    origin = message.getObjectProperty("_AMQ_ORIG_MESSAGE_ID")
    return DeadLetter(
        queue=None if queue is None else str(queue),
        message_id=int(message.getMessageID() if origin is None else origin),
    )


# --- a broker of another process ---------------------------------------------------------------------


class ExternalBroker(Broker):
    """A running broker of another process. Methods that need the broker's JVM raise an error."""

    def __init__(self, url: str, user: str = "artemis", password: str = "artemis") -> None:
        first = urlsplit(url.partition(",")[0])
        if first.hostname is None or first.port is None:
            raise EmbeddedBrokerError(f"JMS_BROKER_URL={url} is not an address.", "Use stomp://HOST:PORT.")
        self.host, self.port = first.hostname, first.port
        self.user, self.password = user, password
        self._url = url

    @property
    def url(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"<ExternalBroker {self.url} user={self.user}>"

    def _refuse(self) -> Never:
        raise EmbeddedBrokerError(
            f"Only an embedded broker has this method, and the broker {self.url} is not embedded.",
            "Unset JMS_BROKER_URL, or skip the test.",
        )

    jvm = gateway = server = property(_refuse)
