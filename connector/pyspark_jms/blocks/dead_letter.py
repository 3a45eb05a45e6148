"""A message on its way to the dead-letter queue, as it was received, and why."""

from dataclasses import dataclass, replace

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.oversized import OversizedMessage

__all__ = ["DeadLetter"]


@dataclass(frozen=True, slots=True, repr=False)
class DeadLetter:
    """The engines make it, and the protocol of the message sends it."""

    message: MessageBlock | OversizedMessage
    """A block has one message. An oversized message is kept in its file."""

    reason: str
    source: str
    """The destination that the message was read from."""

    @classmethod
    def of(cls, block: MessageBlock, index: int, reason: str, source: object) -> "DeadLetter":
        """One message of a block, with its id."""
        alone = replace(block.slice(index, index + 1), ids=block.ids[index : index + 1])
        return cls(alone, reason, str(source))
