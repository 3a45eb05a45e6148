"""The register of one reader: its value is blocks of messages, then a token. The sources are on the same connection.

When the connection ends, the lock, the value and the messages of the sources are free together.
"""

import dataclasses
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.pull import browse
from pyspark_jms.amqp.link.register import TOPIC, Place, Register, find_queue
from pyspark_jms.amqp.link.staged_messages import block_message, seen_block, stream_of
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.blocks.block import StagedRange
from pyspark_jms.blocks.staged import Packed
from pyspark_jms.delivery.register.token import Token
from pyspark_jms.errors import JMSError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["DEFAULT_PREFIX", "ReadRegister", "RegisterName", "driver_container", "queue_at"]

_log = logging.getLogger("pyspark_jms.link")

DEFAULT_PREFIX = "pyspark-jms.staging."
"""Of the addresses of registers, unless option ``stagingQueue`` names others."""

_ADDRESS = re.compile(r"(?P<base>.+)\.(?P<reader>0|[1-9][0-9]{0,5})", re.DOTALL)
"""As :attr:`RegisterName.address` writes it: the number is ASCII and has no leading zeros."""


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
        """Return the name of the register at this address, ``BASE.N``, or None if no register has such an address."""
        found = _ADDRESS.fullmatch(address)
        return cls(found["base"], int(found["reader"]), client_id) if found else None

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
    def place(self) -> Place:
        return Place(self.address, self.container, self.link, has_blocks=True)

    @property
    def queue(self) -> str:
        """Return the usual name of its queue."""
        return self.place.queue


def driver_container(base: str) -> str:
    """The container id of the driver's connection, by which an operator finds out whether a query runs."""
    return f"{base}.driver"


class ReadRegister(Register[Token]):
    def __init__(
        self, settings: ConnectionSettings, name: RegisterName, condition: StateCondition | None = None
    ) -> None:
        self.name = name
        self._kept_as = dataclasses.replace(settings, client_id=name.container)
        connection, transactions = connected(self._kept_as, condition)
        super().__init__(connection, name.place, transactions, Token)

    @property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        """The streams and batches of the blocks that were taken."""
        return tuple(sorted(map(_batch_of, self.streams)))

    def browse(self, stream: str, batch: int) -> list[StagedRange]:
        """The blocks of a batch, in their order."""
        wanted = _value_of(stream, batch)
        every = browse(self.connection, self.queue)
        found = (seen_block(message) for message in every if stream_of(message) == wanted)
        return sorted(found, key=lambda block: block.first)

    def send_value(self, stream: str, batch: int, blocks: Iterable[tuple[int, int, Packed]]) -> int:
        """Send, in the open transaction, number, count and what ``pack`` made of the messages. Return how many."""
        now, sent = int(time.time() * 1000), 0
        for first, count, packed in blocks:
            message = block_message(packed, stream=_value_of(stream, batch), first=first, count=count, now_ms=now)
            self.transactions.send_pieces(self._topic, TOPIC, message)
            sent += 1
        return sent

    def replace(
        self,
        token: Token,
        accepted: Sequence[tuple[Receiver, Sequence[bytes]]] = (),
        meanwhile: Callable[[], object] | None = None,
    ) -> None:
        """Send the token, after the blocks; accept the messages of the sources; discharge. Return when confirmed.

        ``meanwhile``: as for ``Transactions.discharge``.
        """
        self.send(token)
        if accepted:
            self.transactions.accept(accepted, answered=True)
        self.transactions.discharge(meanwhile)

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Give back what was not accepted, then the lock. Never raises."""
        try:
            self.transactions.roll_back()
            self.release()
        except JMSError as error:
            _log.debug("= %s did not confirm a detach: %s", self.connection.address, error.fact)
        self.connection.close()

    def finish(self, sources: Sequence[tuple[Receiver, bool]] = ()) -> None:
        """Close what ``close`` closes, but keep the connection, because every message is accepted or given back. Never
        raises.

        ``sources`` are their links, and whether the broker shall forget them.
        """
        links = [*sources, *([] if self.receiver is None else [(self.receiver, False)])]
        try:
            with self.connection.core():
                for receiver, closed in links:
                    receiver.detach(closed=closed)
            self.connection.await_(lambda: not any(each.is_attached for each, _ in links), "its detach")
        except JMSError:
            self.connection.drop()
            return
        keep(self._kept_as, self.connection, self.transactions)


def queue_at(settings: ConnectionSettings, name: RegisterName) -> str | None:
    """Return the fully qualified name of a register's queue, or None if there is none."""
    with closing(connect(dataclasses.replace(settings, client_id=name.container))) as connection:
        return find_queue(connection, name.place)


def _value_of(stream: str, batch: int) -> str:
    """Return what a block states as its stream."""
    return f"{stream}/{batch}"


def _batch_of(value: str) -> tuple[str, int]:
    stream, _, batch = value.rpartition("/")
    return (stream, int(batch)) if batch.isdecimal() else (value, 0)


# --- connections that a worker keeps between its tasks -----------------------------------------------

_MOST = 4
"""Of a process. The one that was used longest ago is closed."""

_kept: OrderedDict[ConnectionSettings, tuple[Connection, Transactions]] = OrderedDict()


def connected(settings: ConnectionSettings, condition: StateCondition | None = None) -> tuple[Connection, Transactions]:
    """A connection that was kept, if it has not ended, or a new one. It belongs to the caller until ``keep``."""
    kept = _kept.pop(settings, None)
    if kept is not None:
        try:
            kept[0].check()
        except JMSError:
            kept[0].drop()
        else:
            return kept
    connection = connect(settings, condition)
    return connection, Transactions(connection)


def keep(settings: ConnectionSettings, connection: Connection, transactions: Transactions) -> None:
    """Keep the connection without a link that receives, and without an open transaction."""
    other = _kept.pop(settings, None)
    _kept[settings] = connection, transactions
    if other is not None:
        other[0].close()
    while len(_kept) > _MOST:
        _, (oldest, _) = _kept.popitem(last=False)
        oldest.close()
