"""One STOMP 1.2 frame and its headers ↔ bytes, and many ACK frames at once. Does not know brokers and sockets.

For rare frames such as SUBSCRIBE. ``scan`` and ``stomp.columns`` read and write MESSAGE and SEND frames in bulk.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import MalformedFrameError

__all__ = ["ESCAPE_CODES", "Frame", "ack_frames", "encode_frame", "escape", "header_of", "parse_frame", "unescape"]

# --- headers, one string at a time --------------------------------------------------------------------

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


# --- frames -----------------------------------------------------------------------------------------

_UNESCAPED = frozenset({"CONNECT", "CONNECTED"})  # STOMP 1.2 "Value Encoding", for the sake of STOMP 1.0 peers

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")  # a raw CR cannot be part of a header: it is escaped there
_MAX_DIGITS = 18  # of a content-length


@dataclass(frozen=True, slots=True)
class Frame:
    """A command, headers in the order of the wire with repeated ones, and a body."""

    command: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The value of a header. STOMP 1.2 "Repeated Header Entries": the first one counts."""
        return next((value for key, value in self.headers if key == name), None)

    def __repr__(self) -> str:
        return f"Frame({self.command}, {len(self.headers)} headers, {len(self.body)} bytes)"


def encode_frame(frame: Frame) -> bytes:
    """The bytes of a frame with its NUL. A body gets a ``content-length`` unless the headers have one."""
    code = _as_is if frame.command in _UNESCAPED else escape
    headers = frame.headers
    if frame.body and frame.header("content-length") is None:
        headers = (*headers, ("content-length", str(len(frame.body))))
    lines = [frame.command, *(f"{code(name)}:{code(value)}" for name, value in headers)]
    return "\n".join(lines).encode() + b"\n\n" + frame.body + b"\0"


def parse_frame(data: bytes) -> Frame:
    """Read exactly one frame. Only EOLs may surround it: otherwise a ``MalformedFrameError``."""
    data = data.lstrip(b"\r\n")
    blank = _BLANK_LINE.search(data)
    if not blank:
        raise _malformed("it has no blank line")
    head, rest = data[: blank.start()].replace(b"\r\n", b"\n"), data[blank.end() :]
    try:
        command, *lines = head.decode().split("\n")
    except UnicodeDecodeError:
        raise _malformed("a header is not UTF-8") from None
    if not (command.isascii() and command.isalpha() and command.isupper()):
        raise _malformed("it does not begin with a command")
    code = _as_is if command in _UNESCAPED else unescape
    frame = Frame(command, tuple(_header(line, code) for line in lines))
    return Frame(command, frame.headers, _body(rest, frame.header("content-length")))


def ack_frames(ids: Iterable[bytes], receipt: str | None = None) -> bytes:
    """One ACK frame for each id, as it stood on the wire, in one buffer. The last frame requests the receipt.

    At least one id is required. ACKs are individual, never cumulative: see docs/brokers/artemis.md.
    """
    joined = b"ACK\nid:" + b"\n\n\0ACK\nid:".join(ids)
    return joined + (b"\nreceipt:" + receipt.encode() if receipt else b"") + b"\n\n\0"


def _as_is(text: str) -> str:
    return text


def _header(line: str, code: Callable[[str], str]) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise _malformed("a header line has no colon")
    return code(name), code(value)


def _body(rest: bytes, length: str | None) -> bytes:
    if length is None:
        body, nul, after = rest.partition(b"\0")
    else:
        if not (length.isascii() and length.isdigit()) or len(length) > _MAX_DIGITS:
            raise _malformed("its content-length is not a number")
        size = int(length)
        body, nul, after = rest[:size], rest[size : size + 1], rest[size + 1 :]
    if nul != b"\0" or after.strip(b"\r\n"):
        raise _malformed("its body does not end where it should")
    return body


def _malformed(what: str) -> MalformedFrameError:
    return MalformedFrameError(f"The bytes are not one STOMP 1.2 frame: {what}.")
