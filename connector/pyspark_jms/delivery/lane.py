"""One subscription in the books, with and without a journal: what may be acknowledged, and what may come again.

A lane outlives its connections. Pure; the table that it is given says what may follow what.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from pyspark_jms.delivery.recognition import Recognition, other_content
from pyspark_jms.delivery.span import Messages
from pyspark_jms.delivery.states import Event, State, Table

__all__ = ["Awaited", "Due", "Lane", "Lanes"]

T = TypeVar("T")


@dataclass(slots=True)
class Due(Generic[T]):
    """Messages that may be acknowledged, all in one state. ``what`` they are is their owner's business."""

    ids: list[bytes]
    what: T
    state: State
    receipt: str | None = None


@dataclass(slots=True)
class Awaited:
    """A message that may come again. Where its first copy is held its new id is written: ``index`` of ``run``."""

    fingerprint: bytes
    state: State
    run: Messages | None = None
    index: int = 0


class Lane(Generic[T]):
    """``recognition`` None: what comes again cannot be told from what is new."""

    def __init__(self, table: Table, recognition: Recognition | None) -> None:
        self.recognition = recognition
        self.awaited: dict[bytes, Awaited] = {}
        """By identity, the longest awaited first."""
        self._table = table
        self._unconfirmed: list[Due[T]] = []

    # --- what may be acknowledged ----------------------------------------------------------------

    def allow(self, ids: list[bytes], what: T, state: State) -> None:
        """These messages may be acknowledged from now on."""
        self._unconfirmed.append(Due(ids, what, state))

    @property
    def due(self) -> list[Due[T]]:
        """What is to be acknowledged now."""
        return [due for due in self._unconfirmed if due.receipt is None]

    def acknowledging(self, receipt: str) -> None:
        if not self.due:
            raise self._table.nothing_for(Event.ACK)
        for due in self.due:
            due.state = self._table.after(due.state, Event.ACK)
            due.receipt = receipt

    @property
    def unconfirmed(self) -> list[Due[T]]:
        """What has no receipt, the oldest first."""
        return self._unconfirmed

    def acknowledged(self, receipt: str) -> list[Due[T]]:
        confirmed = [due for due in self._unconfirmed if due.receipt == receipt]
        if not confirmed:
            raise self._table.nothing_for(Event.RECEIPT, receipt)
        self._unconfirmed = [due for due in self._unconfirmed if due.receipt != receipt]
        for due in confirmed:
            due.state = self._table.after(due.state, Event.RECEIPT)
        return confirmed

    def lose(self) -> list[Due[T]]:
        """No id of this connection means anything any more. Returns what cannot be acknowledged, then."""
        lost, self._unconfirmed = self._unconfirmed, []
        for due in lost:
            due.state = self._table.after(due.state, Event.LOSE)
        return lost

    # --- what may come again -----------------------------------------------------------------------

    def sift(
        self, run: Messages, last: int, without: Collection[int] = ()
    ) -> tuple[list[tuple[int, int]], list[tuple[int, Awaited]]]:
        """What is new of the run's first ``last`` messages, and what came again in all of it.

        ``without``: indices of messages that are neither.
        ``OtherBrokerError`` when a known id comes with other content; then nothing has changed.
        """
        again = [(index, one) for index, one in self._again(run) if index not in without] if self.awaited else []
        for index, awaited in again:
            awaited.state = self._table.after(awaited.state, Event.RECOGNISE)
            del self.awaited[self.identity(run, index)]
        left_out = sorted({index for index, _ in again} | set(without))
        bounds = [-1, *(index for index in left_out if index < last), last]
        return [(a + 1, b) for a, b in pairwise(bounds) if a + 1 < b], again

    def _again(self, run: Messages) -> list[tuple[int, Awaited]]:
        assert self.recognition is not None
        identities = list(map(self.recognition.identity, run.ids))  # type: ignore[arg-type]  # of a living connection
        if self.awaited.keys().isdisjoint(identities):
            return []
        again = [(index, self.awaited[one]) for index, one in enumerate(identities) if one in self.awaited]
        for index, awaited in again:
            if self.recognition.fingerprint(run, index) != awaited.fingerprint:
                raise other_content()
        return again

    def identity(self, run: Messages, index: int) -> bytes:
        identifier = run.ids[index]
        assert self.recognition is not None
        assert identifier is not None
        return self.recognition.identity(identifier)

    def give_up(self, identities: Iterable[bytes]) -> None:
        """Should they come after all, they are new messages."""
        for identity in identities:
            self._table.after(self.awaited.pop(identity).state, Event.GIVE_UP)


class Lanes(Generic[T]):
    """What both ledgers have. When something is due: ``due_ids``, then ``acknowledging``, or ``lost``."""

    def __init__(self, lanes: list[Lane[T]]) -> None:
        self._lanes = lanes
        self.recognised = 0
        """Second copies that were dropped."""

    @property
    def lanes(self) -> int:
        return len(self._lanes)

    def expects(self, lane: int) -> bool:
        """Whether messages of this lane may still come again."""
        return bool(self._lanes[lane].awaited)

    def awaits(self, lane: int, run: Messages, index: int) -> bool:
        """Whether this message was received before, and its acknowledgement is not certain."""
        books = self._lanes[lane]
        return bool(books.awaited) and books.identity(run, index) in books.awaited

    def due(self, lane: int) -> int:
        """How many messages are to be acknowledged now."""
        return sum(len(due.ids) for due in self._lanes[lane].due)

    def due_ids(self, lane: int) -> list[bytes]:
        """Theirs. When ACKs with these were sent ``acknowledging`` follows; ``lost`` when they were not."""
        return [identifier for due in self._lanes[lane].due for identifier in due.ids]

    def acknowledging(self, lane: int, receipt: str) -> None:
        """The ACKs of everything due were sent; ``receipt`` will confirm them."""
        self._lanes[lane].acknowledging(receipt)

    def unconfirmed(self, lane: int) -> str | None:
        """The oldest receipt that is still to come."""
        return next((due.receipt for due in self._lanes[lane].unconfirmed), None)
