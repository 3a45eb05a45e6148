"""Looks for a message that the broker cannot convert to STOMP, before a whole prefetch window meets it.

Artemis ends the connection at such a message, and each message that the connection has in delivery loses a delivery
attempt. The messages that lost one come marked as redelivered. So the redelivered messages at the head of a queue are
received one at a time: one connection receives a message and gives it back, another one holds it from then on, and the
next is received. A message that cannot be converted ends the first connection only. A durable subscription is a queue
that several connections may read, so the same is done there.
"""

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import JMSError, UnconvertibleMessageError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.jms.subscription import both_selectors
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import Connection, connect
from pyspark_jms.stomp.wire.frame import Frame, encode_frame, header_of, parse_frame

__all__ = ["probe_queue"]

_log = logging.getLogger("pyspark_jms.link")

MAX_PROBED = 100
"""The redelivered messages that are received one at a time, within two seconds. Behind them the window is opened."""

_QUIET_SECONDS = 0.5
"""A queue that sends no message for so long has none for this consumer."""

_FIRST_SECONDS = 0.25
"""The same at the start of a query. It is shorter, because each start with an empty queue waits for it."""

_ERROR_SECONDS = 0.003
"""The message behind one that cannot be converted arrives before the ERROR, which follows within so long."""

_ENCODED_ID = "ID:AMQP_"
_NO_PREFIX = "ID:AMQP_NO_PREFIX:"
"""The beginning of ids of AMQP producers as the broker converts them (AMQP-JMS binding §3.2.1.1)."""

_SECOND_TRIES = 3
"""The ERROR arrives before the messages are back in the queue, so the first tries may meet others."""


def probe_queue(connection: Connection, settings: ConnectionSettings, subscribe: Mapping[str, str]) -> None:
    """Look at the first message. If it was redelivered, pass the redelivered messages before the caller subscribes.

    ``subscribe``: the headers of SUBSCRIBE with the whole window. ``UnconvertibleMessageError`` if a message cannot be
    converted.
    """
    dialect = connection.dialect
    first = None
    try:
        connection.request("SUBSCRIBE", {**subscribe, dialect.window_header: "1"})
        first = _await_message(connection, _FIRST_SECONDS)
        connection.request("UNSUBSCRIBE", {"id": subscribe["id"]})
    except UnconvertibleMessageError:
        spend_attempt(settings, subscribe, dialect, first)
        raise
    late = _take_last(connection)  # the first message of a busy broker, which came before the receipt only
    first = first or late
    if first is None or not is_redelivered(first):
        return
    try:
        pass_redelivered(settings, subscribe, dialect)
    except UnconvertibleMessageError:
        raise
    except JMSError as error:  # the queue may admit one consumer only, as an unshared subscription of an AMQP client
        _log.warning(
            "! the redelivered messages of %s are not received one at a time first: %s",
            subscribe["destination"],
            error.fact,
        )


def _await_message(connection: Connection, seconds: float) -> MessageBlock | None:
    """The message, and None if none arrives. Returns when the ERROR is here that may follow it, or when it is due."""
    with connection.condition:
        connection.condition.wait_for(lambda: connection.is_down or connection.has_messages(), seconds)
        connection.condition.wait_for(lambda: connection.is_down, _ERROR_SECONDS)
    return _take_last(connection)


def _take_last(connection: Connection) -> MessageBlock | None:
    """Take what has arrived, and keep nothing: it is in the queue again at the end of the subscription."""
    for oversized in connection.prefetch.take_oversized():
        with oversized:
            pass
    blocks = connection.prefetch.take()
    return blocks[-1] if blocks else None


def is_redelivered(block: MessageBlock) -> bool:
    """Return whether the first message of the block is marked as redelivered."""
    return header_of(block, 0, b"redelivered") == b"true"


def pass_redelivered(settings: ConnectionSettings, subscribe: Mapping[str, str], dialect: Dialect) -> None:
    """Receive the redelivered messages at the head of the queue one at a time, and give all of them back.

    ``subscribe``: the headers of SUBSCRIBE with the whole window. ``UnconvertibleMessageError`` if one of the messages
    cannot be converted: it and its next neighbour have lost an attempt then.
    """
    with contextlib.ExitStack() as exits:
        scouts = [exits.enter_context(_OneMessageEach(settings, subscribe, dialect)) for _ in range(2)]
        keeper = exits.enter_context(_OneMessageEach(settings, subscribe, dialect))
        try:
            _pass(scouts, keeper, window_bytes=int(subscribe[dialect.window_header]))
        except UnconvertibleMessageError:
            ended = next(each for each in (*scouts, keeper) if each.has_ended)
            spend_attempt(settings, subscribe, dialect, ended.last)
            raise


def _pass(scouts: list["_OneMessageEach"], keeper: "_OneMessageEach", *, window_bytes: int) -> None:
    """Receive with one scout, then with the other, as many messages as the window can hold.

    The message behind one that cannot be converted arrives, too, and the ERROR may be late. The broker ends a consumer
    before it delivers to a later one. So a scout's message proves that the other scout's message is no such neighbour.
    """
    ahead, behind = scouts
    for _ in range(MAX_PROBED):
        ahead.receive()
        if behind.last is not None:
            behind.give_back()
            keeper.receive()
        window_bytes -= 0 if ahead.last is None else len(ahead.last.data)
        if ahead.last is None or window_bytes <= 0 or not is_redelivered(ahead.last):
            ahead.give_back()
            return
        ahead, behind = behind, ahead


def spend_attempt(
    settings: ConnectionSettings, subscribe: Mapping[str, str], dialect: Dialect, neighbour: MessageBlock | None
) -> None:
    """Let the message at the head lose one attempt more than its neighbour, which lost one together with it.

    The broker hands the consumer the next message before it ends the consumer. Two messages that lose each attempt
    together reach ``max-delivery-attempts`` together, so the second attempt is made with a selector that the neighbour
    does not match. Does nothing if no selector distinguishes the neighbour, and at a topic subscription, where the
    broker ignores selectors. Never raises.
    """
    others = None if neighbour is None else other_messages(neighbour, dialect)
    takes_selector = subscribe.items() >= dialect.subscribe_headers[DestinationKind.QUEUE].items()
    if others is None or not takes_selector:
        return
    selector = both_selectors(subscribe.get("selector"), others)
    with (
        contextlib.suppress(JMSError),
        _OneMessageEach(settings, {**subscribe, "selector": selector}, dialect) as second,
    ):
        for _ in range(_SECOND_TRIES):
            second.receive()


def other_messages(block: MessageBlock, dialect: Dialect) -> str | None:
    """A selector that the first message of the block does not match, and most other messages do."""
    frame = parse_frame(block.message(0))
    conditions = []
    for header, identifier in dialect.selector_identifiers.items():
        value = _stored(frame.header(header))
        if value is not None and value.isascii() and value.isdigit():
            conditions.append(f"{identifier} <> {value}")
        elif value is not None:
            text = value.replace("'", "''")
            conditions.append(f"{identifier} <> '{text}' OR {identifier} IS NULL")
    return " OR ".join(conditions) or None


def _stored(value: str | None) -> str | None:
    """The value that a selector compares. None for an id that is not a string: its form in a selector is not known."""
    if value is not None and value.startswith(_NO_PREFIX):
        return f"ID:{value.removeprefix(_NO_PREFIX)}"
    return None if value is None or value.startswith(_ENCODED_ID) else value


class _OneMessageEach:
    """A connection whose subscriptions get one message each."""

    def __init__(self, settings: ConnectionSettings, subscribe: Mapping[str, str], dialect: Dialect) -> None:
        self._subscribe = {**subscribe, dialect.window_header: "1"}
        # The caller's connection uses the client id. It is a part of the name of a durable subscription.
        is_durable = dialect.durable_subscriptions.name_header in subscribe
        self._connection: Connection = connect(settings if is_durable else replace(settings, client_id=None))
        self._subscriptions = 0
        self.last: MessageBlock | None = None
        """The last message; None if the queue had none, or before the first."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Give all messages back. Never raises."""
        if self._subscriptions:
            with contextlib.suppress(JMSError):
                self.give_back()
        self._connection.close()

    @property
    def has_ended(self) -> bool:
        return self._connection.is_down

    def receive(self) -> None:
        """Subscribe once more, and wait for the message of this subscription."""
        connection = self._connection
        self._subscriptions += 1
        connection.request("SUBSCRIBE", {**self._subscribe, "id": str(self._subscriptions)})
        self.last = _await_message(connection, _QUIET_SECONDS)
        connection.check_messages()

    def give_back(self) -> None:
        """Return all messages to the queue, which costs them no attempt. Raises the error that ended a subscription."""
        frames = [
            encode_frame(Frame("UNSUBSCRIBE", (("id", str(number)),))) for number in range(1, self._subscriptions)
        ]
        self._connection.send(b"".join(frames))
        self._connection.request("UNSUBSCRIBE", {"id": str(self._subscriptions)})
        self._subscriptions = 0
