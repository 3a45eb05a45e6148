"""What a broker sends besides messages: CONNECTED, receipts, an ERROR, the end of the connection. Waits for them.

stomp.py parses these frames on its own thread and passes them to ``Listener``.
"""

import time
from collections.abc import Callable
from typing import Any

import stomp

from pyspark_jms.errors import JMSError, ReceiptTimeoutError
from pyspark_jms.network.address import Address
from pyspark_jms.network.failures import connection_lost
from pyspark_jms.network.state_condition import StateCondition
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.reasons import error_of

__all__ = ["Listener", "Replies", "error_text"]


class Replies:
    """``failure``: the error with which reading from the socket ended, if it did.

    ``await_…`` and ``check`` raise the ``LinkError`` that ended the session, once it has ended.
    """

    def __init__(
        self, address: Address, condition: StateCondition, failure: Callable[[], JMSError | OSError | None]
    ) -> None:
        self._address = address
        self._condition = condition
        self._failure = failure
        self._receipts: set[str] = set()
        self._error: str | None = None
        self.server: str | None = None
        """The header ``server`` of CONNECTED. None: no CONNECTED has arrived."""
        self.dialect: Dialect | None = None
        """Set by the connection. It knows the meaning of an ERROR."""
        self.down = False

    def note(
        self, *, server: str | None = None, receipt: str | None = None, error: str | None = None, down: bool = False
    ) -> None:
        with self._condition:
            self.server = self.server if server is None else server
            if receipt is not None:
                self._receipts.add(receipt)
            self._error = error if self._error is None else self._error  # later errors follow from the first one
            self.down = self.down or down or self._is_final(error)
            self._condition.notify_all()

    def _is_final(self, error: str | None) -> bool:
        """Whether the broker closes the connection after this ERROR, without a reply to anything that is sent."""
        return error is not None and any(
            text in error for text in (self.dialect.conversion_errors if self.dialect else ())
        )

    def check(self) -> None:
        """Raise the error that ended the session, if it has ended."""
        if self._error is not None:
            raise error_of(self._address, self._error, self.dialect)
        failure = self._failure()
        if isinstance(failure, JMSError):
            raise failure
        if self.down:
            raise connection_lost(self._address)

    def has_receipt(self, receipt: str) -> bool:
        return receipt in self._receipts

    def await_connected(self, timeout: float) -> None:
        self._await(lambda: self.server is not None, timeout, "CONNECTED")

    def await_receipt(self, receipt: str, timeout: float) -> None:
        """``ReceiptTimeoutError`` after ``timeout`` seconds.

        An ERROR takes precedence over a receipt: RabbitMQ confirms a SUBSCRIBE that it has refused before, Classic a
        COMMIT after a failed SEND outside of the transaction.
        """
        self._await(lambda: receipt in self._receipts, timeout, f"the receipt {receipt}")
        self._receipts.discard(receipt)
        if self._error is not None:
            self.check()

    def await_final_error(self, timeout: float) -> None:
        """Return when an ERROR or the end of the connection has arrived, or after ``timeout`` seconds.

        After a failed write the broker may have sent the reason, which the other thread has yet to read.
        """
        with self._condition:
            self._condition.wait_for(lambda: self.down or self._error is not None, timeout)

    def _await(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        deadline = time.monotonic() + timeout
        with self._condition:
            while not ready():
                self.check()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ReceiptTimeoutError(
                        f"{self._address} did not send {what} within {timeout:g} s.",
                        "The broker is slow or blocked: look at its log, or raise receiptTimeout.",
                    )
                self._condition.wait(left)


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
