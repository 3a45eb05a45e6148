"""Leaves expired messages out of a block, for a broker whose browse shows them (Artemis). Does not know the clock."""

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.headers import TIME, field_at, numbers
from pyspark_jms.amqp.columns.walk import NeededParts, TooManyAtOnceError, walk
from pyspark_jms.amqp.wire.sections import time_ms
from pyspark_jms.blocks.block import MessageBlock, block_of, positions_of
from pyspark_jms.columns.arrays import Ints
from pyspark_jms.jms.headers import PropertiesField

__all__ = ["unexpired"]

_NEEDED = NeededParts(header=0, properties=PropertiesField.ABSOLUTE_EXPIRY_TIME + 1, application_properties=False)


def unexpired(block: MessageBlock, at_ms: float) -> MessageBlock:
    """Return the block without the messages whose ``absolute-expiry-time`` is ``at_ms`` or earlier.

    Artemis writes this field into a message whose expiry it decides itself, and follows it where a producer sent it. A
    ``ttl`` without it counts from an arrival that no message states.
    """
    if not len(block):
        return block
    times = _expiry_times(block)
    kept = np.flatnonzero((times <= 0) | (times > at_ms))
    return block if len(kept) == len(block) else block_of(*(block.message(int(index)) for index in kept))


def _expiry_times(block: MessageBlock) -> Ints:
    """Return the ``absolute-expiry-time`` of each message; 0 without one."""
    ends = positions_of(block.ends)
    begins = np.concatenate(([0], ends))[:-1]
    found, missing = np.zeros(len(block), np.int64), np.ones(len(block), np.bool_)
    reader = ByteReader(pa.py_buffer(block.data)).padded()
    try:
        parts = walk(reader, begins, ends, _NEEDED)
    except TooManyAtOnceError:
        pass
    else:
        field = field_at(parts.properties, PropertiesField.ABSOLUTE_EXPIRY_TIME)
        found[parts.numbers] = numbers(reader, field, len(parts), TIME, absent=0, refusals=None)
        missing[parts.numbers] = False
    for index in np.flatnonzero(missing):  # what cannot be read all at once
        found[index] = time_ms(block.message(int(index)), PropertiesField.ABSOLUTE_EXPIRY_TIME) or 0
    return found
