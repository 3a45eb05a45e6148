"""The messages that one transaction moves to the staging queue: numbered and sent while others are still received."""

import time

from pyspark_jms.blocks.staged import pack_all
from pyspark_jms.delivery.span import Span
from pyspark_jms.source.staged.links import SourcesLink
from pyspark_jms.source.staged.memory import Run

__all__ = ["Move"]


class Move:
    """``len`` is the number of its messages. They are not accepted, and nothing is visible before the commit."""

    def __init__(self, link: SourcesLink, first: int, finished: int = 0) -> None:
        """``first``: the number of the first message. ``finished``: the blocks below are deleted with the move."""
        self.first = self.end = first
        self.size = 0
        """Bytes of its messages."""
        self.deliveries = 0
        """The highest number of earlier deliveries of one message, also of those that were received and given back."""
        self.runs: list[Run] = []
        self.accepted: list[tuple[int, list[bytes]]] = []
        """Numbers of lanes, and ids of their messages."""
        self._link = link
        self._finished = finished

    def __len__(self) -> int:
        return self.end - self.first

    def add(self, span: Span) -> None:
        """Send the messages in blocks, in the open transaction. The broker sends the finished blocks meanwhile."""
        dialect = self._link.dialect.name
        source, part = str(self._link.lanes[span.lane].subscription.destination), span.messages()
        packed = pack_all(part, source=source, dialect=dialect)
        self._link.send_blocks(
            ((self.end + first, last - first, block) for first, last, block in packed), finished=self._finished
        )
        self.runs.append(Run(self.end, source, dialect, part, int(time.time() * 1000)))
        self.accepted.append((span.lane, [each for each in span.ids if each is not None]))
        self.end += len(span)
        self.size += span.size
