"""What RabbitMQ says of a queue: a request of HTTP over AMQP, on a pair of links to its management node.

The pair is that of a working draft, AMQP Link Pairing 1.0: a sender and a receiver of one name.
"""

import logging
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.senders import await_credit
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import PROPERTIES, VALUE, sections
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.types import Source, Target
from pyspark_jms.amqp.wire.values import Described, Symbol, decode, encode
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.errors import JMSSecurityError, MalformedFrameError, UnsupportedError
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["QueueFacts", "queue_facts", "refuse_stream"]

_log = logging.getLogger("pyspark_jms.link")
_CAPABILITY, _NODE, _TO_ME = "LINK_PAIR_V1_0", "/management", "$me"
_STATUS, _OK = 3, "200"
_SETTLED, _FIRST = 1, 0


@dataclass(frozen=True, slots=True)
class QueueFacts:
    kind: str
    """``classic``, ``quorum`` or ``stream``."""

    messages: int
    """The messages that wait, without those in delivery."""

    arguments: Mapping[str, Any]
    """Those that the queue was declared with, as ``x-delivery-limit``."""


def queue_facts(settings: ConnectionSettings, address: str) -> QueueFacts | None:
    """What the broker says of the queue with this address. Returns None if it says nothing: the queue does not exist,
    the broker has no such node, or the user lacks the permission ``configure`` for the queue.

    On a connection of its own, whose session the broker ends if the user lacks the permission.
    """
    with closing(connect(replace(settings, client_id=None))) as connection:
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
    facts = queue_facts(settings, address) if dialect.describes_queues else None
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
    await_credit(connection, sender, "a management request")
    with connection.core():
        receiver.grant(1)
        sender.send(MessageBlock(message, ends=index_of(np.array([len(message)]))), 0, 1)
    connection.await_(lambda: len(receiver.transfers) or not receiver.is_attached, "an answer of its management")
    connection.check_link(receiver)
    with connection.core():
        block = receiver.transfers.take()
        receiver.accept(block.ids)
    answer = block.message(0)
    return {section.code: decode(answer, section.value, section.end)[0] for section in sections(answer)}


def _facts(answer: Mapping[int, Any]) -> QueueFacts | None:
    properties, queue = answer.get(PROPERTIES), answer.get(VALUE)
    if not isinstance(properties, list) or len(properties) <= _STATUS or properties[_STATUS] != _OK:
        return None
    queue = queue if isinstance(queue, Mapping) else {}
    try:
        return QueueFacts(str(queue["type"]), int(queue["message_count"]), dict(queue["arguments"]))
    except (LookupError, TypeError, ValueError):
        raise MalformedFrameError(
            "The broker's description of a queue lacks its type, its count or its arguments.",
            "Report this with the broker's version.",
        ) from None
