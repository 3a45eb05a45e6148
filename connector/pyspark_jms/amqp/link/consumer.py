"""One subscription on its own connection: messages in, acknowledgements out. Does not track what is acknowledged."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import FIRST_WINDOW_FRAMES, connect
from pyspark_jms.amqp.link.subscriptions import capabilities_of, require_unchanged, subscription_name
from pyspark_jms.amqp.wire.credit import CreditWindow
from pyspark_jms.amqp.wire.limits import MAX_FRAME_BYTES
from pyspark_jms.amqp.wire.performatives import Source
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.transactions import Answer, Coordinator
from pyspark_jms.amqp.wire.values import Described, Symbol
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import (
    ConnectionLostError,
    InvalidSelectorError,
    JMSError,
    MessageTooLargeError,
    UnsupportedError,
)
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.arrivals import Arrivals
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["Consumer"]

_log = logging.getLogger("pyspark_jms.link")

_BLOCK_BYTES = 15 << 20
"""A block is closed at this size, nearly what a task reads by default."""
_MAX_WINDOW_FRAMES = 4096
_DRAIN_SECONDS = 5.0
"""A broker may skip a drain while the end of another one is being sent (Artemis): it is sent again."""
_SELECTOR = Symbol("apache.org:selector-filter:string")
_SELECTOR_CODE = 0x0000_468C_0000_0004
_DURABLE = 2  # §3.5.5: unsettled-state
_OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")


@dataclass(slots=True)
class _Acknowledgement:
    """``answer`` of the discharge; None: the broker confirms no acknowledgement."""

    answer: Answer | None
    messages: int


@dataclass(slots=True)
class _Probe:
    proven_before: int


class Consumer:
    """One connection with at most one subscription. ``close`` returns unacknowledged messages to the queue."""

    def __init__(self, settings: ConnectionSettings, arrivals: Arrivals | None = None) -> None:
        self._settings = settings
        self.connection = connect(settings, arrivals)
        self._subscription: Subscription | None = None
        self._receiver: Receiver | None = None
        self._coordinator: Coordinator | None = None
        self._declared: Answer | None = None
        self._window = CreditWindow(1)
        self._counted_messages = self._counted_bytes = 0
        self._blocks: list[MessageBlock] = []
        self._receipts: dict[str, _Acknowledgement | _Probe] = {}
        self._receipt_count = 0

    @property
    def dialect(self) -> Dialect:
        return self.connection.dialect

    @property
    def subscription(self) -> Subscription:
        assert self._subscription is not None
        return self._subscription

    @property
    def receiver(self) -> Receiver:
        assert self._receiver is not None
        return self._receiver

    # --- subscribing ---------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription) -> None:
        """Once. After an error the connection is closed."""
        self._subscription = subscription
        self._window = CreditWindow(subscription.window_bytes, subscription.window_messages)
        try:
            self._attach(subscription)
            if not subscription.browse:
                self._open_transactions()
        except JMSError:
            self.connection.close()
            raise
        with self.connection.core() as session:
            frames = subscription.window_bytes // MAX_FRAME_BYTES
            session.set_window(min(max(frames, FIRST_WINDOW_FRAMES), _MAX_WINDOW_FRAMES))
            self.connection.on_received = self._on_received
            self._on_received()

    def _attach(self, subscription: Subscription) -> None:
        source, durable = source_of(subscription), subscription.durable
        name = subscription_name(durable) if durable else f"{subscription.destination.name}-{self._new_receipt()}"
        if durable:
            require_unchanged(self.connection, subscription)
        with self.connection.core() as session:
            self._receiver = session.receiver(name)  # the first link has handle 0, which the fast path expects
            self._receiver.attach_to(source)
        self.connection.await_attached(self._receiver)
        self._require_echo(source)

    def _require_echo(self, source: Source) -> None:
        """A broker ignores an unknown filter or distribution mode without an error: all messages would arrive."""
        echoed = self.receiver.remote_source
        given = (echoed.filter if echoed is not None else None) or {}
        if source.filter and not any(_is_selector(each) for each in given.values()):
            raise InvalidSelectorError(
                f"{self.connection.address} did not take the selector over: it would deliver every message.",
                "Remove option selector, and filter the DataFrame.",
            )
        if source.distribution_mode and (echoed is None or echoed.distribution_mode != source.distribution_mode):
            raise UnsupportedError(
                f"{self.connection.address} cannot show messages without delivering them.", "Use spark.readStream."
            )

    def _open_transactions(self) -> None:
        if not self.dialect.has_transactions:
            return
        with self.connection.core() as session:
            coordinator = session.coordinator(f"acknowledgements-{self._new_receipt()}")
            coordinator.attach_to_coordinator()
        try:
            self.connection.await_attached(coordinator)
        except JMSError as error:
            self.connection.check()
            _log.warning(
                "! %s has no transactions, so it confirms no acknowledgement: %s", self.connection.address, error
            )
            return
        self.connection.await_(lambda: coordinator.sendable, "credit for transactions")
        with self.connection.core():
            self._coordinator, self._declared = coordinator, coordinator.declare()

    @property
    def confirms_acknowledgements(self) -> bool:
        return self._coordinator is not None

    # --- messages ------------------------------------------------------------------------------

    def _on_received(self) -> None:
        """Count what has arrived, and grant credit for more. Called with ``changed`` held."""
        transfers, receiver = self.receiver.transfers, self.receiver
        self._window.received(
            transfers.total_messages - self._counted_messages, transfers.total_bytes - self._counted_bytes
        )
        self._counted_messages, self._counted_bytes = transfers.total_messages, transfers.total_bytes
        if transfers.size >= _BLOCK_BYTES:
            self._blocks.append(transfers.take())
        if receiver.is_draining or not receiver.is_ready:
            return
        credit = self._window.credit()
        if self._window.is_worth_a_flow(credit, receiver.credit):
            receiver.grant(credit)

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""
        with self.connection.changed:
            transfers = self.receiver.transfers
            messages = len(transfers) + sum(map(len, self._blocks))
            return messages, transfers.size + sum(len(block.data) for block in self._blocks)

    def take(self) -> list[MessageBlock]:
        """The messages received since the last call."""
        with self.connection.changed:
            blocks, self._blocks = self._blocks, []
            if len(self.receiver.transfers):
                blocks.append(self.receiver.transfers.take())
            return blocks

    def taken_oversized(self) -> list[tuple[bytes, int]]:
        """Delivery-id and size of messages above ``maxMessageBytes`` since the last call."""
        with self.connection.changed:
            transfers = self.receiver.transfers
            oversized, transfers.oversized = transfers.oversized, []
            return oversized

    def check_oversized(self) -> None:
        """Raise the error of a message that is too large, where option onTooLarge says that it stops the query."""
        oversized = self.receiver.transfers.oversized
        if oversized and self._settings.on_too_large == "stop":
            raise MessageTooLargeError(
                f"A message of {oversized[0][1]:,} bytes exceeds maxMessageBytes"
                f" ({self._settings.max_message_bytes:,}).",
                "It stays on the broker. Choose onTooLarge=skip, take the message off with another client, or raise"
                " maxMessageBytes: a message must fit into the driver's memory several times, and into a task"
                " (spark.rpc.message.maxSize, 128 MB).",
            )

    def check(self) -> None:
        self.connection.check()
        if self._receiver is not None:
            self.connection.check_link(self._receiver)

    # --- acknowledgements ----------------------------------------------------------------------

    def acknowledge(self, ids: Iterable[bytes]) -> str:
        """Accept these deliveries, inside a transaction where the broker has one, and return the receipt that its
        discharge will be. Nothing else proves that an acknowledgement was stored.
        """
        ranges, messages = ranges_of(list(ids))
        if self._coordinator is None:
            with self.connection.core():
                self.receiver.accept(ranges)
                self._released(messages)
            return self._receipt(_Acknowledgement(None, 0))
        declared = self._declared
        assert declared is not None
        self.connection.await_(lambda: declared.done, "a transaction")
        with self.connection.core():
            txn_id = declared.txn_id
            if txn_id is None:
                raise ConnectionLostError(
                    f"{self.connection.address} refused to begin a transaction.", "The query connects again."
                )
            self._coordinator.require_open(txn_id)
            self.receiver.accept(ranges, txn_id)
            answer = self._coordinator.discharge(txn_id)
            self._declared = self._coordinator.declare()
        return self._receipt(_Acknowledgement(answer, messages))

    def _released(self, messages: int) -> None:
        self._window.released(messages)
        self._on_received()

    def _new_receipt(self) -> str:
        self._receipt_count += 1
        return f"r{self._receipt_count}"

    def _receipt(self, what: _Acknowledgement | _Probe) -> str:
        receipt = self._new_receipt()
        self._receipts[receipt] = what
        return receipt

    def has_receipt(self, receipt: str) -> bool:
        match self._receipts[receipt]:
            case _Acknowledgement(answer=answer):
                return answer is None or (answer.done and answer.error is None)
            case _Probe(proven_before=before):
                return self.receiver.proven_empty > before or bool(self.waiting()[0])

    def await_receipt(self, receipt: str) -> None:
        what = self._receipts[receipt]
        if isinstance(what, _Probe):
            self._await_probe(receipt)
        elif what.answer is not None:
            self._await_discharge(what.answer, what.messages)
        del self._receipts[receipt]

    def _await_discharge(self, answer: Answer, messages: int) -> None:
        self.connection.await_(lambda: answer.done, "the confirmation of acknowledgements")
        if answer.error is not None:
            self.connection.drop()
            raise ConnectionLostError(
                f"{self.connection.address} rolled acknowledgements back: {answer.error.condition}"
                f" {answer.error.description}.",
                "The messages are delivered again.",
            )
        with self.connection.core():
            self._released(messages)

    # --- the end of a queue --------------------------------------------------------------------

    def probe(self) -> str:
        """Ask whether the queue is empty for this link. ``await_receipt`` returns when that is proven, or when a
        message has arrived.
        """
        with self.connection.core():
            before = self.receiver.proven_empty
            self._drain()
        return self._receipt(_Probe(before))

    def _drain(self) -> None:
        self.receiver.drain(max(self._window.credit(), 1))

    def _await_probe(self, receipt: str) -> None:
        """An answer that does not prove anything, and a missing one, are followed by another drain."""
        receiver = self.receiver
        while not self.has_receipt(receipt):
            answered = receiver.drains_answered
            try:
                self.connection.await_(
                    lambda: self.has_receipt(receipt) or not receiver.is_draining,
                    "an answer to a drain",
                    _DRAIN_SECONDS,
                )
            except JMSError:
                self.check()
            if not self.has_receipt(receipt):
                _log.debug("= another drain after %d answers", answered)
                with self.connection.core():
                    self._drain()
        with self.connection.core():
            if not receiver.is_draining:
                self._on_received()

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Detach, which gives unacknowledged messages back without a delivery attempt, and disconnect. Never raises."""
        receiver = self._receiver
        try:
            if receiver is not None and receiver.is_ready:
                with self.connection.core():
                    self.connection.on_received = None
                    receiver.detach(closed=self.subscription.durable is None)
                self.connection.await_(lambda: not receiver.is_attached, "its detach")
        except JMSError as error:
            _log.debug("= %s did not confirm the detach: %s", self.connection.address, error.fact)
        self.connection.close()

    def drop(self) -> None:
        self.connection.on_received = None
        self.connection.drop()


def source_of(subscription: Subscription) -> Source:
    """§3.5.3, and the filter of the AMQP filter extensions registry. Without a capability Artemis would make the
    address a topic.
    """
    durable, kind = subscription.durable, subscription.destination.kind
    capabilities = ["queue" if kind is DestinationKind.QUEUE else "topic"]
    if durable is not None:
        capabilities += capabilities_of(durable) or ()
    selector = subscription.selector
    filters: Any = None if selector is None else {_SELECTOR: Described(_SELECTOR_CODE, selector)}
    return Source(
        address=subscription.destination.name,
        durable=_DURABLE if durable else 0,
        expiry_policy="never" if durable else "link-detach",
        distribution_mode="copy" if subscription.browse else None,
        filter=filters,
        outcomes=_OUTCOMES,
        capabilities=tuple(capabilities),
    )


def _is_selector(value: Any) -> bool:
    return isinstance(value, Described) and value.descriptor in {_SELECTOR_CODE, str(_SELECTOR)}


def ranges_of(ids: Sequence[bytes]) -> tuple[list[tuple[int, int]], int]:
    """Delivery-ids of four bytes → ranges of consecutive ones, and how many they are."""
    if not ids:
        return [], 0
    numbers = np.frombuffer(b"".join(ids), ">u4").astype(np.int64)
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    firsts, lasts = numbers[np.concatenate([[0], cuts])], numbers[np.concatenate([cuts, [len(numbers)]]) - 1]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True)), len(numbers)
