"""The messages that a connection has received and nobody has taken yet.

Those of a connection with one subscription stay in the scanner's block. A shared connection sorts what comes.

STOMP has no credit. The window is a header of SUBSCRIBE, which each broker counts in its own way, and a broker that
ignores it would fill the memory of the driver. So what was received and is not acknowledged has a limit: a multiple of
the value of that header, in the unit that the broker counts.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from pyspark_jms.blocks.block import ByteArray, MessageBlock, index_of, positions_of
from pyspark_jms.blocks.dead_letter import KEPT, OversizedMessage
from pyspark_jms.errors import JMSError, PrefetchExceededError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.dialects.base import WindowUnit
from pyspark_jms.stomp.wire.scan import FrameScanner

__all__ = ["FIRST", "NOT_SUBSCRIBED", "Inbox", "Prefetch", "PrefetchLimit", "Unacknowledged", "limit_of"]


_WINDOWS = 4
"""Three more than the one that the broker fills: brokers count a message in other ways than by its bytes here."""

_ALWAYS_BYTES = 64 << 20
"""So much memory is there for any window, so that a small one is never exceeded by how a broker counts it."""

_ALWAYS_MESSAGES = 1
"""Brokers that count bytes send the message that crosses the window, whatever its size."""

_PROBED_MESSAGES = 100
"""As many subscriptions to one message each as the conversion probe makes on a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchLimit:
    """The limit of one subscription. It is exceeded if both values are."""

    messages: int
    size: int
    window: str
    """The window that the connector asked for, as a text for the error."""

    def is_exceeded(self, messages: int, size: int) -> bool:
        return size > self.size and messages > self.messages

    def require(self, messages: int, size: int, *, max_message_bytes: int) -> None:
        """Raise the error if so much is received and not acknowledged. Each window may have one message more."""
        if self.is_exceeded(messages, size - (_WINDOWS - 1) * max_message_bytes):
            raise self.error(messages, size)

    def error(self, messages: int, size: int) -> PrefetchExceededError:
        return PrefetchExceededError(
            f"The broker delivered {messages:,} messages ({size:,} bytes) that are not acknowledged, to a subscription"
            f" with a prefetch window of {self.window}.",
            "The connector ended the connection, because its memory would have no limit. Check option broker if it is"
            " set. If brokerUrl leads to a broker of docs/brokers, report this with its version. Otherwise look at"
            " what is between the broker and Spark.",
        )


def limit_of(dialect: Dialect, window: int) -> PrefetchLimit:
    """``window``: the value of the header that sets it."""
    if dialect.window_unit is WindowUnit.MESSAGES:
        return PrefetchLimit(messages=_WINDOWS * window, size=_ALWAYS_BYTES, window=f"{window:,} messages")
    size = max(_WINDOWS * window, _ALWAYS_BYTES)
    return PrefetchLimit(messages=_ALWAYS_MESSAGES, size=size, window=f"{window:,} bytes")


NOT_SUBSCRIBED = PrefetchLimit(messages=_PROBED_MESSAGES, size=_ALWAYS_BYTES, window="one message")
"""The limit of a connection before its subscription, which receives replies and single messages of probes."""


class Unacknowledged:
    """``messages`` and ``size`` of what was taken from a connection and is not acknowledged.

    The sizes are those of the oldest messages first, which is the order of acknowledgements, apart from a few.
    """

    def __init__(self) -> None:
        self.messages = self.size = 0
        self._parts: deque[tuple[int, int]] = deque()

    def add(self, messages: int, size: int) -> None:
        if messages:
            self._parts.append((messages, size))
            self.messages, self.size = self.messages + messages, self.size + size

    def remove(self, messages: int) -> None:
        left = messages
        while left and self._parts:
            count, size = self._parts.popleft()
            gone = min(count, left)
            part = size * gone // count
            if gone < count:
                self._parts.appendleft((count - gone, size - part))
            self.messages, self.size, left = self.messages - gone, self.size - part, left - gone


# --- the messages that wait ------------------------------------------------------------------------

SEGMENT_BYTES = 15 << 20
"""A block is closed at this size, nearly what a task reads by default, since decoding a block takes at least 2 ms."""


_SUBSCRIPTION = b"\nsubscription:"

FIRST = "1"
"""The id of a connection's first subscription."""


class Inbox:
    """What one subscription of a shared connection has received. Used as ``Prefetch`` is."""

    def __init__(self, condition: StateCondition) -> None:
        self._condition = condition
        self._blocks: list[MessageBlock] = []
        self._oversized: list[OversizedMessage] = []
        self.limit: PrefetchLimit = NOT_SUBSCRIBED

    def append(self, block: MessageBlock) -> None:
        """Add a block that nothing else keeps. Called with ``condition`` held."""
        self._blocks.append(block)

    def add(self, run: MessageBlock) -> None:
        """Called with ``condition`` held. Small runs are joined, so that a task decodes few blocks."""
        self._require_room()
        last = self._blocks[-1] if self._blocks else None
        if last is None or len(last.data) >= SEGMENT_BYTES:
            last = MessageBlock(bytearray())
            self._blocks.append(last)
        assert isinstance(last.data, bytearray)
        begin = len(last.data)
        last.data += run.data
        last.heads.extend(index_of(positions_of(run.heads) + begin))
        last.ends.extend(index_of(positions_of(run.ends) + begin))
        last.ids += run.ids

    def add_oversized(self, message: OversizedMessage) -> None:
        self._require_room()
        self._oversized.append(message)

    def _require_room(self) -> None:
        messages, size = self.waiting()
        messages, size = messages + len(self._oversized), size + sum(each.size for each in self._oversized)
        if self.limit.is_exceeded(messages, size):
            raise self.limit.error(messages, size)

    def waiting(self) -> tuple[int, int]:
        with self._condition:
            return sum(map(len, self._blocks)), sum(len(block.data) for block in self._blocks)

    def take(self) -> list[MessageBlock]:
        with self._condition:
            blocks, self._blocks = self._blocks, []
            return blocks

    def take_oversized(self) -> list[OversizedMessage]:
        with self._condition:
            oversized, self._oversized = self._oversized, []
            return oversized


class Prefetch:
    """Filled by the io thread and emptied by another one; ``condition`` guards it.

    It is the ``Inbox`` of the first subscription.
    """

    def __init__(
        self, condition: StateCondition, *, max_body_bytes: int, on_too_large: Literal["fail", "drop", "deadLetter"]
    ) -> None:
        self._condition = condition
        keep = None if on_too_large == "fail" else KEPT[on_too_large]
        self._scanner = FrameScanner(max_body_bytes=max_body_bytes, keep_oversized=keep)
        self.received_bytes = 0
        """Without heart-beats."""
        self.limit: PrefetchLimit = NOT_SUBSCRIBED
        self._is_shared = False
        """Whether messages are sorted: from the second subscription on, for as long as the connection lasts."""
        self._others: dict[bytes, Inbox] = {}
        """By the id of their subscription. A message of one that has ended came too late: it is in the queue again."""
        self._first: bytes | None = FIRST.encode()
        """The id of the subscription whose messages are kept here. None once it has ended."""
        self._own = Inbox(condition)
        """What is kept here and not in the scanner any more."""

    def share(self, subscription: str) -> Inbox:
        """Return the inbox of another subscription, which is not sent yet."""
        with self._condition:
            if not self._is_shared and self._scanner.messages:
                self._own.append(self._scanner.take())
            self._is_shared, self._own.limit = True, self.limit
            inbox = self._others[subscription.encode()] = Inbox(self._condition)
            return inbox

    def leave(self, subscription: str) -> None:
        """The broker has confirmed the end of this subscription."""
        with self._condition:
            self._others.pop(subscription.encode(), None)
            self._first = None if subscription.encode() == self._first else self._first

    def set_ack_header(self, name: str | None) -> None:
        """The header whose value ACK takes, if it is not ``message-id``."""
        self._scanner.ack_header = name.encode() if name else None

    def feed(self, data: memoryview) -> list[bytes]:
        """Keep the MESSAGE frames of ``data``, and return all other frames.

        ``PrefetchExceededError`` if another message comes when those that wait exceed the limit.
        """
        with self._condition:
            self.received_bytes += len(data) if len(data) > 1 else 0
            before = self._scanner.messages
            waiting = self._all_waiting()
            others = self._scanner.feed(data)
            if not self._is_shared and self.limit.is_exceeded(*waiting) and self._all_waiting() > waiting:
                raise self.limit.error(*waiting)
            if self._is_shared and (self._scanner.messages or self._scanner.oversized):
                self._sort()
                before = -1
            elif self._scanner.size >= SEGMENT_BYTES:
                self._own.append(self._scanner.take())
                before = -1
            if self._scanner.messages != before or self._scanner.oversized:
                self._condition.notify_all()
        return others

    def _sort(self) -> None:
        """Give each inbox its messages. They come in runs of one subscription."""
        block, oversized = self._scanner.take(), self._scanner.oversized
        begin, of = 0, None
        for index in range(len(block) + 1):
            inbox = self._inbox(block.data, block.start(index), block.heads[index]) if index < len(block) else None
            if inbox is not of:
                if of is not None:
                    run = block.slice(begin, index)
                    run.ids = block.ids[begin:index]
                    of.add(run)
                begin, of = index, inbox
        self._scanner.oversized = []
        for message in oversized:
            found = self._inbox(message.head, 0, len(message.head))
            if found is None:
                with message:
                    pass
            else:
                found.add_oversized(message)

    def _inbox(self, data: ByteArray, start: int, head: int) -> Inbox | None:
        """Return the inbox of the message whose headers begin at ``start``; None if its subscription has ended."""
        assert isinstance(data, bytes | bytearray)
        at = data.find(_SUBSCRIPTION, start, head + 1)
        end = data.find(b"\n", at + 1, head + 1)
        subscription = bytes(data[at + len(_SUBSCRIPTION) : end if end >= 0 else head])
        return self._own if subscription == self._first else self._others.get(subscription)

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""
        with self._condition:
            messages, size = self._own.waiting()
            return messages + self._scanner.messages, size + self._scanner.size

    def _all_waiting(self) -> tuple[int, int]:
        """Count also the messages above maxMessageBytes, which occupy the broker's window, too."""
        messages, size = self.waiting()
        oversized = self._scanner.oversized
        return messages + len(oversized), size + sum(each.size for each in oversized)

    def take(self) -> list[MessageBlock]:
        """The MESSAGE frames received since the last call, in blocks of about ``SEGMENT_BYTES``."""
        with self._condition:
            blocks = self._own.take()
            if self._scanner.messages:
                blocks.append(self._scanner.take())
            return blocks

    def take_oversized(self) -> list[OversizedMessage]:
        """The messages above maxMessageBytes since the last call, unless onTooLarge ends the session for them."""
        with self._condition:
            oversized, self._scanner.oversized = self._own.take_oversized() + self._scanner.oversized, []
            return oversized

    @property
    def refused(self) -> JMSError | None:
        """The error of a message that was too large to be received."""
        return self._scanner.refused
