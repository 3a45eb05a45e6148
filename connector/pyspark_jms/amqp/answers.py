"""What the engines ask of received messages: when they were sent, which cannot be mapped, and their dead letters."""

from typing import Any, Protocol, Unpack

from pyspark_jms.amqp.dead_letters import AmqpDeadLetter, mapped_bytes
from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.recognition import redelivered
from pyspark_jms.amqp.wire.sections import creation_time_ms, stable_id
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.oversized import OversizedMessage
from pyspark_jms.columns.read_columns import DecodeOptions
from pyspark_jms.jms.subscription import Subscription

__all__ = ["MessageAnswers", "decode_block"]


class _Link(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    @property
    def subscription(self) -> Subscription: ...


class MessageAnswers:
    """For a class with ``dialect`` and ``subscription``."""

    def sent_ms(self, block: MessageBlock, index: int) -> int | None:
        return creation_time_ms(block.message(index)) or None

    def redelivered(self, block: MessageBlock) -> int:
        return redelivered(block)

    def dead_letter(self: _Link, block: MessageBlock, index: int, reason: str) -> AmqpDeadLetter:
        message = block.message(index)
        identifier = (stable_id(message) or b"").decode()
        return AmqpDeadLetter(message, reason, str(self.subscription.destination), identifier, self.dialect)

    def oversized_dead_letter(self: _Link, message: OversizedMessage, reason: str) -> AmqpDeadLetter:
        mapped = mapped_bytes(message)
        identifier = (stable_id(mapped) or b"").decode()
        return AmqpDeadLetter(mapped, reason, str(self.subscription.destination), identifier, self.dialect)

    def message_id(self, identifier: bytes) -> str:
        return f"delivery {int.from_bytes(identifier, 'big')}"


def decode_block(block: MessageBlock, *, dialect: Dialect, **how: Unpack[DecodeOptions]) -> Any:
    from pyspark_jms.amqp.columns.decode import decode  # imports pyarrow.compute, needed only where rows are made

    return decode(block, dialect=dialect, **how)
