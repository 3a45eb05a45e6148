"""The register of one reader: the lock, the tokens, the blocks of its value, and the sources, all on one connection.

The *lock* is the one consumer of an unshared durable subscription to the register's address: a broker refuses the
second one. The queue of the subscription has the *value*: blocks, then a token. When the connection ends, the lock, the
value and the messages of the sources are free together.

The methods are the commands of ``delivery.register.steps``. Which one follows which is decided there.
"""

import dataclasses
import logging
import time
from collections.abc import Iterable, Sequence

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.kept import connected, keep
from pyspark_jms.amqp.link.locks import require_one_consumer
from pyspark_jms.amqp.link.pull import Pull, browse, drain, look
from pyspark_jms.amqp.link.sources import OUTCOMES, filter_of
from pyspark_jms.amqp.link.staged_messages import (
    HEAD_BYTES,
    SeenBlock,
    block_message,
    seen_block,
    seen_token,
    stream_of,
    token_message,
)
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.blocks.block import MessageBlock, block_of
from pyspark_jms.blocks.staged import Packed
from pyspark_jms.delivery.register.token import Sighting, Token
from pyspark_jms.errors import DataLossError, JMSError, JMSSecurityError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.network.arrivals import Arrivals
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["ReadRegister", "RegisterName", "driver_container", "tokens_of"]

_log = logging.getLogger("pyspark_jms.link")

_DURABLE = 2
_TAKE_SECONDS = 5.0
"""A message of the register that no other connection holds arrives at once."""
_MOST_TOKENS = 1_000
"""More than there ever are. A drain whose credit is used up exactly is not answered."""
_KIND, _TOKEN = "kind", "token"
_TOKENS = f"{_KIND} = '{_TOKEN}'"


@dataclasses.dataclass(frozen=True, slots=True)
class RegisterName:
    """``base``: the address of all registers of a stream.

    ``client_id``: of a durable subscription that is read on the same connection, which has one container id.
    """

    base: str
    reader: int
    client_id: str | None = None

    @classmethod
    def of(cls, address: str, client_id: str | None = None) -> "RegisterName | None":
        """The name of the register at this address, ``BASE.N``. None: no register has such an address."""
        base, _, reader = address.rpartition(".")
        return cls(base, int(reader), client_id) if base and reader.isdecimal() else None

    @property
    def address(self) -> str:
        return f"{self.base}.{self.reader}"

    @property
    def container(self) -> str:
        return self.client_id or self.base

    @property
    def link(self) -> str:
        return str(self.reader) if self.client_id is None else self.address

    @property
    def queue(self) -> str:
        """The queue of the subscription, by its fully qualified name."""
        return f"{self.address}::{self.container}.{self.link}"


def driver_container(base: str) -> str:
    """The container id of the driver's connection, by which an operator finds out whether a query runs."""
    return f"{base}.driver"


class ReadRegister:
    """Every method raises the ``LinkError`` that ended the connection, once it has ended."""

    def __init__(self, settings: ConnectionSettings, name: RegisterName, arrivals: Arrivals | None = None) -> None:
        self.name = name
        self._kept_as = dataclasses.replace(settings, client_id=name.container)
        self.connection, self._transaction = connected(self._kept_as, arrivals)
        self._address = self.connection.dialect.send.address(DestinationKind.TOPIC, name.address)
        self._lock: Pull | None = None
        self._taken: list[bytes] = []
        """Delivery-ids of the value that was received and not accepted."""
        self._blocks: set[tuple[str, int]] = set()
        """The streams and batches of its blocks."""

    # --- the lock ------------------------------------------------------------------------------

    def lock(self) -> None:
        """``SubscriptionInUseError``: another connection has the lock, or the broker has not noticed its end."""
        source = Source(
            address=self._address,
            durable=_DURABLE,
            expiry_policy="never",
            outcomes=OUTCOMES,
            capabilities=(str(DestinationKind.TOPIC),),
        )
        try:
            self._lock = Pull(self.connection, source, self.name.link, head_bytes=HEAD_BYTES)
        except JMSSecurityError as error:
            address, _, queue = self.name.queue.partition("::")
            raise JMSSecurityError(
                error.fact,
                f"Grant createAddress, createDurableQueue, consume, browse and send on {address}. Or an administrator"
                f" creates the address {address} with the multicast queue {queue}, max-consumers 1, and grants consume,"
                " browse and send there.",
            ) from None

    def require_lock(self) -> None:
        """``MaxConsumersError``: an administrator created the queue without a limit of one consumer."""
        require_one_consumer(self.connection, self.name.queue)

    def prove(self) -> None:
        """Return when the broker has answered on the link that is the lock."""
        pull = self._held()
        drain(self.connection, pull.receiver, 1)
        self._give_back(pull.exactly(0, 0))

    def _held(self) -> Pull:
        assert self._lock is not None, "the lock was not taken"
        self.connection.check()
        self.connection.check_link(self._lock.receiver)
        return self._lock

    # --- looking: no delivery count rises ------------------------------------------------------

    def peek(self) -> tuple[Sighting[Token], ...]:
        return tokens_of(self.connection, self.name)

    def browse(self, stream: str, batch: int) -> list[SeenBlock]:
        """The blocks of a batch, in their order."""
        wanted = _value_of(stream, batch)
        every = browse(self.connection, self.name.queue)
        found = (seen_block(message) for message in every if stream_of(message) == wanted)
        return sorted(found, key=lambda block: block.first)

    # --- one transaction -----------------------------------------------------------------------

    def open(self) -> None:
        """Return when a transaction has begun, and the broker takes messages."""
        self._transaction.open(self._address, str(DestinationKind.TOPIC))

    def take(self, expected: int) -> tuple[tuple[Token, ...], tuple[tuple[str, int], ...]]:
        """Receive the value: its tokens, and the streams and batches of its blocks.

        Only as many messages as are expected are asked for: that is one round trip. If others come, all are asked for.
        """
        pull = self._held()
        taken = pull.exactly(expected, _TAKE_SECONDS)
        texts = _texts(taken)
        if len(taken) < expected or not texts:
            more = pull.everything()
            self._hold(taken)
            texts, taken = [*texts, *_texts(more)], more
        self._hold(taken)
        return tuple(_parsed(self.name, text) for text in texts), tuple(sorted(self._blocks))

    def _hold(self, taken: MessageBlock) -> None:
        self._taken += [each for each in taken.ids if each is not None]
        values = {stream_of(taken.message(index)) for index in range(len(taken))} - {None}
        self._blocks |= {_batch_of(value) for value in values if value is not None}

    def _give_back(self, taken: MessageBlock) -> None:
        if ids := [each for each in taken.ids if each is not None]:
            self._held().release(ids)

    def accept(self) -> None:
        """In the open transaction, what was taken. Return when the broker has confirmed that."""
        self._transaction.accept_confirmed(self._held().receiver, self._taken)
        self._taken, self._blocks = [], set()

    def send_value(self, stream: str, batch: int, blocks: Iterable[tuple[int, int, Packed]]) -> int:
        """In the open transaction: first number, count, what ``pack`` made of the messages. Returns how many."""
        now, sent = int(time.time() * 1000), 0
        for first, count, packed in blocks:
            message = block_message(packed, stream=_value_of(stream, batch), first=first, count=count, now_ms=now)
            self._transaction.send_pieces(self._address, str(DestinationKind.TOPIC), message)
            sent += 1
        return sent

    def replace(self, token: Token, accepted: Sequence[tuple[Receiver, Sequence[bytes]]] = ()) -> None:
        """Send the token, after the blocks; accept the messages of the sources; discharge. Return when confirmed."""
        self._send(token)
        if accepted:
            self._transaction.accept(accepted)
        self._transaction.discharge()

    def create(self, token: Token) -> None:
        """In a transaction of its own."""
        self._send(token)
        self._transaction.discharge()

    def _send(self, token: Token) -> None:
        message = token_message(token.text(), {_KIND: _TOKEN})
        self._transaction.send(self._address, str(DestinationKind.TOPIC), block_of(message))

    # --- the end -------------------------------------------------------------------------------

    def delete(self) -> None:
        """The queue ends, with all its messages."""
        self._held()
        assert self._lock is not None
        self._lock.detach(closed=True)

    def close(self) -> None:
        """Give back what was not accepted, then the lock. Never raises."""
        try:
            self._transaction.roll_back()
            if self._lock is not None:
                self._lock.detach(closed=False)
        except JMSError as error:
            _log.debug("= %s did not confirm a detach: %s", self.connection.address, error.fact)
        self.connection.close()

    def finish(self, sources: Sequence[tuple[Receiver, bool]] = ()) -> None:
        """As ``close``, when every message is accepted or given back: the connection is kept. Never raises.

        ``sources``: their links, and whether the broker shall forget them.
        """
        links = [*sources, *([] if self._lock is None else [(self._lock.receiver, False)])]
        try:
            with self.connection.core():
                for receiver, closed in links:
                    receiver.detach(closed=closed)
            self.connection.await_(lambda: not any(each.is_attached for each, _ in links), "its detach")
        except JMSError:
            self.connection.drop()
            return
        keep(self._kept_as, self.connection, self._transaction)

    def drop(self) -> None:
        """Close the connection without a word to the broker: it gives everything back."""
        self.connection.drop()


def tokens_of(connection: Connection, name: RegisterName) -> tuple[Sighting[Token], ...]:
    """All tokens of a register, on any connection. ``DataLossError``: one is no token of this connector."""
    source = Source(
        address=name.queue,
        distribution_mode="copy",
        filter=filter_of(_TOKENS),
        outcomes=OUTCOMES,
        capabilities=("queue",),
    )
    block = look(connection, source, _MOST_TOKENS)
    seen = (seen_token(block.message(index)) for index in range(len(block)))
    return tuple(Sighting(_parsed(name, each.text), each.deliveries) for each in seen)


def _parsed(name: RegisterName, text: str) -> Token:
    try:
        return Token.parse(text)
    except ValueError:
        raise DataLossError(
            f"The queue {name.address} has a message that is not a token of this connector.",
            "Something else sends to this queue. Look at it with pyspark-jms staging show.",
        ) from None


def _texts(taken: MessageBlock) -> list[str]:
    messages = (taken.message(index) for index in range(len(taken)))
    return [seen_token(message).text for message in messages if stream_of(message) is None]


def _value_of(stream: str, batch: int) -> str:
    """What a block states as its stream."""
    return f"{stream}/{batch}"


def _batch_of(value: str) -> tuple[str, int]:
    stream, _, batch = value.rpartition("/")
    return (stream, int(batch)) if batch.isdecimal() else (value, 0)
