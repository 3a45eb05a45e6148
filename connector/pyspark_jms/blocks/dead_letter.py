"""A message that does not become a row: too large, in a temporary file or nowhere; or a dead letter, and why."""

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import BinaryIO, Final, Self

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import MessageTooLargeError
from pyspark_jms.jms.model import ERROR_PROPERTY, MESSAGE_ID_PROPERTY, SOURCE_PROPERTY

__all__ = ["KEPT", "DeadLetter", "OversizedMessage", "not_kept", "too_large"]

_MAX_REASON_CHARACTERS = 1000


class OversizedMessage:
    """``identifier`` as a block has it, ``size`` counts the bytes so far. ``body`` is None if they are not kept.

    Over STOMP ``head`` is the frame up to its blank line, and the body follows it. Over AMQP all bytes are the body.
    """

    def __init__(self, head: bytes, identifier: bytes, body: BinaryIO | None) -> None:
        self.head = head
        self.identifier = identifier
        self.body = body
        self.size = 0

    @property
    def is_kept(self) -> bool:
        return self.body is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The temporary file is deleted when it is closed."""
        if self.body is not None:
            self.body.close()

    def add(self, part: bytes | bytearray | memoryview) -> None:
        self.size += len(part)
        if self.body is not None:
            try:
                self.body.write(part)
            except OSError as error:
                with contextlib.suppress(OSError):
                    self.body.close()
                raise not_kept(error) from None

    def __repr__(self) -> str:
        return f"OversizedMessage({self.size:,} bytes)"


def too_large(size: int, limit: int, source: str) -> MessageTooLargeError:
    """Return the error for onTooLarge=fail. ``source``: where the message is; empty if that is not known."""
    return MessageTooLargeError(
        f"{source}{': ' if source else ''}A message of {size:,} bytes exceeds maxMessageBytes ({limit:,}).",
        "It stays on the broker. Choose onTooLarge=deadLetter or drop, take the message off with another client, or"
        " raise maxMessageBytes: where the driver receives, a message needs ten times its size of heap there"
        " (spark.driver.memory) and must fit into a task (spark.rpc.message.maxSize, 128 MB).",
    )


def not_kept(error: OSError) -> MessageTooLargeError:
    """Permanent: the next connection would receive the same message, and cost all others a delivery attempt."""
    return MessageTooLargeError(
        "A message above maxMessageBytes cannot be kept in a temporary file on its way to deadLetterQueue:"
        f" {error.strerror or error}.",
        "It stays on the broker. Make room for twice its size in the driver's folder for temporary files (TMPDIR), or"
        " choose onTooLarge=drop.",
    )


def _temporary_file() -> BinaryIO:
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise not_kept(error) from None


KEPT: Final[Mapping[str, Callable[[], BinaryIO | None]]] = MappingProxyType(
    {
        "fail": lambda: None,
        "drop": lambda: None,
        "deadLetter": _temporary_file,  # the body may be larger than memory allows; the file ends with the process
    }
)
"""Where a message above maxMessageBytes is kept, by the value of option onTooLarge."""


@dataclass(frozen=True, slots=True, repr=False)
class DeadLetter:
    """The engines make it, and the protocol of the message sends it."""

    message: MessageBlock | OversizedMessage
    """A block has one message. An oversized message is kept in its file."""

    reason: str
    source: str
    """The destination that the message was read from."""

    def properties(self, message_id: str) -> dict[str, str]:
        """The properties by which the dead letter tells why it is there."""
        return {
            ERROR_PROPERTY: self.reason[:_MAX_REASON_CHARACTERS],
            SOURCE_PROPERTY: self.source,
            MESSAGE_ID_PROPERTY: message_id,
        }

    @classmethod
    def of(cls, block: MessageBlock, index: int, reason: str, source: object) -> "DeadLetter":
        """One message of a block, with its id."""
        alone = replace(block.slice(index, index + 1), ids=block.ids[index : index + 1])
        return cls(alone, reason, str(source))
