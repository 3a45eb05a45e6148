"""Bytes of a connection in, blocks of whole MESSAGE frames out; every other frame is handed back as it came.

The receiver's hot path: it finds where frames end and reads ``message-id``, nothing else. It refuses to
know what a header means, who sent it, and what becomes of the frames.

In a block, each frame ends in NUL LF, heart-beats are taken out, ``heads`` has the blank line that ends a frame's
headers (the first LF of the two), and ``ids`` each ``message-id`` as it stands on the wire.
"""

from collections.abc import Callable
from typing import BinaryIO

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.oversized import OversizedMessage
from pyspark_jms.errors import MalformedFrameError, MessageTooLargeError

__all__ = ["MAX_HEADER_BYTES", "FrameScanner"]

MAX_HEADER_BYTES = 16 << 20
"""A header block without an end is not STOMP. Artemis takes values of some 100 KB and 2,000 headers; 16 MB
leaves room for any broker and still stops a peer that speaks something else."""

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
_MEMORY_ADVICE = (
    "a message needs ten times its size of heap on the driver (spark.driver.memory) and must fit into a task"
    " (spark.rpc.message.maxSize, 128 MB)."
)


class FrameScanner:
    """Feed it what the socket gave, cut anywhere; take whole frames. A MESSAGE may have ``max_body_bytes``.

    After an error the bytes that follow mean nothing, and the connection must be closed. A larger MESSAGE
    that says how long it is does no such harm: it is passed over, and ``refused`` says so.

    With ``keep_oversized`` every larger MESSAGE is passed over and waits in ``oversized`` when it is whole;
    ``keep_oversized`` gives a file for its body, or None for none.

    With ``ack_header``, where ACK takes another header's value than that of ``message-id``, an id is both: that
    value, a comma, and the ``message-id``.
    """

    def __init__(self, *, max_body_bytes: int, keep_oversized: Callable[[], BinaryIO | None] | None = None) -> None:
        self._max_body_bytes = max_body_bytes
        self._keep_oversized = keep_oversized
        self._large: OversizedMessage | None = None  # the one that is being passed over
        self.oversized: list[OversizedMessage] = []
        self._pending = bytearray()  # begins with the first incomplete frame
        self._resume = 0  # where the search for its end goes on
        self._has_cr = False  # among its headers, as far as they were searched
        self._head = -1  # its blank line, once found
        self._needed = 0  # no frame can be complete before this many bytes
        self._skip = 0  # bytes of a refused message that are still to come, its NUL included
        self._data = bytearray()
        self._block = MessageBlock(self._data)  # the open one
        self.ack_header: bytes | None = None
        self.refused: MessageTooLargeError | None = None

    @property
    def messages(self) -> int:
        """Whole frames in the open block."""
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
        """Take in bytes; return the frames that are not MESSAGE, each with its NUL."""
        pending = self._pending
        pending += self._behind_the_skipped(data) if self._skip else data
        if len(pending) < self._needed:
            return []
        others: list[bytes] = []
        start = 0
        while (start := self._skip_eols(start)) < len(pending):
            # Not while a frame's end is being looked for from read to read: that search is not begun anew.
            if (self._needed or (self._head < 0 and not self._resume)) and (behind := self._keep_plain(start)) > start:
                start = behind
                continue
            head = self._find_head(start)
            if head < 0:
                break
            end = self._find_end(start, head)
            if end < 0:
                break
            if end == start:
                self._head = -1
                continue  # a refused message, passed over
            if pending.startswith(_MESSAGE, start):
                self._keep(start, head, end)
            else:
                others.append(bytes(pending[start : end + 1]))
            start = end + 1
            self._head, self._resume, self._needed = -1, 0, 0
        self._forget(start)
        return others

    def _skip_eols(self, start: int) -> int:
        # STOMP 1.2 "Frame": EOLs may follow a frame; they are also the heart-beats.
        pending, size = self._pending, len(self._pending)
        while start < size and pending[start] <= _CR and pending[start] in _EOLS:
            start += 1
        return start

    def _keep_plain(self, start: int) -> int:
        """Keep whole frames as long as they are what a broker sends: MESSAGE, lines of LF, NUL LF at the end.

        Where the first of another kind begins, which is left to the steps below. They would find the same ends in
        twice the time, most of it the calls.
        """
        pending, block, find, ack_header = self._pending, self._block, self._pending.find, self.ack_header
        size, most, behind = len(pending), self._max_body_bytes, start
        shift, found = len(self._data) - start, -1
        while pending.startswith(_MESSAGE, behind):
            head = find(b"\n\n", behind)
            at = find(_MESSAGE_ID, behind, head)
            if head < 0 or at < 0 or find(_CR, behind, head) >= 0:
                break
            identifier = bytes(pending[at + len(_MESSAGE_ID) : find(_LF, at + 1)])
            if (at := find(_CONTENT_LENGTH, behind, head + 1)) < 0:
                end = find(0, head + 2)
            else:
                digits = pending[at + len(_CONTENT_LENGTH) : find(_LF, at + 1)]
                end = head + 2 + int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else -1
            if not head < end <= head + 2 + most or end + 1 >= size or pending[end] or pending[end + 1] != _LF:
                found = head
                break
            if ack_header is not None:
                identifier = self._header(ack_header, behind, head) + b"," + identifier
            block.ids.append(identifier)
            block.heads.append(head + shift)
            behind = end + 2
            block.ends.append(behind + shift)
        if behind > start:
            self._data += memoryview(pending)[start:behind]
            self._head, self._resume, self._needed = found, 0, 0
        return behind

    def _find_head(self, start: int) -> int:
        """The first LF of the blank line, or -1; a header block with CR LF is rewritten with LF first.

        No byte is searched in every read: a block may come in small pieces.
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
                "The peer does not speak STOMP: a frame begins with no command.",
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

        ``start`` for a message that is too large and was passed over.
        """
        pending = self._pending
        # STOMP 1.2 "Repeated Header Entries": the first one counts.
        at = pending.find(_CONTENT_LENGTH, start, head + 1)
        if at < 0:
            end = pending.find(0, max(head + 2, self._resume))
            size = (end if end >= 0 else len(pending)) - head - 2
            if self._exceeds(start, size):
                if self._keep_oversized is None:  # where it ends is not known
                    raise self._too_large(size)
                return self._pass_over(start, head, end, size)
            self._resume = len(pending) if end < 0 else self._resume
            return end
        digits = bytes(pending[at + len(_CONTENT_LENGTH) : pending.find(_LF, at + 1)])
        if not digits.isdigit() or len(digits) > _MAX_DIGITS:
            raise MalformedFrameError(
                "A frame's content-length is not a number.", "Report this with the broker's version."
            )
        end = head + 2 + int(digits)
        if self._exceeds(start, int(digits)):
            return self._pass_over(start, head, end, int(digits))
        if end >= len(pending):
            self._needed = end + 1
            return -1
        if pending[end]:
            raise MalformedFrameError(
                "A frame's body does not end where its content-length says.", "Report this with the broker's version."
            )
        return end

    def _pass_over(self, start: int, head: int, end: int, size: int) -> int:
        """``end`` -1: its NUL is still to come. Returns ``start``, where the next frame begins."""
        pending, here = self._pending, len(self._pending) if end < 0 else min(end, len(self._pending))
        if self._keep_oversized is None:
            self.refused = self.refused or self._too_large(size)
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

    def _behind_the_skipped(self, data: bytes | bytearray | memoryview) -> memoryview:
        """What follows the message that is passed over; its own bytes are kept, if they are to be."""
        view = memoryview(data)
        if self._skip == _UNTIL_NUL:
            nul = bytes(view).find(0)
            body, behind = (len(view), len(view)) if nul < 0 else (nul, nul + 1)
            self._skip = _UNTIL_NUL if nul < 0 else 0
        else:
            body, behind = min(len(view), self._skip - 1), min(len(view), self._skip)
            self._skip -= behind
        if self._large is not None:
            self._large.add(view[:body])
        if not self._skip:
            self._end_of_large()
        return view[behind:]

    def _end_of_large(self) -> None:
        if self._large is not None:
            self.oversized.append(self._large)
            self._large = None

    def _exceeds(self, start: int, body: int) -> bool:
        """Whether this is a MESSAGE that is too large."""
        if self._pending.startswith(_MESSAGE, start):
            return body > self._max_body_bytes
        if body > MAX_HEADER_BYTES:  # a broker's errors are short: the user's limit has nothing to do with them
            raise MalformedFrameError(
                f"A frame that is not a MESSAGE has {body:,} bytes.", "Report this with the broker's version."
            )
        return False

    def _too_large(self, body: int) -> MessageTooLargeError:
        return MessageTooLargeError(
            f"A message of {body:,} bytes exceeds maxMessageBytes ({self._max_body_bytes:,}).",
            "It stays on the broker. Choose onTooLarge=deadLetter or skip, take the message off with another client, or"
            f" raise maxMessageBytes: {_MEMORY_ADVICE}",
        )

    def _identifier(self, start: int, head: int) -> bytes:
        at = self._pending.find(_MESSAGE_ID, start, head)
        if at < 0:
            raise MalformedFrameError("A MESSAGE frame has no message-id.", "Report this with the broker's version.")
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

    def _forget(self, start: int) -> None:
        """Drop what was cut; the positions of the incomplete frame move with it."""
        del self._pending[:start]
        self._resume = max(0, self._resume - start)
        self._needed = max(0, self._needed - start)
        if self._head >= 0:
            self._head -= start
