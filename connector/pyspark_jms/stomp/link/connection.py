"""One STOMP 1.2 session: connected, used, closed. Subscriptions are not known here.

stomp.py parses all frames except MESSAGE and sends the heart-beats. Every wait here has a limit, unlike stomp.py's own.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import stomp
from stomp.exception import NotConnectedException
from stomp.listener import HeartbeatListener

from pyspark_jms.blocks.block import ByteArray
from pyspark_jms.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidOptionError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    ReceiptTimeoutError,
    SubscriptionInUseError,
    UnconvertibleMessageError,
    UnsupportedError,
)
from pyspark_jms.jms.secret_text import SecretBytes
from pyspark_jms.network.address import Address
from pyspark_jms.network.connection import StateCondition, closed_on
from pyspark_jms.network.failures import SECURITY_REMEDY, connection_lost, first_that_answers, late, unreachable
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import DIALECTS, Dialect, dialect_of_server
from pyspark_jms.stomp.link.message_transport import MessageTransport
from pyspark_jms.stomp.link.prefetch import FIRST, Inbox, Prefetch
from pyspark_jms.stomp.wire.frame import Frame, encode_frame

__all__ = ["ACK_REMEDY", "Connection", "connect"]

_log = logging.getLogger("pyspark_jms.link")
_DISCONNECT_SECONDS = 5.0
_THREAD_SECONDS = 1.0
_REASON_SECONDS = 2.0
"""The broker closes the connection before that."""

# At DEBUG stomp.py logs whole frames with headers and bodies. It logs a lost connection with a stack trace.
_stomp_log = logging.getLogger("stomp.py")
if _stomp_log.level == logging.NOTSET:
    _stomp_log.setLevel(logging.CRITICAL)


def connect(settings: ConnectionSettings, condition: StateCondition | None = None) -> "Connection":
    """Connect to the first address of the list that answers, as ``first_that_answers``."""
    return first_that_answers(
        settings.addresses, lambda address: Connection(address, settings, condition or StateCondition())
    )


class Replies:
    """What the broker has replied in a session.

    ``await_…`` and ``check`` raise what ended the session, once it has ended: a ``LinkError``, or whatever ended its
    thread. ``failure``: what ended the reading from the socket, if it did.
    """

    def __init__(
        self, address: Address, condition: StateCondition, failure: Callable[[], BaseException | None]
    ) -> None:
        self.address = address
        self.condition = condition
        self._failure = failure
        self._receipts: set[str] = set()
        self._error: str | None = None
        self.server: str | None = None
        """The header ``server`` of CONNECTED, or None if no CONNECTED has arrived."""
        self.known_dialect: Dialect | None = None
        """Set by the connection. It knows the meaning of an ERROR."""
        self.is_down = False

    def note(
        self, *, server: str | None = None, receipt: str | None = None, error: str | None = None, down: bool = False
    ) -> None:
        with self.condition:
            self.server = self.server if server is None else server
            if receipt is not None:
                self._receipts.add(receipt)
            if self._error is None or (error is not None and self._has_crossed):
                self._error = error  # later errors follow from the first one
            self.is_down = self.is_down or down or self._is_final(error)
            self.condition.notify_all()

    def _is_final(self, error: str | None) -> bool:
        """Return whether the broker closes the connection after this ERROR, without a reply to what is sent."""
        if error is None or self.known_dialect is None:
            return False
        finals = (*self.known_dialect.lost_errors, *self.known_dialect.conversion_errors)
        return any(text in error for text in finals)

    def check(self) -> None:
        """Raise the error that ended the session, if it has ended."""
        if self._error is not None:
            with self.condition:
                self.condition.wait_for(lambda: self.is_down or not self._has_crossed, _REASON_SECONDS)
                self.is_down = self.is_down or self._has_crossed
            raise error_of(self.address, self._error, self.known_dialect)
        failure = self._failure()
        if failure is not None and not isinstance(failure, OSError):
            raise failure
        if self.is_down:
            raise connection_lost(self.address)

    @property
    def has_error(self) -> bool:
        """Return whether an ERROR has come."""
        return self._error is not None

    def forget_error(self) -> None:
        """Raise only that the connection is lost from now on. It was dropped."""
        self._error = None

    @property
    def _has_crossed(self) -> bool:
        """Return whether an ACK crossed the end of its subscription. The reason may come in a second ERROR."""
        crossed = () if self.known_dialect is None else self.known_dialect.crossed_errors
        return any(text in (self._error or "") for text in crossed)

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
            error = error_of(self.address, self._error, self.known_dialect)
            if not error.transient:
                raise error

    def await_final_error(self, timeout: float) -> None:
        """Return when an ERROR or the end of the connection has arrived, or after ``timeout`` seconds.

        After a failed write the broker may have sent the reason, which the other thread has yet to read.
        """
        with self.condition:
            self.condition.wait_for(lambda: self.is_down or self._error is not None, timeout)

    def _await(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        self.condition.await_(ready, self.check, timeout, lambda: late(self.address, what, timeout))


class Connection(Replies):
    """A connected session.

    Every method raises the ``LinkError`` that ended the session, once it has ended.
    """

    def __init__(self, address: Address, settings: ConnectionSettings, condition: StateCondition) -> None:
        super().__init__(address, condition, lambda: self._transport.failure)
        self._settings = settings
        self._receipt_count = self._subscription_count = 0
        self.users: set[object] = set()
        """The consumers that share the connection. The last one closes it."""
        self.prefetch = Prefetch(
            condition, max_body_bytes=settings.max_message_bytes, on_too_large=settings.on_too_large
        )
        self._transport = MessageTransport(
            address,
            context=settings.tls.context() if address.tls else None,
            connect_timeout=settings.connect_timeout,
            send_timeout=settings.receipt_timeout,
            feed=self.prefetch.feed,
        )
        self._heart = HeartbeatListener(self._transport, (_heartbeat_ms(settings), _heartbeat_ms(settings)))
        self._transport.set_listener("heart", self._heart)
        self._transport.set_listener("pyspark-jms", Listener(self.note))
        with closed_on(BaseException, self.drop):
            self._open()
            self.known_dialect = (
                dialect_of_server(self.server) if settings.broker == "auto" else DIALECTS[settings.broker]
            )
            self.prefetch.set_ack_header(self.dialect.ack_header)
        _log.info("= connected to %s, server %s", address, self.server)

    # --- the session ---------------------------------------------------------------------------

    def _open(self) -> None:
        limit = self._settings.connect_timeout
        deadline = time.monotonic() + limit
        connect = _connect_frame(self._settings, self.address)
        try:
            self._transport.start()
            self.send(connect)
            self.await_connected(deadline - time.monotonic())
        except (OSError, UnicodeError) as error:
            raise unreachable(self.address, error, self._settings.tls.ca_file) from None
        except ReceiptTimeoutError:
            raise BrokerUnreachableError(
                f"{self.address} accepted the connection and sent no CONNECTED within {limit:g} s.",
                "Check that this is the broker's STOMP port, and whether it uses TLS (stomp+ssl://).",
            ) from None
        except ConnectionLostError:
            raise unreachable(self.address, self._transport.failure) from None

    @property
    def dialect(self) -> Dialect:
        assert self.known_dialect is not None
        return self.known_dialect

    @property
    def received_bytes(self) -> int:
        return self.prefetch.received_bytes

    def close(self) -> None:
        """Send DISCONNECT, wait for its receipt, close the socket. Never raises; takes a few seconds at most."""
        if not self.is_down:
            try:
                self.request("DISCONNECT", {}, _DISCONNECT_SECONDS)
            except BaseException as error:
                if not isinstance(error, JMSError) and error is not self._transport.failure:
                    raise
                _log.debug("= %s closed the connection before it confirmed DISCONNECT", self.address)
        self.drop()

    def drop(self) -> None:
        """Close the socket at once, as a crash would."""
        self._transport.disconnect_socket()
        if self._transport.io_thread is not None:
            self._transport.io_thread.join(_DISCONNECT_SECONDS)
        self._heart.heartbeat_terminate_event.set()
        if (beating := self._heart.heartbeat_thread) is not None:
            beating.join(_THREAD_SECONDS)
        self.note(down=True)

    # --- frames to the broker ------------------------------------------------------------------

    def send(self, data: ByteArray) -> None:
        """Write whole frames. Only a receipt that one of them, or a later one, requests proves that they were sent."""
        self.check()
        try:
            self._transport.send(data)
        except BlockingIOError:
            self.drop()
            raise ReceiptTimeoutError(
                f"{self.address} accepted no bytes for {self._settings.receipt_timeout:g} s.",
                "The broker may block this address (full, or out of disk): look at its log.",
            ) from None
        except (OSError, NotConnectedException, ValueError, AttributeError):
            # AttributeError: the receiving thread of stomp.py took the socket away between its check and its use
            self.await_final_error(_DISCONNECT_SECONDS)
            self.check()
            raise connection_lost(self.address) from None

    def frame(self, command: str, headers: dict[str, str]) -> None:
        """Write one frame without a body; names and values are escaped (STOMP 1.2 "Value Encoding")."""
        self.send(encode_frame(Frame(command, tuple(headers.items()))))

    def request(self, command: str, headers: dict[str, str], timeout: float | None = None) -> None:
        """Write one frame and wait for its receipt."""
        receipt = self.new_receipt()
        self.frame(command, {**headers, "receipt": receipt})
        self.await_receipt(receipt, timeout)

    def new_receipt(self) -> str:
        self._receipt_count += 1
        return f"r{self._receipt_count}"

    def await_receipt(self, receipt: str, timeout: float | None = None) -> None:
        """Wait for the broker's confirmation; ``ReceiptTimeoutError`` after ``receiptTimeout``."""
        super().await_receipt(receipt, self._settings.receipt_timeout if timeout is None else timeout)

    # --- messages from the broker --------------------------------------------------------------

    def new_inbox(self) -> tuple[str, Prefetch | Inbox]:
        """Return the id of another subscription, and where its messages will be."""
        self._subscription_count += 1
        number = str(self._subscription_count)
        return number, self.prefetch if number == FIRST else self.prefetch.share(number)

    def has_messages(self) -> bool:
        """Return whether messages were received and not taken."""
        return bool(self.prefetch.waiting()[0])

    def check_messages(self) -> None:
        """Call ``check``, and also raise the error of a message that was too large to be received."""
        self.check()
        if self.prefetch.refused is not None:
            raise self.prefetch.refused


def _heartbeat_ms(settings: ConnectionSettings) -> int:
    return int(settings.heartbeat * 1000)


def _connect_frame(settings: ConnectionSettings, address: Address) -> SecretBytes:
    optional = {
        "login": settings.user,
        "passcode": settings.password.reveal() if settings.password else None,
        "client-id": settings.client_id,
    }
    _refuse_unwritable(optional | {"host": address.virtual_host})
    headers = {
        "accept-version": "1.2",
        "host": address.virtual_host,
        "heart-beat": f"{_heartbeat_ms(settings)},{_heartbeat_ms(settings)}",
    }
    headers |= {name: value for name, value in optional.items() if value is not None}
    return SecretBytes(encode_frame(Frame("CONNECT", tuple(headers.items()))))


def _refuse_unwritable(values: Mapping[str, str | None]) -> None:
    # CONNECT has no escapes (STOMP 1.2 "Value Encoding"): a line end would begin another header.
    for name, value in values.items():
        if value is not None and any(character in value for character in "\r\n\0"):
            raise InvalidOptionError(f"The {name} holds a line end or NUL.", "STOMP cannot send such a value.")
        if value is not None and any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidOptionError(f"The {name} holds half of a surrogate pair.", "UTF-8 cannot encode such a value.")


# --- what the broker replies -----------------------------------------------------------------------


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
