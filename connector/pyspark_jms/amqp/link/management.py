"""Management over AMQP: a message to the broker, and its reply.

An ``AmqpManagementLink`` gets its replies on a topic for the replies of all clients. A ``NodeManagementLink`` asks the
management node of Qpid Broker-J: an object is named by its type and key, and a reply is a map. The node is that of a
working draft, AMQP Management 1.0; Broker-J finds objects by ``index`` and ``key``. ``describe_queue`` asks the
management node of RabbitMQ what it says of a queue: a request of HTTP over AMQP, on a pair of links. The pair is that
of a working draft too, AMQP Link Pairing 1.0: a sender and a receiver of one name.
"""

import json
import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import APPLICATION_PROPERTIES, PROPERTIES, VALUE
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.types import Source, Target
from pyspark_jms.amqp.wire.values import Described, Symbol, encode, section_values
from pyspark_jms.blocks.block import block_of
from pyspark_jms.errors import (
    BrokerError,
    InvalidDestinationError,
    JMSSecurityError,
    MalformedFrameError,
    UnsupportedError,
)
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.headers import PropertiesField
from pyspark_jms.management.attributes import READ
from pyspark_jms.management.link import ManagementLink, Reply, unknown_resource
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["AmqpManagementLink", "describe_queue", "open_amqp_management", "refuse_stream"]

_log = logging.getLogger("pyspark_jms.link")
_CREDIT = 1_000


def open_amqp_management(settings: ConnectionSettings) -> ManagementLink:
    """A link to the management of the broker, whichever its kind is."""
    connection = connect(settings.of_management())
    words = connection.dialect.management
    is_node = words is not None and not words.reply_address
    return (NodeManagementLink if is_node else AmqpManagementLink)(settings, connection)


class AmqpManagementLink(ManagementLink):
    _protocol = "AMQP"
    _connection: Connection

    def __init__(self, settings: ConnectionSettings, connection: Connection | None = None) -> None:
        """``connection``: one that is open already, and belongs to this link from now on."""
        super().__init__(settings, connection or connect(settings.of_management()))

    def _listen(self) -> None:
        target, attached = Target(address=self.words.address), self._connection.attached
        self._replies = attached(Receiver, self._reply_source(), f"replies-{self._id}")
        self._sender = attached(Sender, target, f"requests-{self._id}")

    def _reply_source(self) -> Source:
        if not self.words.reply_address:
            return Source(dynamic=True, expiry_policy="link-detach", capabilities=("temporary-queue",))
        return Source(address=self.words.reply_address, capabilities=("topic",))

    def _exchange(self, headers: dict[str, str], body: str) -> Reply:
        properties, value = self._ask(headers, body)
        succeeded = properties.get(self.words.success_header)
        return Reply(succeeded in {True, "true"}, str(value or "").encode())

    def _ask(self, headers: Mapping[str, str], body: Any) -> tuple[dict[str, Any], Any]:
        """Send a request, and return the application properties and the value of its reply."""
        correlation = self._new_correlation()
        source = self._replies.remote_source
        reply_to = self.words.reply_address or (source.address if source is not None else None)
        message = encode(Described(PROPERTIES, [None] * PropertiesField.REPLY_TO + [reply_to, correlation]))
        message += encode(Described(APPLICATION_PROPERTIES, dict(headers))) + encode(Described(VALUE, body))
        self._connection.await_credit(self._sender, "requests")
        with self._connection.core():
            self._replies.grant(_CREDIT)
            self._sender.send(block_of(message), 0, 1, settled=False)
        found = self._reply(correlation)
        return found.get(APPLICATION_PROPERTIES, {}), found.get(VALUE)

    def _arrived(self, deadline: float) -> Iterator[tuple[object, dict[int, Any]]]:
        connection, transfers = self._connection, self._replies.transfers
        with connection.condition:
            connection.condition.await_(
                lambda: len(transfers), self._check, deadline - time.monotonic(), self._no_reply
            )
            block = transfers.take()
        with connection.core():
            self._replies.accept(block.ids)
        for index in range(len(block)):
            found = section_values(block.message(index))
            yield _item(found.get(PROPERTIES), PropertiesField.CORRELATION_ID), found

    def _check(self) -> None:
        self._connection.check()
        self._connection.check_link(self._replies)
        self._connection.check_link(self._sender)
        if self._sender.rejection is not None:
            raise self._refused()


def _item(fields: Any, number: int) -> Any:
    return fields[number] if isinstance(fields, list) and number < len(fields) else None


# --- Qpid Broker-J's management node -----------------------------------------------------------------

_OK, _UNAUTHORISED, _FORBIDDEN = 200, 401, 403


class NodeManagementLink(AmqpManagementLink):
    """The resource is ``TYPE KEY``. A name of an attribute begins with ``READ``; other names are statistics."""

    def _listen(self) -> None:
        try:
            super()._listen()
        except InvalidDestinationError:
            raise UnsupportedError(
                f"{self.address} has no management node {self.words.address}.",
                "Install the broker's plugin for management over AMQP (qpid-broker-plugins-management-amqp).",
            ) from None

    def _attribute(self, resource: str, name: str) -> Any:
        is_read = name.startswith(READ)
        key = name.removeprefix(READ)
        request = {self.words.operation_header: READ.strip() if is_read else "getStatistics"}
        if not is_read:
            request[self.words.attribute_header] = json.dumps([key])
        found = self._request(resource, request, "")
        if not isinstance(found, dict) or key not in found:
            raise MalformedFrameError(f"The broker's management reply has no {key}.")
        return found[key]

    def _request(self, resource: str, request: dict[str, str], body: str) -> Any:
        kind, _, key = resource.partition(" ")
        named = {"type": kind, "index": "object-path", self.words.resource_header: key}
        try:
            properties, value = self._ask({**named, **request}, body or {})
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None
        status = properties.get(self.words.success_header)
        if status in {_UNAUTHORISED, _FORBIDDEN}:
            raise self._refused()
        if status != _OK:
            raise unknown_resource(resource, " ".join(request.values()))
        return value


# --- RabbitMQ's queues --------------------------------------------------------------------------------

_CAPABILITY, _NODE, _TO_ME = "LINK_PAIR_V1_0", "/management", "$me"
_STATUS, _FOUND = 3, "200"
_SETTLED, _FIRST = 1, 0


@dataclass(frozen=True, slots=True)
class DescribedQueue:
    kind: str
    """``classic``, ``quorum`` or ``stream``."""

    messages: int
    """The messages that wait, without those in delivery."""

    arguments: Mapping[str, Any]
    """Those that the queue was declared with, as ``x-delivery-limit``."""


def describe_queue(settings: ConnectionSettings, address: str) -> DescribedQueue | None:
    """Return what the broker says of the queue with this address, or None if it says nothing: the queue does not
    exist, the broker has no such node, or the user lacks the permission ``configure`` for the queue.

    On a connection of its own, whose session the broker ends if the user lacks the permission.
    """
    with closing(connect(settings.of_management())) as connection:
        if _CAPABILITY not in connection.capabilities:
            return None
        sender, receiver = _attached_pair(connection)
        try:
            return _facts(_answer(connection, sender, receiver, address))
        except JMSSecurityError as error:
            _log.debug("= it is not known what kind of queue %s is: %s", address, error.fact)
            return None


def refuse_stream(settings: ConnectionSettings, address: str, dialect: Dialect) -> None:
    """``UnsupportedError`` for a stream: RabbitMQ does not remove what was read, and would deliver it again."""
    facts = describe_queue(settings, address) if dialect.can(Feature.STREAMS) else None
    if facts is not None and facts.kind == "stream":
        raise UnsupportedError(
            f"{address} is a stream: it keeps messages that were read, and a query that starts again would read all of"
            " them again.",
            "Set option streamOffset, as first, and read it with spark.readStream: the checkpoint then has the offset."
            " Or bind a quorum or classic queue to the exchange that the stream gets its messages from.",
        )


def _attached_pair(connection: Connection) -> tuple[Sender, Receiver]:
    name, pair = f"management-{uuid.uuid4().hex}", {Symbol("paired"): True}
    node = {"source": Source(address=_NODE), "target": Target(address=_NODE), "properties": pair}
    with connection.core() as session:
        sender, receiver = session.link(Sender, name), session.link(Receiver, name)
        sender.attach(snd_settle_mode=_SETTLED, rcv_settle_mode=_FIRST, initial_delivery_count=0, **node)
        receiver.attach(snd_settle_mode=_SETTLED, rcv_settle_mode=_FIRST, **node)
    connection.await_attached(sender)
    connection.await_attached(receiver)
    return sender, receiver


def _answer(connection: Connection, sender: Sender, receiver: Receiver, address: str) -> dict[int, Any]:
    """The sections of the answer to a GET: code → value."""
    fields = [uuid.uuid4().hex, None, address, "GET", _TO_ME]
    message = encode(Described(PROPERTIES, fields)) + encode(Described(VALUE, None))
    connection.await_credit(sender, "a management request")
    with connection.core():
        receiver.grant(1)
        sender.send(block_of(message), 0, 1)
    connection.await_(lambda: len(receiver.transfers) or not receiver.is_attached, "an answer of its management")
    connection.check_link(receiver)
    with connection.core():
        block = receiver.transfers.take()
        receiver.accept(block.ids)
    return section_values(block.message(0))


def _facts(answer: Mapping[int, Any]) -> DescribedQueue | None:
    properties, queue = answer.get(PROPERTIES), answer.get(VALUE)
    if _item(properties, _STATUS) != _FOUND:
        return None
    queue = queue if isinstance(queue, Mapping) else {}
    try:
        return DescribedQueue(str(queue["type"]), int(queue["message_count"]), dict(queue["arguments"]))
    except (LookupError, TypeError, ValueError):
        raise MalformedFrameError(
            "The broker's description of a queue lacks its type, its count or its arguments."
        ) from None
