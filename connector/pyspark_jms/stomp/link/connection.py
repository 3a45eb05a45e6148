"""One STOMP 1.2 session: connected, used, closed. Knows what an ERROR frame means; knows no subscription.

stomp.py reads the frames that are no MESSAGE and keeps the heart-beats; every wait here has a limit, which
stomp.py's own waits have not.
"""

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import stomp
from stomp.exception import NotConnectedException
from stomp.listener import HeartbeatListener

from pyspark_jms.blocks.block import ByteArray, MessageBlock
from pyspark_jms.errors import (
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidOptionError,
    JMSError,
    ReceiptTimeoutError,
)
from pyspark_jms.jms.secret_text import SecretBytes
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect, dialect_named, dialect_of_server
from pyspark_jms.stomp.link.reasons import broker_said, unreachable
from pyspark_jms.stomp.link.tap import Tap
from pyspark_jms.stomp.wire.frame import Frame, encode_frame
from pyspark_jms.stomp.wire.oversized import OversizedMessage, not_kept
from pyspark_jms.stomp.wire.scan import FrameScanner

__all__ = ["SEGMENT_BYTES", "Arrivals", "Connection", "connect"]

SEGMENT_BYTES = 15 << 20
"""A run of frames is closed at this size, which is nearly what a task reads by default: what is decoded in one go costs
some 2 ms of CPU however small it is."""

_log = logging.getLogger("pyspark_jms.link")
_DISCONNECT_SECONDS = 5.0
_THREAD_SECONDS = 1.0

# stomp.py logs whole frames, headers and bodies, at DEBUG and connection losses with a stack trace.
_stomp_log = logging.getLogger("stomp.py")
if _stomp_log.level == logging.NOTSET:
    _stomp_log.setLevel(logging.CRITICAL)


def _nowhere() -> None:
    return None


def _temporary_file() -> BinaryIO:
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise not_kept(error) from None


_OVERSIZED: dict[str, Callable[[], BinaryIO | None] | None] = {
    "stop": None,
    "skip": _nowhere,
    "deadLetter": _temporary_file,  # it may be larger than memory allows, and is gone with the process
}
"""Where the body of a message above maxMessageBytes is kept."""


class Arrivals(threading.Condition):
    """Notified when frames, a receipt, an ERROR or the end of a connection arrive; connections may share one."""

    def pause(self, seconds: float) -> None:
        """Return when something arrived, and after ``seconds`` at the latest."""
        with self:
            self.wait(seconds)


def connect(settings: ConnectionSettings, arrivals: Arrivals | None = None) -> "Connection":
    """Connect to the first address of the list that answers.

    The error of the last address is raised when none does; one that another address cannot cure (a wrong
    password, a certificate) is raised at once.
    """
    failures: list[JMSError] = []
    for address in settings.addresses:
        try:
            return Connection(address, settings, arrivals or Arrivals())
        except JMSError as error:
            failures.append(error)
            if not error.transient:
                raise
    if len(failures) == 1:
        raise failures[0]
    reasons = "; ".join(failure.fact for failure in failures)
    raise BrokerUnreachableError(f"No address of brokerUrl answers: {reasons}", failures[-1].remedy)


class _Listener(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no type information
    """Hears for a ``Connection``. On its own: an ``on_*`` on a HeartbeatListener would replace its liveness."""

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    def on_connected(self, frame: Any) -> None:
        self._note(server=frame.headers.get("server", ""))

    def on_receipt(self, frame: Any) -> None:
        self._note(receipt=frame.headers.get("receipt-id", ""))

    def on_error(self, frame: Any) -> None:
        self._note(error=_said(str(frame.headers.get("message") or ""), str(frame.body or "")))

    def on_disconnected(self) -> None:
        self._note(down=True)


def _said(message: str, body: str) -> str:
    """The header ``message`` of an ERROR, and the first line of its body where that says more.

    Artemis says all in the header, without colons, Classic begins the body with the Java exception, RabbitMQ's header
    is a keyword.
    """
    first = body.strip().partition("\n")[0].strip()
    if first.replace(":", "") in message.replace(":", ""):
        return message
    return first if message.strip() in first else f"{message}: {first}"


class Connection:
    """A connected session. ``dialect`` and ``server`` say who answered.

    Every method raises the ``LinkError`` that ended the session, once it has ended.
    """

    def __init__(self, address: Address, settings: ConnectionSettings, arrivals: Arrivals) -> None:
        self.address = address
        self.server: str | None = None
        self.changed = arrivals
        self._settings = settings
        self._scanner = FrameScanner(
            max_body_bytes=settings.max_message_bytes, keep_oversized=_OVERSIZED[settings.on_too_large]
        )
        self._blocks: list[MessageBlock] = []
        self._receipts: set[str] = set()
        self._receipt_count = 0
        self.received_bytes = 0
        """Heart-beats do not count."""
        self._error: str | None = None
        self._down = False
        self._dialect: Dialect | None = None
        self._tap = Tap(
            address,
            context=settings.tls.context() if address.tls else None,
            connect_timeout=settings.connect_timeout,
            send_timeout=settings.receipt_timeout,
            feed=self._feed,
        )
        self._beat_ms = int(settings.heartbeat * 1000)
        self._heart = HeartbeatListener(self._tap, (self._beat_ms, self._beat_ms))
        self._tap.set_listener("heart", self._heart)
        self._tap.set_listener("pyspark-jms", _Listener(self._note))
        try:
            self._open()
            self._dialect = self._find_dialect()
            self._scanner.ack_header = self._dialect.ack_header.encode() if self._dialect.ack_header else None
        except BaseException:
            self.drop()
            raise
        _log.info("= connected to %s, server %s", address, self.server)

    # --- the session ---------------------------------------------------------------------------

    def _open(self) -> None:
        limit = self._settings.connect_timeout
        deadline = time.monotonic() + limit
        connect = self._connect_frame()
        try:
            self._tap.start()
            self.send(connect)
            self._await(lambda: self.server is not None, deadline - time.monotonic(), "CONNECTED")
        except (OSError, UnicodeError) as error:
            raise unreachable(self.address, error) from None
        except ReceiptTimeoutError:
            raise BrokerUnreachableError(
                f"{self.address} accepted the connection and sent no CONNECTED within {limit:g} s.",
                "Is this the broker's STOMP port, and is TLS (stomp+ssl://) wanted or not?",
            ) from None
        except ConnectionLostError:
            raise unreachable(self.address, self._tap.failure) from None

    def _connect_frame(self) -> SecretBytes:
        settings = self._settings
        optional = {
            "login": settings.user,
            "passcode": settings.password.reveal() if settings.password else None,
            "client-id": settings.client_id,
        }
        _refuse_unwritable(optional | {"host": settings.virtual_host})
        headers = {
            "accept-version": "1.2",
            "host": settings.virtual_host,
            "heart-beat": f"{self._beat_ms},{self._beat_ms}",
        }
        headers |= {name: value for name, value in optional.items() if value is not None}
        return SecretBytes(encode_frame(Frame("CONNECT", tuple(headers.items()))))

    @property
    def dialect(self) -> Dialect:
        assert self._dialect is not None
        return self._dialect

    def _find_dialect(self) -> Dialect:
        if self._settings.broker == "auto":
            return dialect_of_server(self.server)
        return dialect_named(self._settings.broker)

    def close(self) -> None:
        """DISCONNECT with a receipt, then let go of the socket. Never raises, takes a few seconds at most."""
        if not self._down:
            try:
                self.request("DISCONNECT", {}, _DISCONNECT_SECONDS)
            except JMSError:
                _log.debug("= %s went away before its DISCONNECT was answered", self.address)
        self.drop()

    def drop(self) -> None:
        """Let go of the socket at once, as a crash would."""
        self._tap.disconnect_socket()
        if self._tap.io_thread is not None:
            self._tap.io_thread.join(_DISCONNECT_SECONDS)
        self._heart.heartbeat_terminate_event.set()
        if (beating := self._heart.heartbeat_thread) is not None:
            beating.join(_THREAD_SECONDS)
        self._note(down=True)

    # --- out -----------------------------------------------------------------------------------

    def send(self, data: ByteArray) -> None:
        """Write whole frames. That they left is known when a receipt asked for in or after them is here."""
        self.check()
        try:
            self._tap.send(data)
        except BlockingIOError:
            self.drop()
            raise ReceiptTimeoutError(
                f"{self.address} took nothing for {self._settings.receipt_timeout:g} s.",
                "The broker may be blocking this address (full, or out of disk): look at its log.",
            ) from None
        except (OSError, NotConnectedException, ValueError):
            self._hear_it_out()
            self.check()
            raise self._lost() from None

    def _hear_it_out(self) -> None:
        """A peer that takes no more may have said why: that is read on another thread, to the end."""
        with self.changed:
            self.changed.wait_for(lambda: self._down or self._error is not None, _DISCONNECT_SECONDS)

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

    # --- in ------------------------------------------------------------------------------------

    def await_receipt(self, receipt: str, timeout: float | None = None) -> None:
        """Wait until the broker confirmed; ``ReceiptTimeoutError`` after ``receiptTimeout``.

        An ERROR counts for more than a receipt: RabbitMQ confirms a SUBSCRIBE that it has refused before, Classic a
        COMMIT after a SEND of no transaction that failed.
        """
        limit = self._settings.receipt_timeout if timeout is None else timeout
        self._await(lambda: receipt in self._receipts, limit, f"the receipt {receipt}")
        self._receipts.discard(receipt)
        if self._error is not None:
            self.check()

    def has_receipt(self, receipt: str) -> bool:
        return receipt in self._receipts

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""
        with self.changed:
            messages = self._scanner.messages + sum(map(len, self._blocks))
            return messages, self._scanner.size + sum(len(block.data) for block in self._blocks)

    def take(self) -> list[MessageBlock]:
        """The MESSAGE frames received since the last call, in blocks of about ``SEGMENT_BYTES``."""
        with self.changed:
            blocks, self._blocks = self._blocks, []
            if self._scanner.messages:
                blocks.append(self._scanner.take())
            return blocks

    def take_oversized(self) -> list[OversizedMessage]:
        """The messages above maxMessageBytes since the last call, where onTooLarge lets the session go on."""
        with self.changed:
            oversized, self._scanner.oversized = self._scanner.oversized, []
            return oversized

    @property
    def down(self) -> bool:
        return self._down

    def check(self) -> None:
        """Raise what ended the session, if something did."""
        if self._error is not None:
            raise broker_said(self.address, self._error, self._dialect)
        if isinstance(self._tap.failure, JMSError):
            raise self._tap.failure
        if self._down:
            raise self._lost()

    def check_messages(self) -> None:
        """As ``check``; and raise what says that a message was too large to be received, though the session goes on."""
        self.check()
        if self._scanner.refused is not None:
            raise self._scanner.refused

    # --- from the io thread ----------------------------------------------------------------------

    def _feed(self, data: memoryview) -> list[bytes]:
        with self.changed:
            self.received_bytes += len(data) if len(data) > 1 else 0
            before = self._scanner.messages
            others = self._scanner.feed(data)
            if self._scanner.size >= SEGMENT_BYTES:
                self._blocks.append(self._scanner.take())
                before = -1
            if self._scanner.messages != before or self._scanner.oversized:
                self.changed.notify_all()
        return others

    def _note(
        self, *, server: str | None = None, receipt: str | None = None, error: str | None = None, down: bool = False
    ) -> None:
        with self.changed:
            self.server = self.server if server is None else server
            if receipt is not None:
                self._receipts.add(receipt)
            self._error = error if self._error is None else self._error  # what follows the first is its consequence
            self._down = self._down or down
            self.changed.notify_all()

    # --- waiting ---------------------------------------------------------------------------------

    def _await(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        deadline = time.monotonic() + timeout
        with self.changed:
            while not ready():
                self.check()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ReceiptTimeoutError(
                        f"{self.address} did not send {what} within {timeout:g} s.",
                        "The broker is slow or stuck: look at its log, or raise receiptTimeout.",
                    )
                self.changed.wait(left)

    def _lost(self) -> ConnectionLostError:
        return ConnectionLostError(
            f"The connection to {self.address} is gone.",
            "What was not acknowledged or committed stays with the broker.",
        )


def _refuse_unwritable(values: Mapping[str, str | None]) -> None:
    # CONNECT has no escapes (STOMP 1.2 "Value Encoding"): a line end would begin another header.
    for name, value in values.items():
        if value is not None and any(character in value for character in "\r\n\0"):
            raise InvalidOptionError(f"The {name} holds a line end or NUL.", "STOMP cannot carry it.")
        if value is not None and any("\ud800" <= character <= "\udfff" for character in value):
            raise InvalidOptionError(f"The {name} holds half of a surrogate pair.", "UTF-8 cannot carry it.")
