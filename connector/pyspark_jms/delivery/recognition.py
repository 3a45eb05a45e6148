"""How a redelivered message is recognised, and the error when its content is another. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import OtherBrokerError

__all__ = ["Recognition", "other_content"]


def _every_message(_block: MessageBlock, _index: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Recognition:
    """How the messages of a lane are known again.

    These are called with a block and the index of a message in it. ``identity`` gives the id that is the same in every
    delivery of the message, ``fingerprint`` a digest of all content that is.
    """

    identity: Callable[[MessageBlock, int], bytes]
    fingerprint: Callable[[MessageBlock, int], bytes]
    by_broker: bool = True
    """Whether the broker gives each message an identity of its own: then one that comes with other content is of
    another broker. Otherwise producers choose it, and several messages may have the same."""
    is_named: Callable[[MessageBlock, int], bool] = _every_message
    """Whether an equal message is the same one. Without an id it may be a later message that is only equal."""
    origin: Callable[[str], str] = str
    """Maps two names of one source to the same name: a queue may have two names."""


def other_content() -> OtherBrokerError:
    """A message is recognised by its id and its content together: two new brokers give the same ids."""
    return OtherBrokerError(
        "A message has the id of an earlier one and other content: this is another broker, or its store was replaced."
        " The new message was not acknowledged.",
        "Point brokerUrl at one broker (and its backup) only, and start again. If the broker was"
        " replaced, follow docs/reading.md.",
    )
