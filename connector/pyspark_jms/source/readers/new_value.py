"""The value that a task receives: its messages are numbered, and sent while others are still received."""

from pyspark_jms.blocks.staged import pack_all
from pyspark_jms.delivery.message_range import MessageRange
from pyspark_jms.source.readers.links import ReaderLink
from pyspark_jms.source.readers.runs import Run

__all__ = ["NewValue"]


class NewValue:
    """``len`` is the number of its messages. They are not accepted, and nothing is visible before the commit."""

    def __init__(self, link: ReaderLink, first: int) -> None:
        """``first``: the number of the first message."""
        self.first = self.end = first
        self.size = 0
        """Bytes of its messages."""
        self.deliveries = 0
        """The highest number of earlier deliveries of one message, also of those that were received and given back."""
        self.runs: list[Run] = []
        self.accepted: list[tuple[int, list[bytes]]] = []
        """Numbers of sources, and ids of their messages."""
        self._link = link

    def __len__(self) -> int:
        return self.end - self.first

    def add(self, span: MessageRange) -> None:
        """Send the messages in blocks, in the open transaction."""
        dialect = self._link.dialect.name
        source, part = str(self._link.sources[span.lane].subscription.destination), span.messages()
        packed = pack_all(part, source=source, dialect=dialect)
        self._link.send_blocks((self.end + first, last - first, block) for first, last, block in packed)
        self.runs.append(Run(self.end, source, dialect, part))
        self.accepted.append((span.lane, [each for each in span.ids if each is not None]))
        self.end += len(span)
        self.size += span.size
