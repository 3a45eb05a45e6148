"""The limits of the protocol core, each with its reason. Crossing one is a ``MalformedFrameError``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from pyspark_jms.blocks.dead_letter import KEPT

__all__ = [
    "MAX_DEPTH",
    "MAX_FRAME_BYTES",
    "MAX_PERFORMATIVE_BYTES",
    "MIN_IDLE_SECONDS",
    "MIN_MAX_FRAME_BYTES",
    "Limits",
]

MAX_DEPTH = 16
"""Nesting of values in a performative. The deepest one of AMQP 1.0 is a filter in a source in an attach: 4."""

MAX_PERFORMATIVE_BYTES = 1 << 20
"""A frame that is not a transfer holds names, filters and errors only."""

MIN_MAX_FRAME_BYTES = 512
"""AMQP 1.0 §2.7.1: every peer takes frames of this size."""

MIN_IDLE_SECONDS = 1.0
"""A peer may state a shorter idle time-out. A client that obeyed 1 ms would do nothing else than send empty frames."""

MAX_FRAME_BYTES = 1 << 17
"""Artemis and Classic send frames of at most 128 KB, whatever a client offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    max_frame_bytes: int = MAX_FRAME_BYTES
    """The largest frame that the peer may send."""

    max_message_bytes: int = 100 << 20
    """A larger message does not come into a block."""

    max_delivery_bytes: int = 1 << 32
    """A message that has not ended at this size, the largest of one section, ends the connection."""

    keep_oversized: Callable[[], BinaryIO | None] = KEPT["drop"]
    """Opens the place for the bytes of such a message; None: they are not kept."""
