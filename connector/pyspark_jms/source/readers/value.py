"""The messages of a value, by their numbers: as a task receives and sends them, in its memory, and their rows.

The rows are made while the broker executes the transaction, or when they are asked for.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.blocks.block import PartitionSlice
from pyspark_jms.blocks.staged import pack_all
from pyspark_jms.delivery.message_range import MessageRange
from pyspark_jms.source.task_inputs import together

__all__ = ["NewValue", "RowsOf", "ValueRows"]


class NewValue:
    """``len`` is the number of its messages. They are not accepted, and nothing is visible before the commit."""

    def __init__(self, link: ReaderLink, stream: str, batch: int, first: int) -> None:
        """``first``: the number of the first message."""
        self.first = self.end = first
        self.size = 0
        """Bytes of its messages."""
        self.runs: list[PartitionSlice] = []
        self.blocks = 0
        """How many were sent."""
        self._link, self._stream, self._batch = link, stream, batch

    def __len__(self) -> int:
        return self.end - self.first

    def add(self, range_: MessageRange) -> None:
        """Send the messages in blocks, in the open transaction."""
        dialect = self._link.dialect.name
        source, part = str(self._link.sources[range_.subscription].subscription.destination), range_.messages()
        packed = pack_all(part, source=source, dialect=dialect)
        blocks = ((self.end + first, last - first, block) for first, last, block in packed)
        ids = [each for each in range_.ids if each is not None]
        self.blocks += self._link.add_to_value(range_.subscription, ids, self._stream, self._batch, blocks)
        self.runs.append(PartitionSlice(source, dialect, self.end, part))
        self.end += len(range_)
        self.size += range_.size


RowsOf: TypeAlias = Callable[[Sequence[PartitionSlice]], tuple[Any, int]]
"""Parts that are ``together`` → their RecordBatch, and how many of their messages became no row."""


class ValueRows:
    """Iterate once: for neighbours their RecordBatch, and how many of their messages became no row.

    The bytes are kept until the rows are made, and the rows until they are asked for.
    """

    def __init__(self, runs: Iterable[PartitionSlice] = (), rows_of: RowsOf | None = None) -> None:
        """``rows_of``: None, if there are no runs."""
        self._runs = deque(together(runs))
        self._rows_of = rows_of
        self._made = deque[tuple[Any, int]]()

    def make(self) -> None:
        """Raises nothing: an error comes when the rows are asked for."""
        with contextlib.suppress(Exception):
            self.make_all()

    def make_all(self) -> None:
        """Raise the error of a message that makes no row."""
        while self._runs:
            self._made.append(self._of(self._runs[0]))
            self._runs.popleft()

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        while self._made:
            yield self._made.popleft()
        while self._runs:
            yield self._of(self._runs.popleft())

    def _of(self, runs: Sequence[PartitionSlice]) -> tuple[Any, int]:
        assert self._rows_of is not None
        return self._rows_of(runs)
