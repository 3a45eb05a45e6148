"""Header text ↔ header bytes, STOMP 1.2, one string at a time. Knows no socket, no clock, no broker."""

import re

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import MalformedFrameError

__all__ = ["escape", "header_of", "unescape"]

# STOMP 1.2 "Value Encoding". CONNECT and CONNECTED are exempt, for STOMP 1.0
# peers; the caller decides, because only it knows the command.
_PLAIN_TO_WIRE = {"\\": r"\\", "\r": r"\r", "\n": r"\n", ":": r"\c"}
_WIRE_TO_PLAIN = {wire: plain for plain, wire in _PLAIN_TO_WIRE.items()}
_NEEDS_ESCAPE = re.compile(r"[\\\r\n:]")
_ESCAPED = re.compile(r"\\.?", re.DOTALL)


def escape(plain: str) -> str:
    return _NEEDS_ESCAPE.sub(lambda match: _PLAIN_TO_WIRE[match[0]], plain)


def unescape(wire: str) -> str:
    """Undo :func:`escape`; an undefined sequence is fatal, as the spec demands."""
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
            f"A header holds the escape {match[0]!r}, which STOMP 1.2 does not define.",
            "Report this with the broker's name and version.",
        ) from None
