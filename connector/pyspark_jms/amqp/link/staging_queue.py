"""The staging queue of one stream: its lock, tokens and blocks, and the sources, all on one connection.

The *lock* is the one consumer of an unshared durable subscription to the staging address: a broker refuses the second
one. Its queue has the blocks. The tokens are in a queue of their own. When the connection ends, the lock,
the tokens and the messages of the sources are free together.
"""

import dataclasses
import logging
import time
import uuid
from collections.abc import Sequence

import numpy as np

from pyspark_jms.amqp.link.acknowledging import ranges_of
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.pull import Pull, browse
from pyspark_jms.amqp.link.sources import OUTCOMES
from pyspark_jms.amqp.link.staged_messages import (
    SeenBlock,
    SeenToken,
    block_message,
    seen_block,
    seen_token,
    stated,
    token_message,
)
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.definitions import Source, Target
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.blocks.block import MessageBlock, index_of
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
        self.transactions = Transactions(self.connection)
        self._senders: dict[str, Sender] = {}
        self._lock: Pull | None = None
        self._tokens: Pull | None = None
        self._taken_tokens = MessageBlock()
        self._finished = MessageBlock()
        self._known_tokens: int | None = None
        self._known_blocks: list[int] | None = None
        """The ends of the blocks that are there; None: not known."""

    # --- R1: the lock --------------------------------------------------------------------------

    def lock(self) -> None:
        """``SubscriptionInUseError``: another connection has the lock, or the broker has not noticed its end."""
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
        )

    def _topic(self) -> str:
        return self.connection.dialect.send.address(DestinationKind.TOPIC, self.names.address)

    def check(self) -> None:
        self.connection.check()
        for pull in (self._lock, self._tokens):
            if pull is not None:
                self.connection.check_link(pull.receiver)

    # --- R3: the tokens ------------------------------------------------------------------------

    def tokens(self) -> list[SeenToken]:
        """All tokens, by browsing."""
        found = [seen_token(message) for message in browse(self.connection, self.names.tokens)]
        self._known_tokens = len(found)
        return found

    def create_token(self, text: str) -> None:
        """In a confirmed send of its own."""
        self._send(self.names.tokens, "queue", block_of(token_message(text)))
        self.transactions.discharge()
        self._known_tokens = (self._known_tokens or 0) + 1

    def renew_token(self, text: str) -> None:
        self.take_tokens()
        self.commit(text, ())

    def take_tokens(self) -> list[str]:
        """Receive all tokens; they are accepted by the next commit."""
        if self._tokens is None:
            self._tokens = Pull(
                self.connection,
                Source(address=self.names.tokens, outcomes=OUTCOMES, capabilities=("queue",)),
            )
        pull = self._tokens
        known = self._known_tokens
        self._taken_tokens = pull.exactly(known, _TAKE_SECONDS) if known else pull.everything()
        return [seen_token(self._taken_tokens.message(index)).text for index in range(len(self._taken_tokens))]

    def delete_tokens(self) -> None:
        """For the end of the stream. The broker deletes the empty queue."""
        self.take_tokens()
        self._accept(self._taken())
        self.transactions.discharge()

    # --- the blocks ----------------------------------------------------------------------------

    def blocks(self) -> list[SeenBlock]:
        """All blocks of the stream in order, by browsing."""
        every = map(seen_block, browse(self.connection, self.names.blocks))
        seen = {block.first: block for block in every if block.stream == self.names.stream}
        found = [seen[first] for first in sorted(seen)]
        self._known_blocks = [block.end for block in found]
        return found

    def take_finished(self, below: int) -> int:
        """Receive the blocks that lie wholly below a number; they are deleted by the next commit. Returns how many."""
        pull, known = self._lock, self._known_blocks
        assert pull is not None
        if known is None:
            block = pull.everything()
        else:
            count = sum(end <= below for end in known)
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

    def commit(
        self,
        token: str,
        blocks: Sequence[tuple[int, int, bytes]],
        accepted: Sequence[tuple[Receiver, list[bytes]]] = (),
    ) -> None:
        """Send the blocks (first number, count, data) and the token; accept what was taken; discharge.

        First what the broker may not take now, so that a failure can still give the messages of the sources back
        without a delivery count.
        """
        if blocks:
            now = int(time.time() * 1000)
            messages = [
                block_message(data, stream=self.names.stream, first=first, count=count, now_ms=now)
                for first, count, data in blocks
            ]
            self._send(self._topic(), "topic", block_of(*messages))
        self._send(self.names.tokens, "queue", block_of(token_message(token)))
        self._accept([*self._taken(), *accepted])
        self.transactions.discharge()
        self._known_tokens = 1
        if self._known_blocks is not None:
            self._known_blocks += [first + count for first, count, _ in blocks]
        self._taken_tokens, self._finished = MessageBlock(), MessageBlock()

    def _taken(self) -> list[tuple[Receiver, list[bytes]]]:
        return [
            (pull.receiver, [each for each in taken.ids if each is not None])
            for pull, taken in ((self._tokens, self._taken_tokens), (self._lock, self._finished))
            if pull is not None
        ]

    def divert(self, receiver: Receiver, ids: list[bytes], letters: Outgoing | None) -> None:
        """In a transaction of its own: accept messages that are not staged, and send dead letters for them."""
        if letters is not None:
            address = self.connection.dialect.send.address(DestinationKind.QUEUE, letters.queue)
            self._send(address, "queue", letters.messages)
        self._accept([(receiver, ids)])
        self.transactions.discharge()

    def _accept(self, accepted: Sequence[tuple[Receiver, list[bytes]]]) -> None:
        txn_id = self.transactions.begin()
        with self.connection.core():
            self.transactions.require_open(txn_id)
            for receiver, ids in accepted:
                receiver.accept(ranges_of(ids), txn_id)

    def _send(self, address: str, capability: str, block: MessageBlock) -> None:
        """Presettled, in the open transaction: its discharge tells whether the broker took them."""
        sender, txn_id, following = self._sender(address, capability), self.transactions.begin(), 0
        while following < len(block):
            self.connection.await_(lambda: sender.sendable or not sender.is_attached, "credit for messages")
            self.connection.check_link(sender)
            with self.connection.core():
                self.transactions.require_open(txn_id)
                following = sender.send(block, following, len(block), txn_id=txn_id)

    def _sender(self, address: str, capability: str) -> Sender:
        """With the capability ``queue`` Artemis would lose what is sent to a topic, and the other way round."""
        sender = self._senders.get(address)
        if sender is None or not sender.is_attached:
            with self.connection.core() as session:
                sender = self._senders[address] = session.link(Sender, f"staging-{uuid.uuid4().hex}")
                sender.attach_to(Target(address=address, capabilities=(capability,)))
            self.connection.await_attached(sender)
        return sender

    # --- the end -------------------------------------------------------------------------------

    def close(self, *, delete: bool = False) -> None:
        """Give back what was not accepted, then the lock. Never raises. ``delete``: with the lock, the blocks end."""
        try:
            self.transactions.roll_back()
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


def block_of(*messages: bytes) -> MessageBlock:
    return MessageBlock(b"".join(messages), ends=index_of(np.cumsum([len(message) for message in messages])))
