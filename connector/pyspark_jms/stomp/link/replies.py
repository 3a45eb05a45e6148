"""The replies of a broker: CONNECTED, receipts, an ERROR, the end of the connection. Waits for them.

stomp.py parses these frames on its own thread and passes them to ``Listener``.
"""

import re
from collections.abc import Callable
from typing import Any

import stomp

from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    SubscriptionInUseError,
    UnconvertibleMessageError,
    UnsupportedError,
)
from pyspark_jms.network.address import Address
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.failures import SECURITY_REMEDY, connection_lost, late
from pyspark_jms.stomp.dialects import DIALECTS, Dialect

__all__ = ["ACK_REMEDY", "Listener", "Replies"]

_REASON_SECONDS = 2.0
"""The broker closes the connection before that."""


class Replies:
    """``failure``: what ended the reading from the socket, if it did.

    ``await_…`` and ``check`` raise what ended the session, once it has ended: a ``LinkError``, or whatever ended its
    thread.
    """

    def __init__(
        self, address: Address, condition: StateCondition, failure: Callable[[], BaseException | None]
    ) -> None:
        self._address = address
        self._condition = condition
        self._failure = failure
        self._receipts: set[str] = set()
        self._error: str | None = None
        self.server: str | None = None
        """The header ``server`` of CONNECTED, or None if no CONNECTED has arrived."""
        self.dialect: Dialect | None = None
        """Set by the connection. It knows the meaning of an ERROR."""
        self.is_down = False

    def note(
        self, *, server: str | None = None, receipt: str | None = None, error: str | None = None, down: bool = False
    ) -> None:
        with self._condition:
            self.server = self.server if server is None else server
            if receipt is not None:
                self._receipts.add(receipt)
            if self._error is None or (error is not None and self._has_crossed):
                self._error = error  # later errors follow from the first one
            self.is_down = self.is_down or down or self._is_final(error)
            self._condition.notify_all()

    def _is_final(self, error: str | None) -> bool:
        """Return whether the broker closes the connection after this ERROR, without a reply to what is sent."""
        if error is None or self.dialect is None:
            return False
        finals = (*self.dialect.lost_errors, *self.dialect.conversion_errors)
        return any(text in error for text in finals)

    def check(self) -> None:
        """Raise the error that ended the session, if it has ended."""
        if self._error is not None:
            with self._condition:
                self._condition.wait_for(lambda: self.is_down or not self._has_crossed, _REASON_SECONDS)
                self.is_down = self.is_down or self._has_crossed
            raise error_of(self._address, self._error, self.dialect)
        failure = self._failure()
        if failure is not None and not isinstance(failure, OSError):
            raise failure
        if self.is_down:
            raise connection_lost(self._address)

    @property
    def _has_crossed(self) -> bool:
        """Return whether an ACK crossed the end of its subscription. The reason may come in a second ERROR."""
        return self.dialect is not None and any(text in (self._error or "") for text in self.dialect.crossed_errors)

    def has_receipt(self, receipt: str) -> bool:
        return receipt in self._receipts

    def await_connected(self, timeout: float) -> None:
        self._await(lambda: self.server is not None, timeout, "CONNECTED")

    def await_receipt(self, receipt: str, timeout: float) -> None:
        """``ReceiptTimeoutError`` after ``timeout`` seconds.

        An ERROR takes precedence over a receipt: RabbitMQ confirms a SUBSCRIBE that it has refused before, Classic a
        COMMIT after a failed SEND outside of the transaction. An ERROR that only ends the connection refuses nothing.
        """
        self._await(lambda: receipt in self._receipts, timeout, f"the receipt {receipt}")
        self._receipts.discard(receipt)
        if self._error is not None:
            error = error_of(self._address, self._error, self.dialect)
            if not error.transient:
                raise error

    def await_final_error(self, timeout: float) -> None:
        """Return when an ERROR or the end of the connection has arrived, or after ``timeout`` seconds.

        After a failed write the broker may have sent the reason, which the other thread has yet to read.
        """
        with self._condition:
            self._condition.wait_for(lambda: self.is_down or self._error is not None, timeout)

    def _await(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        self._condition.await_(ready, self.check, timeout, lambda: late(self._address, what, timeout))


class Listener(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no type information
    """Passes what stomp.py reads to ``Replies.note``.

    A class of its own: an ``on_*`` method of a ``HeartbeatListener`` would replace its heart-beat check.
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    def on_connected(self, frame: Any) -> None:
        self._note(server=frame.headers.get("server", ""))

    def on_receipt(self, frame: Any) -> None:
        self._note(receipt=frame.headers.get("receipt-id", ""))

    def on_error(self, frame: Any) -> None:
        self._note(error=error_text(str(frame.headers.get("message") or ""), str(frame.body or "")))

    def on_disconnected(self) -> None:
        self._note(down=True)


def error_text(message: str, body: str) -> str:
    """The header ``message`` of an ERROR, and the first line of its body if that has more information.

    Artemis writes everything into the header, without colons. Classic begins the body with the Java exception.
    RabbitMQ's header is a keyword.
    """
    first = body.strip().partition("\n")[0].strip()
    if first.replace(":", "") in message.replace(":", ""):
        return message
    return first if message.strip() in first else f"{message}: {first}"


# --- the text of an ERROR frame ----------------------------------------------------------------------

_MAX_CHARACTERS = 300


def error_of(address: Address, text: str, dialect: Dialect | None) -> JMSError:
    """The error for the text of an ERROR frame. Before CONNECTED (``dialect`` None) the texts of all dialects count."""
    known = (dialect,) if dialect else tuple(DIALECTS.values())
    for each in known:
        text = re.sub(each.message_in_error, "", text, flags=re.DOTALL) if each.message_in_error else text
    lost = [t for d in known for t in d.lost_errors if t in text]
    if not lost and any(each in text for d in known for each in (*d.conversion_errors, *d.crossed_errors)):
        return UnconvertibleMessageError(f"{address} closed the subscription.", _CONVERSION_REMEDY)
    reason = text.strip()[:_MAX_CHARACTERS] or "nothing"
    for error, texts, remedy in (
        (ConnectionLostError, lost, _LOST_REMEDY),
        (JMSSecurityError, [t for d in known for t in d.security_errors], SECURITY_REMEDY),
        (JMSSecurityError, [t for d in known for t in d.subscribe_errors], _SUBSCRIBE_REMEDY),
        (SubscriptionInUseError, [t for d in known for t in d.in_use_errors], _IN_USE_REMEDY),
        (BrokerError, [t for d in known for t in d.send_errors], _SEND_REMEDY),
        (UnsupportedError, [t for d in known for t in d.ack_errors], ACK_REMEDY),
        (InvalidSelectorError, [t for d in known for t in d.selector_errors], "Check the selector."),
        (InvalidDestinationError, [t for d in known for t in d.destination_errors], _DESTINATION_REMEDY),
        (InvalidDestinationError, [t for d in known for t in d.declaration_errors], _DECLARATION_REMEDY),
    ):
        if any(t in reason for t in texts):
            verb = "ended the session" if error is ConnectionLostError else "refused"
            found = error(f"{address} {verb}: {reason}.", remedy)
            found.missing = remedy == _DESTINATION_REMEDY or "permission='CREATE_" in reason
            return found
    return BrokerError(f"{address} answered with an ERROR: {reason}.", "See the broker's log for the reason.")


ACK_REMEDY = (
    "This broker cannot acknowledge over STOMP what an AMQP client sent with a message-id, as Qpid JMS does. Read the"
    " queue over AMQP (brokerUrl=amqp://…), or let the producers leave the message-id out. The message stays on the"
    " queue, and is read again at the next start."
)
_LOST_REMEDY = (
    "An operator closed the connection or deleted the queue, the broker stops or ended a slow consumer, or it received"
    " nothing from this client for too long."
)
_CONVERSION_REMEDY = (
    "The queue has a message that this broker cannot send over STOMP, usually one of an AMQP client. Read the queue"
    " over AMQP, where the message is a row (brokerUrl=amqp://…; a durable subscription as"
    " queue=TOPIC::CLIENTID.SUBSCRIPTIONNAME), or move it away with an AMQP client. With windowBytes=1 a query reads"
    " the messages before it over STOMP. Each start costs the message and its next neighbours a delivery attempt. If"
    " somebody deleted the queue or closed its consumer on the broker, start the query again."
)
_SUBSCRIBE_REMEDY = (
    "This user may not consume from this destination, or the queue has as many consumers as max-consumers allows, or"
    " the address of a topic also has the routing type ANYCAST, with"
    " which the broker creates no STOMP subscription: artemis address update --name TOPIC --multicast --no-anycast. The"
    " broker's log has the reason."
)
_IN_USE_REMEDY = (
    "Stop other readers with this clientId and subscriptionName, or give another clientId. The broker closes a dead"
    " connection when heart-beats are missing."
)
_SEND_REMEDY = "This user may not send to the destination, or its address is full: see the broker's log."
_DECLARATION_REMEDY = (
    "The queue was declared with arguments, as a quorum queue or one with priorities is, and over STOMP the broker"
    " declares it again, without them. Read it as queue=/amq/queue/NAME. To send to it, bind it to an exchange and use"
    " topic=/exchange/EXCHANGE/KEY (what has no binding is confirmed and dropped), or send over AMQP (RabbitMQ 4)."
)
_DESTINATION_REMEDY = (
    "Create the address and queue on the broker, or let it create them (auto-create). The queue of a durable"
    " subscription is named TOPIC::QUEUE."
)
