"""One STOMP 1.2 session: connected, used, closed. Subscriptions are not known here.

stomp.py parses all frames except MESSAGE and sends the heart-beats. Every wait here has a limit, unlike stomp.py's own.
"""

import logging
import time
from collections.abc import Mapping

from stomp.exception import NotConnectedException
from stomp.listener import HeartbeatListener

from pyspark_jms.blocks.block import ByteArray
from pyspark_jms.errors import (
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidOptionError,
    JMSError,
    ReceiptTimeoutError,
)
from pyspark_jms.jms.secret_text import SecretBytes
from pyspark_jms.network.address import Address
from pyspark_jms.network.connection import StateCondition, closed_on
from pyspark_jms.network.failures import connection_lost, first_that_answers, unreachable
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import DIALECTS, Dialect, dialect_of_server
from pyspark_jms.stomp.link.message_transport import MessageTransport
from pyspark_jms.stomp.link.prefetch import Inbox, Prefetch
from pyspark_jms.stomp.link.replies import Listener, Replies
from pyspark_jms.stomp.wire.frame import Frame, encode_frame

__all__ = ["Connection", "connect"]

_log = logging.getLogger("pyspark_jms.link")
_DISCONNECT_SECONDS = 5.0
_THREAD_SECONDS = 1.0

# At DEBUG stomp.py logs whole frames with headers and bodies. It logs a lost connection with a stack trace.
_stomp_log = logging.getLogger("stomp.py")
if _stomp_log.level == logging.NOTSET:
    _stomp_log.setLevel(logging.CRITICAL)


def connect(settings: ConnectionSettings, condition: StateCondition | None = None) -> "Connection":
    """Connect to the first address of the list that answers, as ``first_that_answers``."""
    return first_that_answers(
        settings.addresses, lambda address: Connection(address, settings, condition or StateCondition())
    )


class Connection:
    """A connected session.

    Every method raises the ``LinkError`` that ended the session, once it has ended.
    """

    def __init__(self, address: Address, settings: ConnectionSettings, condition: StateCondition) -> None:
        self.address = address
        self.condition = condition
        self._settings = settings
        self._receipt_count = self._subscription_count = 0
        self.users: set[object] = set()
        """The consumers that share the connection. The last one closes it."""
        self.prefetch = Prefetch(
            condition, max_body_bytes=settings.max_message_bytes, on_too_large=settings.on_too_large
        )
        self._replies = Replies(address, condition, lambda: self._transport.failure)
        self._transport = MessageTransport(
            address,
            context=settings.tls.context() if address.tls else None,
            connect_timeout=settings.connect_timeout,
            send_timeout=settings.receipt_timeout,
            feed=self.prefetch.feed,
        )
        self._heart = HeartbeatListener(self._transport, (_heartbeat_ms(settings), _heartbeat_ms(settings)))
        self._transport.set_listener("heart", self._heart)
        self._transport.set_listener("pyspark-jms", Listener(self._replies.note))
        with closed_on(BaseException, self.drop):
            self._open()
            self._replies.dialect = _dialect(settings, self.server)
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
            self._replies.await_connected(deadline - time.monotonic())
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
    def server(self) -> str | None:
        """The name and version that the broker gives itself."""
        return self._replies.server

    @property
    def dialect(self) -> Dialect:
        assert self._replies.dialect is not None
        return self._replies.dialect

    @property
    def received_bytes(self) -> int:
        return self.prefetch.received_bytes

    @property
    def is_down(self) -> bool:
        return self._replies.is_down

    def check(self) -> None:
        """Raise the error that ended the session, if it has ended."""
        self._replies.check()

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
        self._replies.note(down=True)

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
            self._replies.await_final_error(_DISCONNECT_SECONDS)
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
        self._replies.await_receipt(receipt, self._settings.receipt_timeout if timeout is None else timeout)

    def has_receipt(self, receipt: str) -> bool:
        return self._replies.has_receipt(receipt)

    # --- messages from the broker --------------------------------------------------------------

    def new_inbox(self) -> tuple[str, Prefetch | Inbox]:
        """Return the id of another subscription, and where its messages will be."""
        self._subscription_count += 1
        number = str(self._subscription_count)
        return number, self.prefetch if number == "1" else self.prefetch.share(number)

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


def _dialect(settings: ConnectionSettings, server: str | None) -> Dialect:
    return dialect_of_server(server) if settings.broker == "auto" else DIALECTS[settings.broker]


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
