"""What the engines ask of received messages: when they were sent, which were redelivered, and their ids for the log."""

from typing import Any, Unpack

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.recognition import redelivered
from pyspark_jms.amqp.wire.sections import creation_time_ms
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.read_columns import DecodeOptions

__all__ = ["MessageAnswers", "decode_block"]


class MessageAnswers:
    def sent_ms(self, block: MessageBlock, index: int) -> int | None:
        return creation_time_ms(block.message(index)) or None

    def redelivered(self, block: MessageBlock) -> int:
        return redelivered(block)

    def message_id(self, identifier: bytes) -> str:
        return f"delivery {int.from_bytes(identifier, 'big')}"


def decode_block(block: MessageBlock, *, dialect: Dialect, **how: Unpack[DecodeOptions]) -> Any:
    from pyspark_jms.amqp.columns.decode import decode  # imports pyarrow.compute, needed only where rows are made

    return decode(block, dialect=dialect, **how)
