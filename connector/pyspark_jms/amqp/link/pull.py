"""A receiving link without standing credit: the messages that are there when they are asked for, and no later ones."""

import dataclasses
import uuid
from collections.abc import Callable, Iterator, Sequence

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.subscriptions import copy_of, require_echo
from pyspark_jms.amqp.wire.receiver import Receiver, Transfers
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import ReceiptTimeoutError

__all__ = ["Pull", "browse", "drain", "has_message", "look"]

_CREDIT = 100_000
"""More messages than there are. A drain whose credit is used up exactly is not answered."""
_DRAIN_SECONDS = 2.0
"""A broker may skip a drain while the end of another one is being sent (Artemis): it is sent again."""
_MAX_DRAINS = 15
_ANY_SIZE = 1 << 31
"""More than any Java client sends, and what a message of the connector's own may take of the memory."""


def drain(
    connection: Connection,
    receiver: Receiver,
    credit: int | None = None,
    *,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Returns when the broker has sent what there is, at most ``credit`` messages, and will send no more.

    Without ``credit`` it is the credit that the link has. ``until``: what ends the wait before. A request that is under
    way is not repeated at once: its end would be taken for that of the second one.
    """
    for attempt in range(_MAX_DRAINS):
        with connection.core():
            asked = receiver.credit if credit is None else credit
            if asked and (attempt or not receiver.is_draining):
                receiver.drain(asked)
        try:
            connection.await_(
                lambda: until() or not receiver.is_draining or not receiver.is_attached,
                "an answer to a drain",
                _DRAIN_SECONDS,
            )
        except ReceiptTimeoutError:
            continue
        connection.check_link(receiver)
        return
    raise ReceiptTimeoutError(
        f"{connection.address} did not answer a request for the messages of a queue.",
        "Is the queue paused? Look at the broker's log.",
    )


class Pull:
    """A link to a queue of the connector's own, whose messages may be larger than ``maxMessageBytes``."""

    def __init__(
        self, connection: Connection, source: Source | None, name: str | None = None, *, head_bytes: int | None = None
    ) -> None:
        """Attach, or raise the error of the refusal. The link is the only one of its ``name`` on the connection.

        If ``source`` is None, it is that of the durable subscription of this name (§2.6.3). Only ``head_bytes`` of each
        message is kept.
        """
        self._connection = connection
        with connection.core() as session:
            self.receiver = session.link(Receiver, name or f"pull-{uuid.uuid4().hex}")
            limits = dataclasses.replace(session.limits, max_message_bytes=_ANY_SIZE, max_delivery_bytes=_ANY_SIZE)
            self.receiver.transfers = Transfers(limits, head_bytes)
            self.receiver.attach_to(source)
        connection.await_attached(self.receiver)

    def exactly(self, count: int, seconds: float) -> MessageBlock:
        """The next ``count`` messages, or those that came before the time was over. At most one round trip."""
        receiver = self.receiver
        with self._connection.core():
            if (missing := count - len(receiver.transfers)) > receiver.credit:
                receiver.grant(missing)
        try:
            self._connection.await_(
                lambda: len(receiver.transfers) >= count or not receiver.is_attached, "messages", seconds
            )
        except ReceiptTimeoutError:
            drain(self._connection, receiver)
        self._connection.check_link(receiver)
        return self._taken()

    def available(self) -> MessageBlock:
        """Return what the queue has now, in one round trip, if that is little: Artemis may answer a drain after a
        thousand.

        It may have more, too, if the drain before was not answered.
        """
        drain(self._connection, self.receiver, _CREDIT)
        return self._taken()

    def everything(self) -> MessageBlock:
        """All messages of the queue. The end is proven by a drain without a message."""
        receiver, proven = self.receiver, self.receiver.proven_empty
        while receiver.proven_empty == proven:
            drain(self._connection, receiver, _CREDIT)
        return self._taken()

    def _taken(self) -> MessageBlock:
        with self._connection.condition:
            return self.receiver.transfers.take()

    def release(self, ids: Sequence[bytes | None]) -> None:
        """Give messages back; their delivery counts stay."""
        with self._connection.core():
            self.receiver.release(ids)

    def detach(self, *, closed: bool = True, wait: bool = True) -> None:
        """Give back what was not accepted. ``closed`` False: a durable subscription stays."""
        receiver = self.receiver
        if receiver.state is EndpointState.ENDED:
            return
        with self._connection.core():
            receiver.detach(closed=closed)
        if wait:
            self._connection.await_(lambda: not receiver.is_attached, "its detach")


def look(connection: Connection, source: Source, most: int) -> MessageBlock:
    """The first messages that a browse shows, at most ``most``: by a new link, and one request.

    A new link has no earlier drain whose late end could answer this one.
    """
    pull = Pull(connection, source)
    require_echo(connection.address, source, pull.receiver.remote_source)
    drain(connection, pull.receiver, most)
    with connection.condition:
        block = pull.receiver.transfers.take()
    pull.detach(wait=False)
    return block


def has_message(connection: Connection, source: Source) -> bool:
    """Return whether a browse shows a message, of which at most the first frame is received.

    The session takes one frame until the broker has confirmed the detach, and has forgotten the rest of the message.
    With a larger window before, Artemis sends another frame.
    """
    with connection.core() as session:
        session.narrow(1)
    try:
        pull = Pull(connection, source, head_bytes=1)
        receiver = pull.receiver
        require_echo(connection.address, source, receiver.remote_source)
        drain(connection, receiver, 1, until=lambda: receiver.transfers.is_inside_message)
        is_long = receiver.transfers.is_inside_message
        pull.detach(wait=is_long)
    finally:
        with connection.core() as session:
            session.narrow(None)
    return is_long or receiver.received > 0


def browse(connection: Connection, address: str) -> Iterator[bytes]:
    """The messages of a queue, which stay there; no delivery count rises."""
    pull = Pull(connection, copy_of(address))
    seen = -1
    while pull.receiver.received > seen:  # after its end the next drain would begin the browse again (Artemis)
        seen = pull.receiver.received
        drain(connection, pull.receiver, _CREDIT)
    with connection.condition:
        block = pull.receiver.transfers.take()
    pull.detach()
    return (block.message(index) for index in range(len(block)))
