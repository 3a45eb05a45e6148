"""A broker as far as acknowledging is concerned, for machines that live through anything: what Artemis was seen to do.

One queue, our consumer, and a competing one. Everything unacknowledged comes back at the head, in order, when
a connection ends; the broker may notice that end late, and until then handle ACKs that were on their way. An ACK
of what is not in delivery is an error (on Artemis: an ERROR that ends the connection).
"""

from collections import deque
from dataclasses import replace
from hashlib import blake2b

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.subscription_ledger import Recognition

UNNAMED = b"-"
"""Begins the content of a message without an id of its producer."""


def block_of(ids, contents):
    """What a connection delivered: ids as ``consumer,message``, and contents."""
    block = MessageBlock(ids=ids)
    for content in contents:
        block.heads.append(len(block.data))
        block.data += content
        block.ends.append(len(block.data))
    return block


def text(message, size=10, prefix=b""):
    """The content of a message; its number ends it."""
    return prefix + b"%0*d;" % (max(size - len(prefix) - 1, 1), message)


def numbers(data):
    """The messages in these bytes."""
    return [int(part.lstrip(b"x")) for part in bytes(data).split(b";")[:-1]]


def run(consumer, *messages, size=10, prefix=b""):
    """``run(1, 5, 6)``: messages 5 and 6 as consumer 1 gets them, ten bytes each."""
    return block_of([b"%d,%d" % (consumer, m) for m in messages], [text(m, size, prefix) for m in messages])


RECOGNITION = Recognition(
    identity=lambda block, index: block.ids[index].partition(b",")[2],
    fingerprint=lambda block, index: blake2b(block.message(index), digest_size=16).digest(),
)


BY_PRODUCER = replace(
    RECOGNITION,
    identity=RECOGNITION.fingerprint,
    by_broker=False,
    is_named=lambda block, index: not block.message(index).startswith(UNNAMED),
)
"""Of messages to which producers gave one identity, or none: equal ones cannot be told apart."""


def fingerprints_of(segment):
    """The fingerprints of ``RECOGNITION`` for the messages in a segment of a journal."""
    return [RECOGNITION.fingerprint(segment.block, index) for index in range(len(segment))]


class _Session:
    """A connection with our subscription on it, as the broker has it."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.delivered = {}  # message-id -> message, in order
        self.acks = deque()  # on their way to the broker: ids, receipt


class ModelBroker:
    """Messages are numbers from 1 on; ``sizes`` has their lengths. ``on_gone(message)`` is called for each one that
    we acknowledged when the broker takes that in: it will never come again.
    """

    def __init__(self, on_gone):
        self._on_gone = on_gone
        self.queue = deque()
        self.sizes = {}
        self.session = _Session(1)
        self.wire = []  # message-ids on their way to the client
        self.receipts = deque()  # on their way to the client
        self.ghosts = []  # sessions whose end was not noticed yet
        self.with_others = []
        self.taken_by_others = set()  # for good

    @property
    def sent(self):
        return len(self.sizes)

    def send(self, size):
        self.sizes[len(self.sizes) + 1] = size
        self.queue.append(len(self.sizes))

    def deliver(self, count):
        for _ in range(min(count, len(self.queue))):
            message = self.queue.popleft()
            identifier = b"%d,%d" % (self.session.consumer, message)
            self.session.delivered[identifier] = message
            self.wire.append(identifier)

    def take(self, count):
        """What the client reads off the wire."""
        taken, self.wire = self.wire[:count], self.wire[count:]
        messages = [self.session.delivered[identifier] for identifier in taken]
        return block_of(taken, [text(message, self.sizes[message]) for message in messages])

    def acknowledge(self, ids, receipt):
        """The client writes ACKs."""
        assert ids
        assert len(set(ids)) == len(ids), "acknowledged twice"
        self.session.acks.append((ids, receipt))

    def process_ack(self):
        """The oldest ACKs arrive."""
        if self.session.acks:
            ids, receipt = self.session.acks.popleft()
            self._handle(self.session, ids)
            self.receipts.append(receipt)

    def lose_link(self, half_way=0, *, noticed=True):
        """``half_way``: so many of the ACKs on their way still arrive. A broker that does not notice keeps the rest."""
        ghost, self.session = self.session, _Session(self.session.consumer + 1)
        self.wire = []
        self.receipts.clear()
        self.ghosts.append(ghost)
        if noticed:
            self.notice(half_way)

    def notice(self, half_way=0):
        """The time to live of dead connections is over."""
        for ghost in reversed(self.ghosts):
            on_their_way = [identifier for ids, _ in ghost.acks for identifier in ids]
            self._handle(ghost, on_their_way[:half_way])
            self.queue.extendleft(reversed(ghost.delivered.values()))
        self.ghosts = []

    def _handle(self, session, ids):
        for identifier in ids:
            self._on_gone(session.delivered.pop(identifier))

    # the others

    def compete(self, count):
        """Another consumer gets the next messages."""
        self.with_others += [self.queue.popleft() for _ in range(min(count, len(self.queue)))]

    def others_acknowledge(self):
        self.taken_by_others |= set(self.with_others)
        self.with_others = []

    def others_give_back(self):
        self.queue.extendleft(reversed(self.with_others))
        self.with_others = []

    # the end

    @property
    def idle(self):
        """Nothing happens any more without another call."""
        session = self.session
        return not any((self.queue, session.delivered, session.acks, self.receipts, self.ghosts, self.with_others))


def open_journal(path, *, clock=lambda: 1e9):
    """The journal in this folder, for blocks of ``block_of``."""
    return JournalStore.open(
        path, query="test", wait_seconds=0, pause=lambda _: None, clock=clock, fingerprints=fingerprints_of
    )


def share_queue(brokers):
    """One broker with a connection of ours for each of these models."""
    first = brokers[0]
    for number, each in enumerate(brokers[1:], start=1):
        each.queue, each.sizes, each.taken_by_others = first.queue, first.sizes, first.taken_by_others
        each.session = _Session(number * 1_000_000)
