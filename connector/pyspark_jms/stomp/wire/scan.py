"""Bytes of a connection in, blocks of whole MESSAGE frames out; every other frame is returned unchanged.

The receiver's hot path: it finds where frames end and reads ``message-id``, and nothing else. It knows neither the
meaning of headers nor the use of the frames.

In a block, each frame ends in NUL LF, heart-beats are left out, ``heads`` has the blank line that ends a frame's
headers (the first LF of the two), and ``ids`` has each ``message-id`` in its form on the wire.
"""

from collections.abc import Callable
from typing import BinaryIO

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage, too_large
from pyspark_jms.errors import MalformedFrameError, MessageTooLargeError

__all__ = ["FrameScanner"]

MAX_HEADER_BYTES = 16 << 20
"""A header block without an end is not STOMP. Artemis accepts values of some 100 KB and 2,000 headers; 16 MB is enough
for any broker, and stops a peer that speaks another protocol."""

_MESSAGE = b"MESSAGE\n"
_CONTENT_LENGTH = b"\ncontent-length:"
_MESSAGE_ID = b"\nmessage-id:"
_LF, _CR = 10, 13
_UPPER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LONGEST_COMMAND = 32  # STOMP's are of 3 to 11 letters
_EOLS = (_LF, _CR)
_MAX_DIGITS = 18  # of a content-length: more would not fit 64 bits
_UNTIL_NUL = -1
"""In place of a number of bytes to skip: the message has no content-length."""


class FrameScanner:
    """``feed`` takes the bytes of each read; ``take`` returns whole frames. A MESSAGE has at most ``max_body_bytes``.

    After an error the following bytes have no meaning, and the connection must be closed. A larger MESSAGE with a
    content-length is not an error: it is skipped, and ``refused`` has its error.

    With ``keep_oversized`` every larger MESSAGE is skipped, and is in ``oversized`` when it is whole.
    ``keep_oversized`` returns a file for its body, or None to drop the body.

    With ``ack_header``, for brokers whose ACK needs the value of another header than ``message-id``, an id is that
    value, a comma, and the ``message-id``.
    """

    def __init__(self, *, max_body_bytes: int, keep_oversized: Callable[[], BinaryIO | None] | None = None) -> None:
        self._max_body_bytes = max_body_bytes
        self._keep_oversized = keep_oversized
        self._large: OversizedMessage | None = None  # the one that is being skipped
        self.oversized: list[OversizedMessage] = []
        self._pending = bytearray()  # begins with the first incomplete frame
        self._resume = 0  # where the search for its end continues
        self._has_cr = False  # in its headers, as far as they were searched
        self._head = -1  # its blank line, once found
        self._needed = 0  # no frame can be complete before this many bytes
        self._skip = 0  # bytes of a refused message that are still to come, its NUL included
        self._data = bytearray()
        self._block = MessageBlock(self._data)  # the open one
        self.ack_header: bytes | None = None
        self.refused: MessageTooLargeError | None = None

    @property
    def messages(self) -> int:
        """Return the number of whole frames in the open block."""
        return len(self._block)

    @property
    def size(self) -> int:
        """Bytes of the open block."""
        return len(self._data)

    def take(self) -> MessageBlock:
        """The open block; the next frame begins a new one."""
        block = self._block
        self._data = bytearray()
        self._block = MessageBlock(self._data)
        return block

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Read bytes; return the frames that are not MESSAGE, each with its NUL."""
        pending = self._pending
        pending += self._after_skipped(data) if self._skip else data
        if len(pending) < self._needed:
            return []
        others: list[bytes] = []
        start = 0
        while (start := self._skip_eols(start)) < len(pending):
            # Not during a search for a frame's end that began with an earlier read: it continues below.
            if (self._needed or (self._head < 0 and not self._resume)) and (stop := self._keep_plain(start)) > start:
                start = stop
                continue
            head = self._find_head(start)
            if head < 0:
                break
            end = self._find_end(start, head)
            if end < 0:
                break
            if end == start:
                self._head = -1
                continue  # a refused message, skipped
            if pending.startswith(_MESSAGE, start):
                self._keep(start, head, end)
            else:
                others.append(bytes(pending[start : end + 1]))
            start = end + 1
            self._head, self._resume, self._needed = -1, 0, 0
        self._drop_consumed(start)
        return others

    def _skip_eols(self, start: int) -> int:
        # STOMP 1.2 "Frame": EOLs may follow a frame; they are also the heart-beats.
        pending, size = self._pending, len(self._pending)
        while start < size and pending[start] <= _CR and pending[start] in _EOLS:
            start += 1
        return start

    def _keep_plain(self, start: int) -> int:
        """Keep the frames that have the usual form: MESSAGE, lines of LF, NUL LF at the end.

        Returns the offset of the first frame that needs the slow path. The slow path finds the same ends in twice the
        time, most of it for calls.
        """
        pending, block, find, ack_header = self._pending, self._block, self._pending.find, self.ack_header
        size, most, position = len(pending), self._max_body_bytes, start
        shift, found = len(self._data) - start, -1
        while pending.startswith(_MESSAGE, position):
            head = find(b"\n\n", position)
            at = find(_MESSAGE_ID, position, head)
            if head < 0 or at < 0 or find(_CR, position, head) >= 0:
                break
            identifier = bytes(pending[at + len(_MESSAGE_ID) : find(_LF, at + 1)])
            if (at := find(_CONTENT_LENGTH, position, head + 1)) < 0:
                end = find(0, head + 2)
            else:
                digits = pending[at + len(_CONTENT_LENGTH) : find(_LF, at + 1)]
                end = head + 2 + int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else -1
            if not head < end <= head + 2 + most or end + 1 >= size or pending[end] or pending[end + 1] != _LF:
                found = head
                break
            if ack_header is not None:
                identifier = self._header(ack_header, position, head) + b"," + identifier
            block.ids.append(identifier)
            block.heads.append(head + shift)
            position = end + 2
            block.ends.append(position + shift)
        if position > start:
            self._data += memoryview(pending)[start:position]
            self._head, self._resume, self._needed = found, 0, 0
        return position

    def _find_head(self, start: int) -> int:
        """The first LF of the blank line, or -1; a header block with CR LF is first rewritten with LF.

        No byte is searched again in each read, because a block may arrive in small pieces.
        """
        if self._head >= 0:
            return self._head
        pending = self._pending
        if not pending.startswith(_MESSAGE, start):
            self._check_command(start)
        begin = max(start, self._resume)
        head = pending.find(b"\n\n", begin)
        if self._has_cr or pending.find(_CR, begin, head if head >= 0 else len(pending)) >= 0:
            head = self._fold_crlf(start, begin, head)
            self._has_cr = head < 0
        self._resume = max(start, len(pending) - 2) if head < 0 else 0  # LF CR may be half of a blank line
        if head < 0 and len(pending) - start > MAX_HEADER_BYTES:
            raise MalformedFrameError(
                f"{len(pending) - start:,} bytes came without the blank line that ends a frame's headers.",
                "Is brokerUrl the STOMP port of the broker?",
            )
        self._head = head
        return head

    def _check_command(self, start: int) -> None:
        """Check the command in the first line: a peer that speaks another protocol may never end a frame."""
        pending = self._pending
        end = pending.find(_LF, start, start + _LONGEST_COMMAND)
        command = pending[start : end if end >= 0 else start + _LONGEST_COMMAND].rstrip(b"\r")
        if end < 0 and len(command) < _LONGEST_COMMAND and not command.strip(_UPPER):
            return  # not whole yet
        if end < 0 or not command or command.strip(_UPPER):
            raise MalformedFrameError(
                "The peer does not speak STOMP: a frame does not begin with a command.",
                "Is brokerUrl the STOMP port of the broker?",
            )

    def _fold_crlf(self, start: int, begin: int, plain: int) -> int:
        """``plain``: the blank line of LF LF from ``begin`` on, or -1."""
        # STOMP 1.2 allows CR LF as end of line. A raw CR cannot be part of a value: it is escaped there.
        pending = self._pending
        crlf = pending.find(b"\n\r\n", begin, plain + 1 if plain >= 0 else len(pending))
        if crlf < 0 and plain < 0:
            return -1
        head, after = (plain, plain + 2) if crlf < 0 else (crlf, crlf + 3)
        folded = bytes(pending[start : head + 1]).replace(b"\r\n", b"\n")
        pending[start:after] = folded + b"\n"
        return start + len(folded) - 1

    def _find_end(self, start: int, head: int) -> int:
        """The frame's NUL, or -1. ``content-length`` decides; without it, the first NUL after the blank line.

        Returns ``start`` for a message that is too large and was skipped.
        """
        pending = self._pending
        # STOMP 1.2 "Repeated Header Entries": the first one counts.
        at = pending.find(_CONTENT_LENGTH, start, head + 1)
        if at < 0:
            end = pending.find(0, max(head + 2, self._resume))
            size = (end if end >= 0 else len(pending)) - head - 2
            if self._exceeds(start, size):
                if self._keep_oversized is None:  # its end is not known
                    raise self._too_large(start, head, size)
                return self._skip_oversized(start, head, end, size)
            self._resume = len(pending) if end < 0 else self._resume
            return end
        digits = bytes(pending[at + len(_CONTENT_LENGTH) : pending.find(_LF, at + 1)])
        if not digits.isdigit() or len(digits) > _MAX_DIGITS:
            raise MalformedFrameError("A frame's content-length is not a number.")
        end = head + 2 + int(digits)
        if self._exceeds(start, int(digits)):
            return self._skip_oversized(start, head, end, int(digits))
        if end >= len(pending):
            self._needed = end + 1
            return -1
        if pending[end]:
            raise MalformedFrameError("A frame's body does not end at its content-length.")
        return end

    def _skip_oversized(self, start: int, head: int, end: int, size: int) -> int:
        """``end`` is -1 if the NUL has not arrived. Returns ``start``, where the next frame begins."""
        pending, here = self._pending, len(self._pending) if end < 0 else min(end, len(self._pending))
        if self._keep_oversized is None:
            self.refused = self.refused or self._too_large(start, head, size)
        else:
            identifier = self._identifier(start, head)
            self._large = OversizedMessage(bytes(pending[start:head]), identifier, self._keep_oversized())
            self._large.add(memoryview(bytes(pending[head + 2 : here])))
        self._skip = _UNTIL_NUL if end < 0 else max(0, end + 1 - len(pending))
        del pending[start : here + 1]
        self._resume = self._needed = 0
        if not self._skip:
            self._end_of_large()
        return start

    def _after_skipped(self, data: bytes | bytearray | memoryview) -> memoryview:
        """The bytes after the skipped message, whose own bytes are kept if ``keep_oversized`` gave a file."""
        view = memoryview(data)
        if self._skip == _UNTIL_NUL:
            nul = bytes(view).find(0)
            body, stop = (len(view), len(view)) if nul < 0 else (nul, nul + 1)
            self._skip = _UNTIL_NUL if nul < 0 else 0
        else:
            body, stop = min(len(view), self._skip - 1), min(len(view), self._skip)
            self._skip -= stop
        if self._large is not None:
            self._large.add(view[:body])
        if not self._skip:
            self._end_of_large()
        return view[stop:]

    def _end_of_large(self) -> None:
        if self._large is not None:
            self.oversized.append(self._large)
            self._large = None

    def _too_large(self, start: int, head: int, size: int) -> MessageTooLargeError:
        """Return the error, with the destination: subscriptions to others may share the connection."""
        return too_large(size, self._max_body_bytes, self._header(b"destination", start, head).decode(errors="replace"))

    def _exceeds(self, start: int, body: int) -> bool:
        """Return whether this is a MESSAGE that is too large."""
        if self._pending.startswith(_MESSAGE, start):
            return body > self._max_body_bytes
        if body > MAX_HEADER_BYTES:  # the errors of a broker are short: the limit of the user is for messages
            raise MalformedFrameError(f"A frame that is not a MESSAGE has {body:,} bytes.")
        return False

    def _identifier(self, start: int, head: int) -> bytes:
        at = self._pending.find(_MESSAGE_ID, start, head)
        if at < 0:
            raise MalformedFrameError("A MESSAGE frame has no message-id.")
        at += len(_MESSAGE_ID)
        identifier = bytes(self._pending[at : self._pending.find(_LF, at)])
        if self.ack_header is None:
            return identifier
        return self._header(self.ack_header, start, head) + b"," + identifier

    def _keep(self, start: int, head: int, end: int) -> None:
        block, data, pending = self._block, self._data, self._pending
        block.ids.append(self._identifier(start, head))
        block.heads.append(len(data) + head - start)
        data += memoryview(pending)[start : end + 1]
        data.append(_LF)
        block.ends.append(len(data))

    def _header(self, name: bytes, start: int, head: int) -> bytes:
        key = b"\n" + name + b":"
        at = self._pending.find(key, start, head)
        return b"" if at < 0 else bytes(self._pending[at + len(key) : self._pending.find(_LF, at + 1)])

    def _drop_consumed(self, start: int) -> None:
        """Drop the bytes before ``start``, and move the positions of the incomplete frame."""
        del self._pending[:start]
        self._resume = max(0, self._resume - start)
        self._needed = max(0, self._needed - start)
        if self._head >= 0:
            self._head -= start
