"""The staging queue of one stream: its lock, tokens and blocks, and the sources, all on one connection.

The *lock* is the one consumer of an unshared durable subscription to the staging address: a broker refuses the second
one. Its queue has the blocks. The tokens are in a queue of their own. When the connection ends, the lock,
the tokens and the messages of the sources are free together.
"""

import dataclasses
import logging
import time
from collections.abc import Iterable, Sequence

import numpy as np

from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.locks import require_one_consumer
from pyspark_jms.amqp.link.pull import Pull, browse
from pyspark_jms.amqp.link.sources import OUTCOMES
from pyspark_jms.amqp.link.staged_messages import (
    HEAD_BYTES,
    SeenBlock,
    SeenToken,
    block_message,
    seen_block,
    seen_token,
    stated,
    token_message,
)
from pyspark_jms.amqp.link.transacted import Transacted
from pyspark_jms.amqp.wire.definitions import Source
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.blocks.staged import Packed
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.network.arrivals import Arrivals
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Names", "Outgoing", "StagingQueue", "block_of"]

_log = logging.getLogger("pyspark_jms.link")

_DURABLE = 2
_TAKE_SECONDS = 5.0
"""A token or a block that another connection does not hold arrives at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Names:
    """``address``: of the staging queue of ``stream``.

    ``client_id``: of a durable subscription that is read on the same connection, which has one container id.
    """

    address: str
    stream: str
    client_id: str | None = None

    @property
    def container(self) -> str:
        return self.client_id or self.address

    @property
    def link(self) -> str:
        return "owner" if self.client_id is None else self.address

    @property
    def blocks(self) -> str:
        """The queue of the subscription, by its fully qualified name."""
        return f"{self.address}::{self.container}.{self.link}"

    @property
    def tokens(self) -> str:
        return f"{self.address}.token"


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Outgoing:
    """Messages of a transaction to a queue beside the staging queue: dead letters."""

    queue: str
    messages: MessageBlock


class StagingQueue:
    """``lock()`` first. Every method raises the ``LinkError`` that ended the connection, once it has ended."""

    def __init__(self, settings: ConnectionSettings, names: Names, arrivals: Arrivals | None = None) -> None:
        self.names = names
        self.connection: Connection = connect(dataclasses.replace(settings, client_id=names.container), arrivals)
        self._move = Transacted(self.connection)
        """R5: what belongs together."""
        self._diverted = Transacted(self.connection)
        """Messages that are not staged. Their transaction ends while that of a move is open."""
        self._lock: Pull | None = None
        self._tokens: Pull | None = None
        self._taken_tokens = MessageBlock()
        self._finished = MessageBlock()
        self._known_tokens: int | None = None
        """The messages in the queue of the tokens, also those that are no tokens; None: not known."""
        self._strangers = 0
        """Those that are no tokens."""
        self._known_blocks: list[int] | None = None
        """The ends of the blocks that are there; None: not known, or there are blocks of another stream."""
        self._sent_blocks: list[int] = []
        """The ends of those that the open transaction has sent."""

    # --- R1: the lock --------------------------------------------------------------------------

    def lock(self) -> None:
        """``SubscriptionInUseError``: another connection has the lock, or the broker has not noticed its end.

        ``MaxConsumersError``: an administrator created the queue without a limit of one consumer.
        """
        self._lock = Pull(
            self.connection,
            Source(
                address=self._topic(),
                durable=_DURABLE,
                expiry_policy="never",
                outcomes=OUTCOMES,
                capabilities=("topic",),
            ),
            self.names.link,
            head_bytes=HEAD_BYTES,
        )
        require_one_consumer(self.connection, self.names.blocks)

    def _topic(self) -> str:
        return self.connection.dialect.send.address(DestinationKind.TOPIC, self.names.address)

    def check(self) -> None:
        self.connection.check()
        for pull in (self._lock, self._tokens):
            if pull is not None:
                self.connection.check_link(pull.receiver)

    # --- R3: the tokens ------------------------------------------------------------------------

    def is_token(self, text: str) -> bool:  # noqa: ARG002  # a subclass knows the form of its tokens
        """Return False for a message that something else sent: it stays in the queue."""
        return True

    def tokens(self) -> list[SeenToken]:
        """All tokens, by browsing."""
        seen = [seen_token(message) for message in browse(self.connection, self.names.tokens)]
        self._known_tokens = len(seen)
        found = [token for token in seen if self.is_token(token.text)]
        self._note_strangers(len(seen) - len(found))
        return found

    def _note_strangers(self, count: int) -> None:
        if count > self._strangers:
            _log.warning(
                "! %d messages in queue %s are not tokens of this connector: they stay", count, self.names.tokens
            )
        self._strangers = count

    def create_token(self, text: str) -> None:
        """In a confirmed send of its own."""
        self._move.send(self.names.tokens, "queue", block_of(token_message(text)))
        self._move.discharge()
        self._known_tokens = (self._known_tokens or 0) + 1

    def renew_token(self, text: str) -> None:
        self.take_tokens()
        self.commit(text)

    def take_tokens(self) -> list[str]:
        """Receive all tokens; they are accepted by the next commit. Messages that are no tokens are released."""
        if self._tokens is None:
            self._tokens = Pull(
                self.connection,
                Source(address=self.names.tokens, outcomes=OUTCOMES, capabilities=("queue",)),
            )
        pull = self._tokens
        known = self._known_tokens
        taken = pull.exactly(known, _TAKE_SECONDS) if known else pull.everything()
        texts = [seen_token(taken.message(index)).text for index in range(len(taken))]
        strangers = [each for each, text in zip(taken.ids, texts, strict=True) if not self.is_token(text)]
        pull.release([each for each in strangers if each is not None])
        self._note_strangers(len(strangers))
        self._taken_tokens = MessageBlock(ids=[each for each in taken.ids if each not in strangers])
        return list(filter(self.is_token, texts))

    def delete_tokens(self) -> None:
        """For the end of the stream. The broker deletes the empty queue."""
        self.take_tokens()
        self._move.accept(self._taken())
        self._move.discharge()

    # --- the blocks ----------------------------------------------------------------------------

    def blocks(self) -> list[SeenBlock]:
        """All blocks of the stream in order, by browsing."""
        every = list(map(seen_block, browse(self.connection, self.names.blocks)))
        seen = {block.first: block for block in every if block.stream == self.names.stream}
        found = [seen[first] for first in sorted(seen)]
        self._known_blocks = [block.end for block in found] if len(found) == len(every) else None
        return found

    def take_finished(self, below: int) -> int:
        """Receive the blocks that lie wholly below a number; they are deleted by the next commit. Returns how many."""
        pull, known = self._lock, self._known_blocks
        assert pull is not None
        if known is None:
            block = pull.everything()
        else:
            count = _count(known, below)
            block = pull.exactly(count, _TAKE_SECONDS) if count else MessageBlock()
        ends = [stated(block.message(index), self.names.stream)[1] for index in range(len(block))]
        kept = [each for each, end in zip(block.ids, ends, strict=True) if end > below and each is not None]
        pull.release(kept)
        self._known_blocks = [end for end in known if end > below] if known is not None else None
        if known is None and not kept:
            self._known_blocks = []
        self._finished = MessageBlock(ids=[each for each in block.ids if each not in set(kept)])
        return len(self._finished.ids)

    # --- R5: the one transaction ---------------------------------------------------------------

    def commit(self, token: str, accepted: Sequence[tuple[Receiver, list[bytes]]] = ()) -> None:
        """Send the token, after the blocks; accept what was taken; discharge.

        First what the broker may not take now, so that a failure can still give the messages of the sources back
        without a delivery count.
        """
        self._move.send(self.names.tokens, "queue", block_of(token_message(token)))
        self._move.accept([*self._taken(), *accepted])
        self._move.discharge()
        self._known_tokens = 1 + self._strangers
        if self._known_blocks is not None:
            self._known_blocks += self._sent_blocks
        self._sent_blocks = []
        self._taken_tokens, self._finished = MessageBlock(), MessageBlock()

    def send_blocks(self, blocks: Iterable[tuple[int, int, Packed]], *, finished: int = 0) -> None:
        """In the open transaction: first number, count, what ``pack`` made of the messages.

        Meanwhile the broker sends the blocks that ``take_finished`` of the number ``finished`` will receive, if they
        are known.
        """
        if self._known_blocks is not None and self._lock is not None:
            self._lock.ask(_count(self._known_blocks, finished))
        now = int(time.time() * 1000)
        for first, count, packed in blocks:
            message = block_message(packed, stream=self.names.stream, first=first, count=count, now_ms=now)
            self._move.send_pieces(self._topic(), "topic", message)
            self._sent_blocks.append(first + count)

    def _taken(self) -> list[tuple[Receiver, list[bytes]]]:
        return [
            (pull.receiver, [each for each in taken.ids if each is not None])
            for pull, taken in ((self._tokens, self._taken_tokens), (self._lock, self._finished))
            if pull is not None
        ]

    def divert(self, receiver: Receiver, ids: list[bytes], letters: Outgoing | None) -> None:
        """In a transaction of its own: accept messages that are not staged, and send dead letters for them."""
        if letters is not None:
            address = self.connection.dialect.send.target_address(DestinationKind.QUEUE, letters.queue)
            self._diverted.send(address, "queue", letters.messages)
        self._diverted.accept([(receiver, ids)])
        self._diverted.discharge()

    def attach_senders(self) -> None:
        """Raises what the broker has against a move, and sends nothing."""
        self._move.attach(self._topic(), "topic")
        self._move.attach(self.names.tokens, "queue")

    # --- the end -------------------------------------------------------------------------------

    def close(self, *, delete: bool = False) -> None:
        """Give back what was not accepted, then the lock. Never raises. ``delete``: with the lock, the blocks end."""
        try:
            self._move.roll_back()
            self._diverted.roll_back()
            if self._tokens is not None:
                self._tokens.detach()
            if self._lock is not None:
                self._lock.detach(closed=delete)
        except JMSError as error:
            _log.debug("= %s did not confirm a detach: %s", self.connection.address, error.fact)
        self.connection.close()

    def drop(self) -> None:
        """Close the connection without a word to the broker: it gives everything back."""
        self.connection.drop()


def _count(ends: Sequence[int], below: int) -> int:
    """Of the blocks that lie wholly below a number."""
    return sum(end <= below for end in ends)


def block_of(*messages: bytes) -> MessageBlock:
    return MessageBlock(b"".join(messages), ends=index_of(np.cumsum([len(message) for message in messages])))
