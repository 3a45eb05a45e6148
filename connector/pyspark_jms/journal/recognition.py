"""How a message that comes again is known, and what is said when it is another one. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark_jms.errors import OtherBrokerError

__all__ = ["Recognition", "other_content"]


@dataclass(frozen=True, slots=True)
class Recognition:
    """How the messages of a lane are known again.

    ``identity`` gives the part of an id that stays when the message comes again, ``fingerprint`` a digest of
    all of its content that does.
    """

    identity: Callable[[bytes], bytes]
    fingerprint: Callable[[Any, int], bytes]


def other_content() -> OtherBrokerError:
    """A message is only known by its id and its content together: two fresh brokers count alike."""
    return OtherBrokerError(
        "A message id that was read before came again with other content: this is another broker, or its store was"
        " replaced. Nothing of it was acknowledged.",
        "Stop the query, point brokerUrl at one broker (and its backup) only, and start again.",
    )
