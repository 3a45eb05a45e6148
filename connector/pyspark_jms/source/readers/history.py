"""What the batches of a run brought, by the tokens of their readers: metrics of progress, and the next pause."""

import logging
from collections.abc import Callable, Mapping

from pyspark_jms.delivery.register.token import Offset, Token

__all__ = ["BatchHistory"]

_log = logging.getLogger("pyspark_jms.source")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.25, 15.0
_FRUITLESS = 4
"""So many batches without messages in a row are not another consumer that was faster."""
_TAKEN = ("messages", "deadLetters", "droppedTooLarge")
"""The metrics of messages that a batch has taken from its queues."""


class BatchHistory:
    """``began`` when tasks are made for a batch; ``note`` when Spark's commit log has it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ran = self._noted = -1
        self._tokens: dict[int, Token] = {}
        self._by_reader: dict[int, dict[str, int]] = {}
        self._retired = 0
        self._until = 0.0
        self._seen: set[tuple[int, int, int]] = set()
        """Reader, number of messages, and digest of the first and last one, of the last batch."""
        self._warned_of_repetition = False
        self._warned_of_unread = self._warned_of_fruitless = False
        self.fruitless = 0
        """How many batches in a row took no message from the queues."""
        self.was_read = True
        """Whether Spark has read rows of the last batch."""

    def began(self, batch: int) -> None:
        """Its metrics count in this run."""
        self._ran = batch

    def has(self, batch: int) -> bool:
        return batch <= self._noted

    def saw(self, tokens: Mapping[int, Token]) -> None:
        """Tokens of readers, of whatever batch."""
        for reader, token in tokens.items():
            before = self._tokens.get(reader, token)
            if token.batch > before.batch:
                self._retired += _staged(before)
            self._tokens[reader] = token

    def note(self, offset: Offset, tokens: Mapping[int, Token], unread: frozenset[int] = frozenset()) -> None:
        """``tokens`` of the batch's readers; those that are ``unread`` were closed."""
        self.saw(tokens)
        if self.has(offset.batch):
            return
        self._noted = offset.batch
        read = {
            reader: tokens[reader]
            for reader in offset.readers
            if reader in tokens and reader not in unread and tokens[reader].batch == offset.batch
        }
        self.was_read = bool(read) or not offset.readers
        if self.was_read and offset.batch != self._ran:
            return  # of an earlier run
        for reader, token in read.items():
            sums = self._by_reader.setdefault(reader, {})
            for name, value in token.metrics:
                sums[name] = sums.get(name, 0) + value
        self._warn_of_repetition(read)
        has_taken = any(dict(token.metrics).get(name) for token in read.values() for name in _TAKEN)
        self._choose_pause(0 if has_taken else self.fruitless + 1)

    def _warn_of_repetition(self, read: Mapping[int, Token]) -> None:
        """A non-destructive queue gives the same messages to each batch. Ids are a producer's claim: nothing stops."""
        came = {reader: dict(token.metrics) for reader, token in read.items()}
        seen = {(reader, each["messages"], each["ends"]) for reader, each in came.items() if each.get("ends")}
        if seen and seen == self._seen and not self._warned_of_repetition:
            self._warned_of_repetition = True
            _log.warning(
                "! batch %d begins and ends with the messages of the batch before, by their ids and contents. If the"
                " queue is non-destructive, it keeps what is acknowledged, and each batch has the same rows: ask its"
                " administrator, or grant manage, by which a query finds out",
                self._noted,
            )
        self._seen = seen

    def _choose_pause(self, fruitless: int) -> None:
        """Messages that are seen and not taken shall not make one empty batch after the other."""
        self.fruitless = fruitless
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** min(self.fruitless - 1, 10), _LONGEST_PAUSE_SECONDS)
        self._until = self._clock() + pause if self.fruitless else 0.0

    def pause_seconds(self) -> float:
        """Return how long the next batch shall wait."""
        return max(0.0, self._until - self._clock())

    def warn(self) -> None:
        """Once in a run for each reason."""
        if not self.was_read and not self._warned_of_unread:
            self._warned_of_unread = True
            _log.warning(
                "! no task has read batch %d: Spark did not need its rows. Its messages stay in the queue, and come"
                " again in later batches, after growing pauses. If the checkpoint is new, give Spark's file sink a new"
                " output folder: the sink drops a batch whose number its folder has",
                self._noted,
            )
        if self.was_read and self.fruitless >= _FRUITLESS and not self._warned_of_fruitless:
            self._warned_of_fruitless = True
            _log.warning(
                "! %d batches in a row got no message, although the broker shows messages: the queue may be paused, or"
                " another consumer may have their group. The query goes on, after growing pauses",
                self.fruitless,
            )

    def warn_of_end(self) -> None:
        """Warn of a run that ends although the broker shows messages."""
        if self.fruitless and not self.moved():
            _log.warning(
                "! the run ends without a message, although the broker shows messages: the queue may be paused or wait"
                " for more consumers, another consumer may have their group, or they were sent after the start"
            )

    # --- metrics -------------------------------------------------------------------------------

    def metrics(self) -> dict[str, object]:
        """``staged``: messages in the registers. Each of them is of a batch that is done."""
        readers = range(max(self._by_reader, default=-1) + 1)
        return {
            "seq": sum(token.next for token in self._tokens.values()),
            "staged": sum(map(_staged, self._tokens.values())),
            "backlog": 0,
            "emptyBatches": self.fruitless,
            "moved": self._sum("messages"),
            "movedBytes": self._sum("bytes"),
            "movedByReader": [self._of(reader, "messages") for reader in readers],
            "movedBytesByReader": [self._of(reader, "bytes") for reader in readers],
            "retired": self._retired,
            "redelivered": self._sum("redelivered"),
            "deadLetters": self._sum("deadLetters"),
            "droppedTooLarge": self._sum("droppedTooLarge"),
        }

    def moved(self) -> int:
        return self._sum("messages")

    def reconnects(self) -> int:
        """Return the number of reconnections of tasks."""
        return self._sum("reconnects")

    def _sum(self, name: str) -> int:
        return sum(self._of(reader, name) for reader in self._by_reader)

    def _of(self, reader: int, name: str) -> int:
        return self._by_reader.get(reader, {}).get(name, 0)


def _staged(token: Token) -> int:
    return token.next - token.first if token.blocks else 0
