"""How a redelivered message is recognised: by its message-id or its content, since brokers give it no id of theirs.

A message keeps its bytes over redelivery, except for the header section with its delivery count.
"""

from pyspark_jms.amqp.wire.sections import delivery_count, fingerprint, stable_id
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.recognition import Recognition

__all__ = ["RECOGNITION", "redelivered"]


def _identity(block: MessageBlock, index: int) -> bytes:
    """Two equal messages without a message-id have one identity: the redelivery of one is taken for the other's."""
    message = block.message(index)
    return stable_id(message) or fingerprint(message)


def _fingerprint(block: MessageBlock, index: int) -> bytes:
    return fingerprint(block.message(index))


RECOGNITION = Recognition(identity=_identity, fingerprint=_fingerprint)


def redelivered(block: MessageBlock) -> int:
    """The number of messages with a delivery count above 0."""
    return sum(delivery_count(block.message(index)) > 0 for index in range(len(block)))
