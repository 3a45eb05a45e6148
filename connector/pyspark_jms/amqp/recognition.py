"""How a redelivered message is recognised: by its message-id or its content, since brokers give it no id of theirs.

A message keeps its bytes over redelivery, except for the header section with its delivery count.
"""

from typing import Any

import numpy as np

from pyspark_jms.amqp.wire.sections import HEADER, delivery_count, fingerprint, stable_id
from pyspark_jms.blocks.block import MessageBlock, positions_of
from pyspark_jms.delivery.recognition import Recognition

__all__ = ["RECOGNITION", "redelivered"]

_HEADER_BYTES = 6
"""``00 53 70 c0 SIZE COUNT``: descriptor and beginning of a header section."""
_LIST8, _DELIVERY_COUNT = 0xC0, 5


def _identity(block: MessageBlock, index: int) -> bytes:
    """Two equal messages without a message-id have one identity: the redelivery of one is taken for the other's."""
    message = block.message(index)
    return stable_id(message) or fingerprint(message)


def _fingerprint(block: MessageBlock, index: int) -> bytes:
    return fingerprint(block.message(index))


RECOGNITION = Recognition(identity=_identity, fingerprint=_fingerprint)


def redelivered(block: MessageBlock) -> int:
    """The number of messages with a delivery count above 0."""
    return sum(delivery_count(block.message(int(index))) > 0 for index in _may_be_redelivered(block))


def _may_be_redelivered(block: MessageBlock) -> Any:
    """The messages whose header section has five fields or another form than usual: the fifth is the delivery count."""
    ends = positions_of(block.ends)
    starts = np.concatenate([[0], ends])[: len(ends)]
    data = np.frombuffer(block.data, np.uint8)
    at = np.minimum(starts[:, np.newaxis] + np.arange(_HEADER_BYTES), max(len(data) - 1, 0))
    first = data[at] if len(data) else np.zeros(at.shape, np.uint8)
    descriptor, small = (first[:, :2] == (0, 0x53)).all(axis=1), first[:, 3] == _LIST8
    without = descriptor & ((first[:, 2] != HEADER) | (small & (first[:, 5] < _DELIVERY_COUNT)))
    return np.flatnonzero(~without)
