"""A Java JMS client in the embedded broker's JVM or in its own JVM: it sends and receives like a Java application.

Python values -> Jakarta messages, and Jakarta messages -> Python values with the Java type of every value.
"""

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

from pyspark_jms.jms.model import BodyType, DeliveryMode, Destination, DestinationKind
from pyspark_jms.network.connection import closed_on
from pyspark_jms.tools.testing.client_machine import client_machine
from pyspark_jms.tools.testing.java import JavaTypes, strings
from pyspark_jms.tools.testing.lifecycle import JavaBroker
from pyspark_jms.tools.testing.operations import ExternalBroker

__all__ = ["JmsClient", "JmsMessage", "Typed"]

Body: TypeAlias = str | bytes | Mapping[str, Any] | Sequence[Any] | JavaObject | None

_Read = TypeVar("_Read")
_INT = range(-(2**31), 2**31)
_DEFAULT_TYPES = ((bool, "boolean"), (int, "int"), (float, "double"), (bytes, "bytes"), (str, "string"))
_AUTO_ACKNOWLEDGE = 1


class Typed(NamedTuple):
    """A value with its Java type: boolean, byte, short, int, long, float, double, char, string or bytes."""

    type: str
    value: Any

    @classmethod
    def of(cls, value: Any) -> "Typed":
        """Return a Python value with its default Java type."""
        if isinstance(value, Typed):
            return value
        for kind, name in _DEFAULT_TYPES:
            if isinstance(value, kind):
                return Typed("long" if name == "int" and value not in _INT else name, value)
        raise TypeError(f"a {type(value).__name__} has no JMS type")


@dataclass(frozen=True, slots=True, kw_only=True)
class JmsMessage:
    """A received message. ``properties``, and the body of a map or stream, hold :class:`Typed` values."""

    body_type: BodyType
    body: Any
    """A str, bytes, dict or list. An ObjectMessage has ``toString()`` of its object, a plain Message has None."""

    properties: dict[str, Typed | None]
    message_id: str | None
    correlation_id: str | None
    type: str | None
    reply_to: str | None
    """``queue://NAME`` or ``topic://NAME``. Only the name if the sender gave no type, as over STOMP."""

    destination: str | None
    delivery_mode: DeliveryMode
    priority: int
    expiration: int
    timestamp: int
    delivery_time: int
    redelivered: bool


class JmsClient:
    """A Java JMS client with one connection and one session, which acknowledges automatically.

        with JmsClient(broker) as java:
            java.send("orders", {"price": Typed("float", 1.5)}, properties={"n": Typed("short", 3)})
            message = java.receive("orders")

    ``broker`` is an ``EmbeddedArtemis`` or ``EmbeddedClassic`` of this process, or an Artemis of another process as
    ``ExternalBroker`` or address. For another process, the client starts its own Java virtual machine:
    ``JmsClient("stomp://localhost:61613")`` connects to a ``pyspark-jms broker``, and
    ``JmsClient("amqp://localhost:5672")`` is Qpid JMS on any broker with AMQP 1.0.

    Destinations are ``NAME`` or ``queue://NAME``, and ``topic://NAME``. The broker deletes a
    ``temporary_queue()`` when the client closes.
    """

    def __init__(
        self, broker: JavaBroker | ExternalBroker | str, user: str | None = None, password: str | None = None
    ) -> None:
        self._machine = client_machine(broker)
        self._gateway = self._machine.gateway
        with closed_on(BaseException, self._machine.close):
            self._connection = self._machine.connect(user, password)
            self._session = self._connection.createSession(False, _AUTO_ACKNOWLEDGE)  # noqa: FBT003 - not transacted
            self._producer = self._session.createProducer(None)
            self._types = JavaTypes(self._machine.jvm)
            self._connection.start()
        self._delivery_delay = 0
        self._temporary: dict[Destination, Any] = {}

    def close(self) -> None:
        try:
            self._connection.close()
        finally:
            self._machine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Py4JJavaError):  # its text comes from the virtual machine, which may end here
            with contextlib.suppress(Exception):
                error.add_note(str(error))
        if self._machine.alive():
            self.close()
        else:
            self._machine.close()

    # --- sending -----------------------------------------------------------------------------

    def send(
        self,
        destination: str,
        body: Body = None,
        *,
        body_type: BodyType | None = None,
        properties: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        type: str | None = None,  # noqa: A002 - JMSType
        reply_to: str | None = None,
        delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT,
        priority: int = 4,
        time_to_live: int = 0,
        delivery_delay: int = 0,
    ) -> str:
        """Send one message and return its JMSMessageID. With ``body_type`` and without ``body`` the body is empty."""
        message = self._message(body, body_type or _body_type(body))
        for name, value in (properties or {}).items():
            _set(message, "set{}Property", value, name)
        message.setJMSCorrelationID(correlation_id)
        message.setJMSType(type)
        if reply_to is not None:
            message.setJMSReplyTo(self._destination(reply_to))
        if delivery_delay != self._delivery_delay:  # Classic refuses the call with every value
            self._producer.setDeliveryDelay(delivery_delay)
            self._delivery_delay = delivery_delay
        target = self._destination(destination)
        self._producer.send(target, message, int(delivery_mode), priority, time_to_live)
        message_id = str(message.getJMSMessageID())
        self._gateway.detach(message)
        return message_id

    def temporary_queue(self) -> str:
        """Create a temporary queue, for instance for replies, and return ``temp-queue://NAME``."""
        queue = self._session.createTemporaryQueue()
        destination = Destination(DestinationKind.QUEUE, str(queue.getQueueName()), temporary=True)
        self._temporary[destination] = queue
        return str(destination)

    def _destination(self, name: str) -> Any:
        destination = Destination.parse(name if "://" in name else f"queue://{name}")
        if destination in self._temporary:
            return self._temporary[destination]
        if destination.kind is DestinationKind.QUEUE:
            return self._session.createQueue(destination.name)
        return self._session.createTopic(destination.name)

    def _message(self, body: Any, body_type: BodyType) -> Any:
        match body_type:
            case BodyType.TEXT:
                return self._session.createTextMessage(body)
            case BodyType.BYTES:
                message = self._session.createBytesMessage()
                message.writeBytes(body or b"")
                return message
            case BodyType.MAP:
                message = self._session.createMapMessage()
                for name, value in (body or {}).items():
                    _set(message, "set{}", value, name)
                return message
            case BodyType.STREAM:
                message = self._session.createStreamMessage()
                for value in body or []:
                    _set(message, "write{}", value)
                return message
            case BodyType.OBJECT:
                return self._session.createObjectMessage(body)
            case BodyType.MESSAGE:
                return self._session.createMessage()

    # --- receiving ---------------------------------------------------------------------------

    def receive(self, destination: str, timeout: float = 5.0, *, selector: str | None = None) -> JmsMessage | None:
        """Return the next message, or None if no message arrives within ``timeout`` seconds."""
        return self.receive_as(self._read, destination, timeout, selector=selector)

    def receive_all(self, destination: str, count: int, timeout: float = 5.0) -> list[JmsMessage]:
        """Return the next ``count`` messages, or fewer if no message arrives within ``timeout`` seconds."""
        with contextlib.closing(self._received(self._read, destination, timeout)) as found:
            return list(islice(found, count))

    def receive_as(
        self, read: Callable[[Any], _Read], destination: str, timeout: float = 5.0, *, selector: str | None = None
    ) -> _Read | None:
        """Return what ``read`` returns for the next ``jakarta.jms.Message``, which ``read`` must not store."""
        with contextlib.closing(self._received(read, destination, timeout, selector)) as found:
            return next(found, None)

    def _received(
        self, read: Callable[[Any], _Read], destination: str, timeout: float, selector: str | None = None
    ) -> Generator[_Read, None, None]:
        """Yield what ``read`` returns for each message, until none arrives in time."""
        with contextlib.closing(self._session.createConsumer(self._destination(destination), selector)) as consumer:
            while (message := consumer.receive(round(timeout * 1000))) is not None:
                try:
                    yield read(message)
                finally:
                    self._gateway.detach(message)

    def _read(self, message: Any) -> JmsMessage:
        body_type = _body_type_of(message)
        return JmsMessage(
            body_type=body_type,
            body=self._body(message, body_type),
            properties={
                name: self._typed(message, "jakarta.jms.Message", "getObjectProperty", name)
                for name in strings(message.getPropertyNames())
            },
            message_id=message.getJMSMessageID(),
            correlation_id=message.getJMSCorrelationID(),
            type=message.getJMSType(),
            reply_to=_destination_of(message.getJMSReplyTo()),
            destination=_destination_of(message.getJMSDestination()),
            delivery_mode=DeliveryMode(message.getJMSDeliveryMode()),
            priority=message.getJMSPriority(),
            expiration=message.getJMSExpiration(),
            timestamp=message.getJMSTimestamp(),
            delivery_time=message.getJMSDeliveryTime(),
            redelivered=message.getJMSRedelivered(),
        )

    def _body(self, message: Any, body_type: BodyType) -> Any:
        match body_type:
            case BodyType.TEXT:
                return message.getText()
            case BodyType.BYTES:
                return bytes(message.getBody(self._types.named("[B")) or b"")
            case BodyType.MAP:
                return {
                    name: self._typed(message, "jakarta.jms.MapMessage", "getObject", name)
                    for name in strings(message.getMapNames())
                }
            case BodyType.STREAM:
                return list(self._stream(message))
            case BodyType.OBJECT:
                return str(message.getObject().toString())
            case BodyType.MESSAGE:
                return None

    def _stream(self, message: Any) -> Iterator[Typed | None]:
        while True:
            try:
                yield self._typed(message, "jakarta.jms.StreamMessage", "readObject")
            except Py4JJavaError as error:
                if error.java_exception.getClass().getSimpleName() != "MessageEOFException":
                    raise
                return

    def _typed(self, message: Any, owner: str, getter: str, *name: str) -> Typed | None:
        found = self._types.typed(message, owner, getter, *name)
        return found and Typed(*found)


_BODY_TYPES = (
    (JavaObject, BodyType.OBJECT),  # before Mapping and Sequence, because Java maps and lists match them
    (str, BodyType.TEXT),
    (bytes, BodyType.BYTES),
    (Mapping, BodyType.MAP),
    (Sequence, BodyType.STREAM),
)


def _body_type(body: Any) -> BodyType:
    if body is None:
        return BodyType.MESSAGE
    for kind, body_type in _BODY_TYPES:
        if isinstance(body, kind):
            return body_type
    raise TypeError(f"no JMS message holds a {type(body).__name__}")


def _body_type_of(message: Any) -> BodyType:
    """Return the body type of ``ActiveMQTextMessage``, ``JmsTextMessage`` etc.; ``ActiveMQMessage`` has no body."""
    name = _plain_name(message).removesuffix("Message")
    return BodyType(name.lower() or "message")


def _destination_of(destination: Any) -> str | None:
    if destination is None:
        return None
    named = _plain_name(destination).lower()
    kind = named.removeprefix("temporary").removeprefix("temp")
    if kind not in {*DestinationKind}:
        return str(destination.getAddress())
    name = destination.getQueueName() if kind == DestinationKind.QUEUE else destination.getTopicName()
    return str(Destination(DestinationKind(kind), str(name), temporary=named != kind))


def _plain_name(value: Any) -> str:
    """Return the name of a class of ActiveMQ or Qpid JMS without that of its library."""
    return str(value.getClass().getSimpleName()).removeprefix("ActiveMQ").removeprefix("Jms")


def _set(message: Any, setter: str, value: Any, *name: str) -> None:
    """Call the setter for the value's type, as ``setInt`` of ``set{}``."""
    kind, plain = ("object", None) if value is None else Typed.of(value)
    getattr(message, setter.format(kind.capitalize()))(*name, plain)
