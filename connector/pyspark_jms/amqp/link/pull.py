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
from pyspark_jms.errors import JMSError, ReceiptTimeoutError

__all__ = ["AT_ONCE", "Pull", "ask_all", "browse", "drain", "look"]

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
    """Return when the broker has sent what there is, at most ``credit`` messages, and will send no more.

    Without ``credit`` it is the credit that the link has. ``until``: what ends the wait before.
    """
    drain_all(connection, [receiver], credit, until=until)
    connection.check_link(receiver)


def drain_all(
    connection: Connection, receivers: Sequence[Receiver], credit: int | None, *, until: Callable[[], bool]
) -> None:
    """Drain links together. A request that is under way is not repeated at once: its end would be taken for that of the
    second one.
    """
    for attempt in range(_MAX_DRAINS):
        with connection.core():
            for each in receivers:
                asked = each.credit if credit is None else credit
                if asked and each.is_draining == bool(attempt):
                    each.drain(asked)
        try:
            connection.await_(
                lambda: until() or not any(each.is_draining and each.is_attached for each in receivers),
                "an answer to a drain",
                _DRAIN_SECONDS,
            )
        except ReceiptTimeoutError:
            continue
        return
    raise ReceiptTimeoutError(
        f"{connection.address} did not answer a request for the messages of a queue.",
        "Is the queue paused? Look at the broker's log.",
    )


class Pull:
    """A link to a queue of the connector's own, whose messages may be larger than ``maxMessageBytes``."""

    def __init__(
        self,
        connection: Connection,
        source: Source | None,
        name: str | None = None,
        *,
        head_bytes: int | None = None,
        wait: bool = True,
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
        if wait:
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
        return self.taken()

    def available(self) -> MessageBlock:
        """Return what the queue has now, in one round trip, if that is little: Artemis may answer a drain after a
        thousand.

        It may have more, too, if the drain before was not answered.
        """
        drain(self._connection, self.receiver, _CREDIT)
        return self.taken()

    def everything(self) -> MessageBlock:
        """All messages of the queue. The end is proven by a drain without a message."""
        receiver, proven = self.receiver, self.receiver.proven_empty
        while receiver.proven_empty == proven:
            drain(self._connection, receiver, _CREDIT)
        return self.taken()

    def taken(self) -> MessageBlock:
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
    block = pull.taken()
    pull.detach(wait=False)
    return block


AT_ONCE = 100
"""Queues that are asked together: each has a link, and a session has 256."""


def ask_all(connection: Connection, sources: Sequence[Source]) -> tuple[list[int], dict[int, JMSError]]:
    """Return the positions of queues of which a browse shows a message, as far as they are known when the first one is,
    and those that the broker refuses. At most ``AT_ONCE`` sources; at most the first frame of a message is received.

    Each time by new links: a browse does not go back, and its next message may have been consumed (Artemis). The
    session takes one frame until the broker has confirmed the detach, and has forgotten the rest of the message. With a
    larger window before, Artemis sends another frame.
    """
    with connection.core() as session:
        session.narrow(1)
    try:
        pulls, refused = _attached(connection, sources)
        receivers = {at: pull.receiver for at, pull in pulls.items()}

        def found() -> list[int]:
            return [at for at, each in receivers.items() if each.received or each.transfers.is_inside_message]

        drain_all(connection, list(receivers.values()), 1, until=lambda: bool(found()))
        shown = found()
        for pull in pulls.values():
            pull.detach(wait=False)
        if shown:  # what others would send now must not come with the larger window
            connection.await_(lambda: not any(each.is_attached for each in receivers.values()), "a detach")
    finally:
        with connection.core() as session:
            session.narrow(None)
    return shown, refused


def _attached(connection: Connection, sources: Sequence[Source]) -> tuple[dict[int, Pull], dict[int, JMSError]]:
    pulls = {at: Pull(connection, source, head_bytes=1, wait=False) for at, source in enumerate(sources)}
    refused = {}
    for at, source in enumerate(sources):
        receiver = pulls[at].receiver
        try:
            connection.await_attached(receiver)
        except JMSError as error:
            if connection.is_down:
                raise
            refused[at] = error
            del pulls[at]
        else:
            require_echo(connection.address, source, receiver.remote_source)
    return pulls, refused


def browse(connection: Connection, address: str) -> Iterator[bytes]:
    """The messages of a queue, which stay there; no delivery count rises."""
    pull = Pull(connection, copy_of(address))
    seen = -1
    while pull.receiver.received > seen:  # after its end the next drain would begin the browse again (Artemis)
        seen = pull.receiver.received
        drain(connection, pull.receiver, _CREDIT)
    block = pull.taken()
    pull.detach()
    return (block.message(index) for index in range(len(block)))
