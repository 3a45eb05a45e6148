"""A receiving link: credit out, messages in, settled acceptances out (AMQP 1.0 §2.6.7, §2.6.12)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyspark_jms.amqp.wire.link import Channel, Link
from pyspark_jms.amqp.wire.transfers import Transfers
from pyspark_jms.amqp.wire.types import (
    Accepted,
    Attach,
    Disposition,
    Flow,
    Released,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from pyspark_jms.amqp.wire.values import malformed
from pyspark_jms.errors import PrefetchExceededError

__all__ = ["Receiver", "ranges_of"]

_UNSETTLED, _FIRST = 0, 0
_SEQUENCE, _HALF = 1 << 32, 1 << 31  # RFC 1982 serial numbers


class Receiver(Link):
    is_receiver = True

    def __init__(self, channel: Channel, name: str, handle: int) -> None:
        super().__init__(channel, name, handle)
        self.transfers = Transfers(channel.limits)
        self.is_selective = False
        """Whether the attach has a selector."""
        self.credit = 0
        """Granted last, and not used up by messages."""
        self._allowed = 0
        """How many messages the peer may still send. It is above ``credit`` after a lower credit was granted, because
        the peer may have sent more before it got to know, and after an answer to an earlier drain."""
        self._most = 0
        """The highest credit that was granted."""
        self._tolerated = 0
        """How many messages beyond the credit do not end the connection. Artemis (2.55) sent hundreds after a credit
        that was lower than what it had used, perhaps because proton-j computes what is left as an unsigned number."""
        self.received = 0
        """Deliveries so far."""
        self.unanswered: set[int] = set()
        """Deliveries that were accepted unsettled, and whose acceptance the peer has not confirmed."""
        self._draining_since: int | None = None
        self._drain_was_answered = True
        self.proven_empty = 0
        """Answered drains that prove an empty queue: no message came, and the drain before was answered too. A drain
        whose credit the messages use up exactly has no answer, and its late end may answer the next one (Artemis)."""

    def attach_to(
        self, source: Source | None, *, properties: Any = None, desired: tuple[str, ...] | None = None
    ) -> None:
        self.is_selective = source is not None and bool(source.filter)
        self.attach(
            snd_settle_mode=_UNSETTLED,
            rcv_settle_mode=_FIRST,
            source=source,
            target=Target(address=self.name),
            properties=properties,
            desired_capabilities=desired,
        )

    def on_attach(self, attach: Attach) -> None:
        super().on_attach(attach)
        self.delivery_count = attach.initial_delivery_count or 0

    @property
    def remote_source(self) -> Source | None:
        source = None if self.remote is None else self.remote.source
        return source if isinstance(source, Source) else None

    # --- credit --------------------------------------------------------------------------------

    def grant(self, credit: int) -> None:
        """From now on the peer may send this many messages."""
        self._allow(credit)
        self._flow(drain=False)

    def drain(self, credit: int) -> None:
        """The peer sends what it has, at most ``credit`` messages, and then reports the rest of the credit as used."""
        if self._draining_since is not None:
            self._drain_was_answered = False
        self._draining_since = self.received
        self._allow(credit)
        self._flow(drain=True)

    def _allow(self, credit: int) -> None:
        if credit < self.credit:
            self._tolerated = self._most
        self.credit = credit
        self._allowed, self._most = max(self._allowed, credit), max(self._most, credit)

    def _flow(self, *, drain: bool) -> None:
        count = self.delivery_count % _SEQUENCE
        self.channel.flow(handle=self.handle, delivery_count=count, link_credit=self.credit, drain=drain)

    def on_flow(self, flow: Flow) -> None:
        if not flow.drain or flow.link_credit or self._draining_since is None:
            return
        if flow.delivery_count is not None:
            self._give_up((flow.delivery_count - self.delivery_count) % _SEQUENCE)
            self.delivery_count = flow.delivery_count
        self.credit = self._tolerated = 0
        if self._drain_was_answered and self.received == self._draining_since:
            self.proven_empty += 1
        self._draining_since, self._drain_was_answered = None, True

    def _give_up(self, credit: int) -> None:
        """The peer has advanced its delivery count by this much credit, for which it sent no message (§2.6.7).

        An answer to an earlier drain gives up less than the last one asked for: the peer may still use the rest.
        """
        if credit < _HALF:  # else the count went back, which allows nothing
            begun = self.transfers.is_inside_message  # its credit is taken off already
            self._allowed = max(0, self._allowed - credit + begun) if credit < self.credit else 0

    @property
    def is_draining(self) -> bool:
        return self._draining_since is not None

    # --- messages ------------------------------------------------------------------------------

    def take_plain(self, buffer: bytes | bytearray | memoryview, position: int, handle: int = 0) -> tuple[int, int]:
        """As ``Transfers.take_plain``."""
        position, messages = self.transfers.take_plain(buffer, position, handle)
        self._use(messages)
        self._count(messages)
        return position, messages

    def on_transfer(self, transfer: Transfer, payload: bytes | memoryview) -> None:
        if transfer.delivery_id is None and not self.transfers.is_inside_message:
            raise malformed("a first transfer of a message without a delivery-id")
        if not self.transfers.is_inside_message:
            self._use(1)  # before its bytes are kept, of which there may be many
        more, aborted = bool(transfer.more), bool(transfer.aborted)
        self._count(int(self.transfers.add(transfer.delivery_id, payload, more=more, aborted=aborted)))

    def _use(self, messages: int) -> None:
        beyond = max(0, messages - self._allowed)
        if beyond > self._tolerated:
            raise _beyond_credit(self.name)
        self._allowed -= messages - beyond
        self._tolerated -= beyond

    def _count(self, messages: int) -> None:
        self.received += messages
        self.delivery_count += messages
        self.credit = max(0, self.credit - messages)
        if messages and not self.credit and self._draining_since is not None:
            # The credit of the drain is used up exactly: no answer will come.
            self._draining_since, self._drain_was_answered = None, False

    # --- settlement ----------------------------------------------------------------------------

    def accept(self, ids: Sequence[bytes | None], txn_id: bytes | None = None, *, settled: bool = True) -> None:
        """Settle deliveries as accepted, inside a transaction if there is one.

        Outside of a transaction nothing confirms it. Inside, ``accepted`` is the only outcome that brokers carry out.
        Not ``settled``: the peer answers, and until then ``unanswered`` has the deliveries (§4.4.2). It ignores the
        acceptance of a delivery that it has taken back.
        """
        state: Any = Accepted() if txn_id is None else TransactionalState(txn_id=txn_id, outcome=Accepted())
        for first, last in ranges_of(ids):
            self.channel.send(Disposition(role=True, first=first, last=last, settled=settled, state=state))
            if not settled:
                self.unanswered.update(range(first, last + 1))

    def on_disposition(self, disposition: Disposition, first: int, last: int) -> None:
        """The peer's answer to what was accepted unsettled."""
        state = disposition.state
        if isinstance(state, TransactionalState) and isinstance(state.outcome, Accepted):
            self.unanswered.difference_update(range(first, last + 1))

    def release(self, ids: Sequence[bytes | None]) -> None:
        """Give deliveries back; their delivery counts stay."""
        for first, last in ranges_of(ids):
            self.channel.send(Disposition(role=True, first=first, last=last, settled=True, state=Released()))


def ranges_of(ids: Sequence[bytes | None]) -> list[tuple[int, int]]:
    """Delivery-ids of four bytes → ranges of consecutive ones, both ends included."""
    numbers = np.frombuffer(b"".join(filter(None, ids)), ">u4").astype(np.int64)
    if not len(numbers):
        return []
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    firsts, lasts = numbers[np.concatenate([[0], cuts])], numbers[np.concatenate([cuts, [len(numbers)]]) - 1]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _beyond_credit(link: str) -> PrefetchExceededError:
    return PrefetchExceededError(
        f"The broker sent a message on link {link!r} beyond the credit that it was granted (amqp:link:transfer-limit-"
        "exceeded), against AMQP 1.0.",
        "The connector ended the connection, because its memory would have no limit. If brokerUrl leads to a broker of"
        " docs/brokers.md, report this with its version. Otherwise look at what is between the broker and Spark.",
    )
