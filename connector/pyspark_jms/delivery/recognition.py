"""How a message that comes again is known, and what is said when it is another one. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import OtherBrokerError

__all__ = ["Recognition", "other_content"]


@dataclass(frozen=True, slots=True)
class Recognition:
    """How the messages of a lane are known again.

    ``identity`` gives the part of an id that stays when the message comes again, ``fingerprint`` a digest of
    all of its content that does.
    """

    identity: Callable[[bytes], bytes]
    fingerprint: Callable[[MessageBlock, int], bytes]
    origin: Callable[[str], str] = str
    """Of two names of one source the same: a queue may be spelled in two ways."""


def other_content() -> OtherBrokerError:
    """A message is recognised by its id and its content together: two new brokers give the same ids."""
    return OtherBrokerError(
        "A message has the id of an earlier one and other content: this is another broker, or its store was replaced."
        " The new message was not acknowledged.",
        "Point brokerUrl at one broker (and its backup) only, and start again. If the broker really was replaced, read"
        " what docs/guarantees.md says of it.",
    )
