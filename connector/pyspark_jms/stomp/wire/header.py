"""Header text ↔ its form on the wire, one string at a time. Does not know sockets, the clock and brokers."""

import re

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import MalformedFrameError

__all__ = ["ESCAPE_CODES", "escape", "header_of", "unescape"]

ESCAPE_CODES = {"\\": "\\", "\r": "r", "\n": "n", ":": "c"}
"""STOMP 1.2 "Value Encoding": each character that a header must escape → the character after the backslash.

NUL is not in the table: the grammar excludes only CR, LF and ":" from a header, and Artemis reads the header block up
to the blank line. CONNECT and CONNECTED frames are exempt, for the sake of STOMP 1.0 peers: the caller decides."""

_PLAIN_TO_WIRE = {plain: f"\\{code}" for plain, code in ESCAPE_CODES.items()}
_WIRE_TO_PLAIN = {wire: plain for plain, wire in _PLAIN_TO_WIRE.items()}
_NEEDS_ESCAPE = re.compile(f"[{re.escape(''.join(ESCAPE_CODES))}]")
_ESCAPED = re.compile(r"\\.?", re.DOTALL)


def escape(plain: str) -> str:
    """The text as it may stand in a header line."""
    return _NEEDS_ESCAPE.sub(lambda match: _PLAIN_TO_WIRE[match[0]], plain)


def unescape(wire: str) -> str:
    """Undo :func:`escape`. An undefined sequence is a ``MalformedFrameError``: STOMP 1.2 calls it a fatal error."""
    return _ESCAPED.sub(_plain, wire)


def header_of(block: MessageBlock, index: int, name: bytes) -> bytes | None:
    """The first header of that name in MESSAGE frame ``index``, as it stands on the wire: one header of one frame."""
    key = b"\n" + name + b":"
    lines = bytes(memoryview(block.data)[block.start(index) : block.heads[index] + 1])
    at = lines.find(key)
    return None if at < 0 else lines[at + len(key) : lines.index(b"\n", at + 1)]


def _plain(match: re.Match[str]) -> str:
    try:
        return _WIRE_TO_PLAIN[match[0]]
    except KeyError:
        raise MalformedFrameError(
            f"A header has the escape {match[0]!r}, which STOMP 1.2 does not define.",
            "Report this with the broker's name and version.",
        ) from None
