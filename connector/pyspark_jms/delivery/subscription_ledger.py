"""The subscriptions of a query: what may be acknowledged on each, and what may be redelivered of each source.

A subscription outlives its connections. Several subscriptions may read one source: what was in flight on a lost
connection is redelivered on any of them, so the expected redeliveries are the source's. Pure; the table of states
that a source is given decides which event may follow which state.
"""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise, repeat
from typing import Generic, TypeVar

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.message_range import Backlog, Batch, Bounds, MessageRange
from pyspark_jms.delivery.state_table import StateTable
from pyspark_jms.delivery.states import Event, MessageState
from pyspark_jms.errors import OtherBrokerError

__all__ = [
    "AckRound",
    "DeliveryLedger",
    "ExpectedRedeliveries",
    "ExpectedRedelivery",
    "Recognition",
    "SubscriptionLedger",
]


def _every_message(_block: MessageBlock, _index: int) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Recognition:
    """How the messages of a subscription are known again.

    These are called with a block and the index of a message in it. ``identity`` gives the id that is the same in every
    delivery of the message, ``fingerprint`` a digest of all content that is.
    """

    identity: Callable[[MessageBlock, int], bytes]
    fingerprint: Callable[[MessageBlock, int], bytes]
    by_broker: bool = True
    """Whether the broker gives each message an identity of its own: then one that comes with other content is of
    another broker. Otherwise producers choose it, and several messages may have the same."""
    is_named: Callable[[MessageBlock, int], bool] = _every_message
    """Whether an equal message is the same one. Without an id it may be a later message that is only equal."""
    origin: Callable[[str], str] = str
    """Maps two names of one source to the same name: a queue may have two names."""


def other_content() -> OtherBrokerError:
    """A message is recognised by its id and its content together: two new brokers give the same ids."""
    return OtherBrokerError(
        "A message has the id of an earlier one and other content: this is another broker, or its store was replaced."
        " The new message was not acknowledged.",
        "Point brokerUrl at one broker (and its backup) only, and start again. If the broker was"
        " replaced, follow docs/guarantees.md.",
    )


T = TypeVar("T")


@dataclass(slots=True, eq=False)
class AckRound(Generic[T]):
    """Messages that may be acknowledged together, all in one state: ``sent``, then ``confirmed``, unless lost."""

    ids: list[bytes]
    what: T
    """The ledger's own record of these messages."""
    state: MessageState
    ledger: "SubscriptionLedger[T]"
    receipt: str | None = None

    def sent(self, receipt: str) -> None:
        """The acknowledgements were sent; ``receipt`` will confirm them."""
        self.state = self.ledger.source.table.after(self.state, Event.ACK)
        self.receipt = receipt

    def confirmed(self) -> int:
        """The broker's confirmation is here. Returns how many messages it confirms."""
        self.state = self.ledger.source.table.after(self.state, Event.RECEIPT)
        self.ledger.remove(self)
        return len(self.ids)


@dataclass(slots=True, eq=False)
class ExpectedRedelivery:
    """A message that may be redelivered. Its new id is written to its first delivery: ``index`` in the block of
    ``range_``.
    """

    fingerprint: bytes
    state: MessageState
    range_: MessageRange | None = None
    index: int = 0
    in_doubt: bool = False
    """Whether the broker may have carried out its acknowledgement."""


class ExpectedRedeliveries:
    """One source of a query: the redeliveries that it may send on any of its subscriptions.

    If ``recognition`` is None, redelivered messages cannot be recognised.
    """

    def __init__(self, table: StateTable[MessageState], recognition: Recognition | None) -> None:
        self.table = table
        self.recognition = recognition
        self.expected: dict[bytes, deque[ExpectedRedelivery]] = {}
        """By identity, the longest expected first. More than one for messages to which producers gave one identity."""
        self.unread = Counter[bytes]()
        """By identity, messages that were received and not offered when their connection was lost: so many of the next
        ones are new. Empty where the broker gives each message an identity.
        """

    def forget(self, identities: Iterable[bytes], most: int) -> None:
        """Messages are not known any more, and their redeliveries are new. ``most``: how many to remember."""
        self.unread.update(identities)
        for identity in list(islice(self.unread, max(0, len(self.unread) - most))):
            del self.unread[identity]

    def expect(self, identity: bytes, one: ExpectedRedelivery) -> None:
        if self.recognition is None or self.recognition.by_broker:
            self.expected[identity] = deque((one,))
        else:
            self.expected.setdefault(identity, deque()).append(one)

    def split_redelivered(
        self, block: MessageBlock, last: int, without: Collection[int] = ()
    ) -> tuple[list[tuple[int, int]], list[tuple[int, ExpectedRedelivery]]]:
        """Return what is new of the block's first ``last`` messages, and what was redelivered in all of it.

        ``without``: indices of messages that are neither.
        ``OtherBrokerError`` when a known id comes with other content; then nothing has changed.
        """
        again = list[tuple[int, ExpectedRedelivery]]()
        for index, one in self.known([block]):
            if one is not None and index not in without:
                again.append((index, one))
                one.state = self.table.after(one.state, Event.RECOGNISE)
                self._remove(self.identity(block, index), one)
            elif one is None and (index < last or index in without):
                self._read(self.identity(block, index))
        left_out = sorted({index for index, _ in again} | set(without))
        bounds = [-1, *(index for index in left_out if index < last), last]
        return [(a + 1, b) for a, b in pairwise(bounds) if a + 1 < b], again

    def _read(self, identity: bytes) -> None:
        self.unread[identity] -= 1
        if not self.unread[identity]:
            del self.unread[identity]

    def known(self, blocks: Sequence[MessageBlock]) -> list[tuple[int, ExpectedRedelivery | None]]:
        """The messages of the blocks that were received before, by index in all; with None if they were not offered.

        ``OtherBrokerError`` when a known id comes with other content.
        """
        if not self.expected and not self.unread:
            return []
        messages = _messages(blocks)
        identities = [self.identity(*each) for each in messages]
        if self.expected.keys().isdisjoint(identities) and self.unread.keys().isdisjoint(identities):
            return []
        assert self.recognition is not None
        find = self._by_broker if self.recognition.by_broker else self._in_order
        return find(messages, identities)

    @property
    def is_counted(self) -> bool:
        """Return whether several messages may have one identity."""
        return self.recognition is not None and not self.recognition.by_broker

    def unknown(self, blocks: Sequence[MessageBlock]) -> list[bytes]:
        """Return the identities of the messages that are new."""
        if not self.is_counted:
            return []
        known = {index for index, _ in self.known(blocks)}
        return [self.identity(*each) for index, each in enumerate(_messages(blocks)) if index not in known]

    def _by_broker(
        self, messages: list[tuple[MessageBlock, int]], identities: list[bytes]
    ) -> list[tuple[int, ExpectedRedelivery | None]]:
        assert self.recognition is not None
        found = list[tuple[int, ExpectedRedelivery | None]]()
        for index, key in enumerate(identities):
            if key in self.expected:
                one = self.expected[key][0]
                if self.recognition.fingerprint(*messages[index]) != one.fingerprint:
                    raise other_content()
                found.append((index, one))
        return found

    def _in_order(
        self, _messages: list[tuple[MessageBlock, int]], identities: list[bytes]
    ) -> list[tuple[int, ExpectedRedelivery | None]]:
        """A message beyond those that are expected with its identity is a new one."""
        again = {key: self._in_turn(key) for key in set(identities) if key in self.expected or key in self.unread}
        found = list[tuple[int, ExpectedRedelivery | None]]()
        for index, key in enumerate(identities):
            for one in islice(again.get(key, ()), 1):
                found.append((index, one))
        return found

    def _in_turn(self, key: bytes) -> Iterator[ExpectedRedelivery | None]:
        """Those that the broker certainly redelivers first: else one that was not read would be acknowledged."""
        expected = self.expected.get(key, ())
        certain = (one for one in expected if not one.in_doubt)
        return chain(certain, repeat(None, self.unread[key]), (one for one in expected if one.in_doubt))

    def identity(self, block: MessageBlock, index: int) -> bytes:
        assert self.recognition is not None
        return self.recognition.identity(block, index)

    def is_named(self, block: MessageBlock, index: int) -> bool:
        assert self.recognition is not None
        return self.recognition.is_named(block, index)

    @property
    def expected_messages(self) -> int:
        return sum(map(len, self.expected.values()))

    def give_up(self, identities: Iterable[bytes]) -> None:
        """A message that is redelivered after this is a new one."""
        for identity in identities:
            known = self.expected[identity]
            one = next((one for one in known if Event.GIVE_UP in self.table.moves[one.state]), known[0])
            self.table.after(one.state, Event.GIVE_UP)
            self._remove(identity, one)

    def _remove(self, identity: bytes, one: ExpectedRedelivery) -> None:
        known = self.expected[identity]
        known.remove(one)  # it is the first one, or close to it
        if not known:
            del self.expected[identity]


def _messages(blocks: Iterable[MessageBlock]) -> list[tuple[MessageBlock, int]]:
    return [(block, index) for block in blocks for index in range(len(block))]


class SubscriptionLedger(Generic[T]):
    """``on_confirmed`` is called with the ledger's record of each acknowledgement round that the broker confirmed."""

    def __init__(self, source: ExpectedRedeliveries, on_confirmed: Callable[[T], None]) -> None:
        self.source = source
        self._on_confirmed = on_confirmed
        self.rounds: list[AckRound[T]] = []
        """Everything that may be acknowledged and is not confirmed, the oldest first."""

    def add_round(self, ids: list[bytes], what: T, state: MessageState) -> None:
        """These messages may be acknowledged from now on."""
        self.rounds.append(AckRound(ids, what, state, self))

    def remove(self, confirmed: AckRound[T]) -> None:
        self.rounds = [ack for ack in self.rounds if ack is not confirmed]
        self._on_confirmed(confirmed.what)

    def lose(self) -> list[AckRound[T]]:
        """The connection is gone, and no id of it is valid any more. Returns what cannot be acknowledged now."""
        lost, self.rounds = self.rounds, []
        for ack in lost:
            ack.state = self.source.table.after(ack.state, Event.LOSE)
        return lost


class DeliveryLedger(ABC, Generic[T]):
    """A ledger, with or without a journal, for the engine of reading. Both have the acknowledgement rounds of each
    subscription, and the redeliveries that its source may send.

    Subscriptions are numbered from 0, and outlive their connections. Sequences count the messages of all of them.
    """

    offered: int
    """The end of the last batch."""

    done: int
    """Below it every message's batch is in the commit log."""

    def __init__(self, ledgers: list[SubscriptionLedger[T]]) -> None:
        self._ledgers = ledgers
        self._backlog = Backlog[MessageRange]()
        """What is durable, where there is a journal."""
        self.recognised = 0
        """Redelivered messages that were recognised: each is dropped, its first delivery counts."""

    @property
    def subscriptions(self) -> int:
        return len(self._ledgers)

    @property
    def waiting_messages(self) -> int:
        """Received, durable or not, and in no batch."""
        return self._backlog.messages

    @property
    def waiting_bytes(self) -> int:
        return self._backlog.size

    @property
    @abstractmethod
    def in_flight_messages(self) -> int:
        """Received and not acknowledged, as far as this process knows."""

    @property
    @abstractmethod
    def in_flight_bytes(self) -> int: ...

    @abstractmethod
    def receive(
        self, subscription: int, block: MessageBlock, upto: int | None = None, *, without: Collection[int] = ()
    ) -> None:
        """Take in a block, or its first ``upto`` messages. Redelivered messages in all of it are dropped.

        ``without``: messages of the block that go elsewhere, by index.
        ``OtherBrokerError`` when a known id comes with other content.
        """

    @abstractmethod
    def store_received(self) -> None:
        """Make durable what was received, where there is a journal: it is due to be acknowledged."""

    def offer(self, *, max_messages: int | None, max_bytes: int | None) -> int:
        """End the next batch: what waits, up to the limits, and at least one message. Return its end."""
        ranges = self._backlog.take(Bounds(max_messages, max_bytes))
        if ranges:
            batch = Batch(self.offered, self.offered + sum(map(len, ranges)), tuple(ranges))
            self._record_batch(batch)
            self.offered = batch.end
        return self.offered

    @abstractmethod
    def _record_batch(self, batch: Batch) -> None:
        """The batch is offered."""

    @abstractmethod
    def finish(self, sequence: int) -> None:
        """Every batch below ``sequence`` is in the commit log."""

    @abstractmethod
    def lost(self, subscription: int, blocks: Sequence[MessageBlock] = ()) -> None:
        """The subscription's connection is gone. ``blocks``: received on it, and not given to ``receive``."""

    def expects(self, subscription: int) -> bool:
        """Return whether messages of this subscription's source may still be redelivered."""
        return bool(self._ledgers[subscription].source.expected)

    def redelivered(self, subscription: int, block: MessageBlock) -> set[int]:
        """The messages of the block that were received before, and whose acknowledgement is not certain."""
        return {index for index, one in self._ledgers[subscription].source.known([block]) if one is not None}

    def due(self, subscription: int) -> list[AckRound[T]]:
        """Return what is to be acknowledged now. Each round is then ``sent``, or the subscription is ``lost``."""
        return [ack for ack in self._ledgers[subscription].rounds if ack.receipt is None]

    def unconfirmed(self, subscription: int) -> list[AckRound[T]]:
        """Return what was sent and is not confirmed, the oldest first."""
        return [ack for ack in self._ledgers[subscription].rounds if ack.receipt is not None]
