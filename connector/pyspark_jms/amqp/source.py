"""AMQP 1.0 for the engine of reading: the Protocols of ``source.links``, joined from links, columns and recognition.

A redelivered message is recognised by its content with its message-id, since brokers give it no id of theirs. It keeps
its bytes over redelivery, except for the header section with its delivery count; on RabbitMQ quorum queues change its
annotations too. Producers choose message-ids: several messages may have the same, or none, and they may be equal.
"""

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from pyspark_jms.amqp.dialects import DIALECTS
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.management import open_amqp_management
from pyspark_jms.amqp.link.producer import send_dead_letters
from pyspark_jms.amqp.link.subscriptions import end_subscription
from pyspark_jms.amqp.wire.constructors import LIST8, LIST32, SMALL_ULONG
from pyspark_jms.amqp.wire.sections import HEADER, delivery_count, fingerprint, stable_id, time_ms
from pyspark_jms.blocks.block import MessageBlock, positions_of
from pyspark_jms.columns.schema import DecodeOptions
from pyspark_jms.delivery.subscription_ledger import Recognition
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.headers import PropertiesField
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import closed_on

__all__ = ["AmqpSource", "AmqpSourceLink", "MessageAnswers", "identity_of", "suspects"]


class MessageAnswers:
    """The answers that a link has whose messages are read."""

    def sent_ms(self, block: MessageBlock, index: int) -> int | None:
        return time_ms(block.message(index), PropertiesField.CREATION_TIME) or None

    def redelivered(self, block: MessageBlock) -> int:
        """The number of messages with a delivery count above 0."""
        return sum(delivery_count(block.message(int(index))) > 0 for index in _may_be_redelivered(block))

    def message_id(self, identifier: bytes) -> str:
        return f"delivery {int.from_bytes(identifier, 'big')}"


class AmqpSourceLink(Consumer, MessageAnswers):
    """A ``Consumer`` with the answers that only reading needs."""

    def subscribe(self, subscription: Subscription) -> None:
        """Subscribe. What else a broker refuses, its attach shows."""
        with closed_on(JMSError, self.close):
            self.dialect.require_subscription(subscription)
        super().subscribe(subscription)

    def unexpired(self, block: MessageBlock, at_ms: float) -> MessageBlock:
        if not self.dialect.browse_shows_expired:
            return block
        from pyspark_jms.amqp.columns.expiry import unexpired  # imports pyarrow.compute

        return unexpired(block, at_ms)

    def shown(self, block: MessageBlock) -> None:
        """Keep what was shown: without a browse it stays in the window until the end, and is given back then."""
        if not self.dialect.browses:
            return
        with self.connection.core():
            self.prefetch.released(len(block))


class AmqpSource:
    """Has no state: a value that the adapters of Spark choose by the scheme of ``brokerUrl``."""

    connect = staticmethod(AmqpSourceLink)
    open_management = staticmethod(open_amqp_management)
    send_dead_letters = staticmethod(send_dead_letters)
    end_subscription = staticmethod(end_subscription)

    def decode(self, block: MessageBlock, *, dialect: str, **how: Unpack[DecodeOptions]) -> Any:
        from pyspark_jms.amqp.columns.decode import decode  # imports pyarrow.compute, needed only where rows are made

        return decode(block, dialect=DIALECTS[dialect], **how)

    def has_unheld_time(self, _dialect: str, block: MessageBlock, index: int) -> bool:
        from pyspark_jms.amqp.columns.one_message import has_unheld_time  # as decode

        return has_unheld_time(bytes(block.message(index)))

    def recognition(self, dialect: str) -> Recognition | None:
        return recognition_of(DIALECTS[dialect])


# --- how a redelivered message is recognised, and found ----------------------------------------------

_NARROW, _WIDE = (3, LIST8, 5), (3, LIST32, 11)
"""Of a header section as list8 and as list32: the position of the constructor, the constructor, and the position of the
number of fields, or of its last byte. A message has fewer than 256 fields in its header.
"""
_DESCRIPTOR, _HEADER_BYTES, _DELIVERY_COUNT = SMALL_ULONG, 12, 5


def _fingerprint(block: MessageBlock, index: int) -> bytes:
    return fingerprint(block.message(index))


def _bare_fingerprint(block: MessageBlock, index: int) -> bytes:
    return fingerprint(block.message(index), annotated=False)


def _has_id(block: MessageBlock, index: int) -> bool:
    return stable_id(block.message(index)) is not None


RECOGNITION = Recognition(identity=_fingerprint, fingerprint=_fingerprint, by_broker=False, is_named=_has_id)
_BARE = replace(RECOGNITION, identity=_bare_fingerprint, fingerprint=_bare_fingerprint)


def recognition_of(dialect: Dialect) -> Recognition:
    """Return how messages that a broker of this dialect delivers are recognised."""
    return _BARE if dialect.changes_annotations else RECOGNITION


def suspects(block: MessageBlock, least: int) -> dict[int, int]:
    """The messages with a delivery count of ``least`` or more: index → the count, in their order."""
    found = {int(index): delivery_count(block.message(int(index))) for index in _may_be_redelivered(block)}
    return {index: deliveries for index, deliveries in found.items() if deliveries >= least}


def identity_of(block: MessageBlock, index: int) -> str:
    """Return what identifies a message in every delivery. Equal messages have the same."""
    return _fingerprint(block, index).hex()


def _may_be_redelivered(block: MessageBlock) -> Any:
    """The messages whose header section has five fields or another form than usual: the fifth is the delivery count."""
    ends = positions_of(block.ends)
    starts = np.concatenate([[0], ends])[: len(ends)]
    data = np.frombuffer(block.data, np.uint8)
    if not len(data):
        return np.arange(len(ends))
    first = [data.take(starts + place, mode="clip") for place in range(_HEADER_BYTES)]
    few = np.zeros(len(ends), np.bool_)
    for at, code, count in (_NARROW, _WIDE):
        few |= (first[at] == code) & (first[count] < _DELIVERY_COUNT)
    without = (first[0] == 0) & (first[1] == _DESCRIPTOR) & ((first[2] != HEADER) | few)
    return np.flatnonzero(~without)
