"""A link on a stream of RabbitMQ: its messages from an offset on. A stream keeps what was read.

Each message has its offset in an annotation. Deliveries are settled as they are taken, because only the reader's
offset says what it has read.
"""

import re
from contextlib import closing
from dataclasses import replace
from datetime import datetime

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.consumer import check_receiver
from pyspark_jms.amqp.link.management import describe_queue
from pyspark_jms.amqp.link.prefetch import Prefetch
from pyspark_jms.amqp.link.subscriptions import source_of
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import MESSAGE_ANNOTATIONS, fingerprint
from pyspark_jms.amqp.wire.values import Described, Symbol, TypedValue, section_values
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import InvalidSelectorError, JMSError, UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import OnConnection, StateCondition, closed_on
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["LogReader", "digest_of"]

_OFFSET_SPEC, _OFFSET = Symbol("rabbitmq:stream-offset-spec"), "x-stream-offset"
_SQL_FILTER, _SQL = Symbol("sql-filter"), Symbol("amqp:sql-filter")


class LogReader(OnConnection[Dialect]):
    """One connection with one log."""

    def __init__(
        self,
        settings: ConnectionSettings,
        condition: StateCondition,
        subscription: Subscription,
        position: str | int | datetime,
        sql: str | None,
    ) -> None:
        """``position``: an offset, a time, ``first``, or ``last`` for the last chunk. ``sql``: what the broker filters
        by. After an error the connection is closed.
        """
        self._settings, self.destination = settings, subscription.destination
        self.connection: Connection = connect(settings, condition)
        with closed_on(JMSError, self.connection.close):
            self._prefetch = self._attached(subscription, position, sql)
        self._prefetch.begin()

    def _attached(self, subscription: Subscription, position: str | int | datetime, sql: str | None) -> Prefetch:
        connection = self.connection
        source = source_of(subscription, self.dialect)
        _require_stream(self._settings, self.dialect, source.address or "", subscription.destination)
        wanted: dict[str, Described] = {_OFFSET_SPEC: Described(_OFFSET_SPEC, _spelled(position))}
        if sql is not None:
            _require_sql(self.dialect, connection.server or "")
            wanted[_SQL_FILTER] = Described(_SQL, sql)
        named = f"reading-{subscription.destination.name}"
        receiver = connection.attached(Receiver, replace(source, filter=wanted), named)
        _require_filters(connection, receiver, wanted)
        return Prefetch(connection, receiver, subscription)

    def check(self) -> None:
        """Raise what ended the connection or the link, or the error of a message that is too large."""
        check_receiver(self.connection, self._prefetch.receiver, self._settings, self.destination)

    def take(self) -> list[tuple[MessageBlock, list[int]]]:
        """The messages received since the last call, with their offsets."""
        blocks = self._prefetch.take()
        with self.connection.core():
            for block in blocks:
                self._prefetch.receiver.accept(block.ids)
        return [(block, _offsets(block, self.destination)) for block in blocks]

    def released(self, messages: int) -> None:
        """These many messages are not in memory any more."""
        with self.connection.core():
            self._prefetch.released(messages)

    def probe(self) -> str:
        """Ask whether the stream has no more for now. ``has_receipt`` says when that is proven, or when a message has
        arrived.
        """
        self._prefetch.begin_probe()
        return ""

    def has_receipt(self, receipt: str, *, wait: bool = False) -> bool:
        del receipt
        if not wait and not self._prefetch.is_probed:
            return False
        self._prefetch.await_probe()
        return True

    def take_to_end(self, through: int | None = None) -> list[tuple[MessageBlock, list[int]]]:
        """Yield what there is, until the broker has proven that there is no more for now, or offset ``through`` was
        met.
        """
        taken: list[tuple[MessageBlock, list[int]]] = []
        while True:
            self.has_receipt(self.probe(), wait=True)
            self.check()
            if not (come := self.take()):
                return taken
            taken += come
            self.released(sum(len(block) for block, _ in come))
            if through is not None and taken[-1][1][-1] >= through:
                return taken

    def close(self) -> None:
        with closing(self.connection):
            self._prefetch.end()

    def drop(self) -> None:
        self._prefetch.end()
        self.connection.drop()


def _spelled(position: str | int | datetime) -> object:
    if isinstance(position, datetime):
        return TypedValue("timestamp", int(position.timestamp() * 1000))
    return TypedValue("ulong", position) if isinstance(position, int) else position


def _require_stream(settings: ConnectionSettings, dialect: Dialect, address: str, destination: Destination) -> None:
    dialect.require(Feature.STREAMS)
    facts = describe_queue(settings, address)
    if facts is not None and facts.kind != "stream":
        raise UnsupportedError(
            f"Option streamOffset is given, and {destination} is a {facts.kind} queue.", "Remove option streamOffset."
        )


def _require_sql(dialect: Dialect, server: str) -> None:
    """``server``: product and version of the broker's ``open``. Its answer to the attach is no proof (RabbitMQ 4.0)."""
    since, version = dialect.sql_filters_since, re.search(r"/(\d+)\.(\d+)", server)
    if since is None or version is None or (int(version[1]), int(version[2])) < since:
        raise UnsupportedError(
            f"Option streamFilter is given, and {server or dialect.name} does not filter its streams.",
            "RabbitMQ does since 4.2. Use selector with selectorInSpark=residual.",
        )


def _require_filters(connection: Connection, receiver: Receiver, wanted: dict[str, Described]) -> None:
    """RabbitMQ leaves out of its answer what it does not take over."""
    echoed = (receiver.remote_source.filter if receiver.remote_source is not None else None) or {}
    given = {each.descriptor for each in echoed.values() if isinstance(each, Described)} | set(echoed)
    if _SQL_FILTER in wanted and not given & {_SQL, _SQL_FILTER}:
        raise InvalidSelectorError(
            f"{connection.address} did not take over the SQL filter and would deliver every message.",
            "Check the SQL of option streamFilter.",
        )


def digest_of(block: MessageBlock, index: int) -> str:
    """A digest of what a broker may not change: properties and body (AMQP 1.0, 3.2)."""
    return fingerprint(block.message(index), annotated=False).hex()


def _offsets(block: MessageBlock, destination: Destination) -> list[int]:
    return [_offset(block.message(index), destination) for index in range(len(block))]


def _offset(message: bytes, destination: Destination) -> int:
    annotations = section_values(message, MESSAGE_ANNOTATIONS).get(MESSAGE_ANNOTATIONS)
    offset = annotations.get(_OFFSET) if isinstance(annotations, dict) else None
    if isinstance(offset, int):
        return offset
    raise UnsupportedError(
        f"Option streamOffset is given, and a message of {destination} has no offset: it is not a stream.",
        "Remove option streamOffset.",
    )
