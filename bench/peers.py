"""Alternative clients for comparison. Each runs in a separate process."""

import threading
from typing import Any

import stomp

from bench.job import TIME_LIMIT, Job, Measured
from bench.raw import meter

__all__ = ["stomp_py"]


class _Listener(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no type information
    """Acknowledges each message and does nothing else."""

    def __init__(self, connection: Any, messages: int) -> None:
        self._connection = connection
        self._left = messages
        self.done = threading.Event()
        self.error: str | None = None

    def on_message(self, frame: Any) -> None:
        self._left -= 1
        self._connection.ack(frame.headers["ack"], receipt=None if self._left else "last")

    def on_receipt(self, frame: Any) -> None:
        if frame.headers["receipt-id"] == "last":
            self.done.set()

    def on_error(self, frame: Any) -> None:
        self.error = frame.headers.get("message", "ERROR")
        self.done.set()

    def on_disconnected(self) -> None:
        self.done.set()


def stomp_py(job: Job) -> Measured:
    """A stomp.py listener that sends one ACK a message. Measures from SUBSCRIBE to the receipt of the last ACK."""
    connection = stomp.Connection12([(job.host, job.port)], heartbeats=(0, 0), timeout=TIME_LIMIT)
    listener = _Listener(connection, job.messages)
    connection.set_listener("bench", listener)
    connection.connect(job.user, job.password, wait=True)
    headers = {"subscription-type": "ANYCAST", "consumer-window-size": "-1"}
    with meter(job) as measuring:
        connection.subscribe(job.queue, id="1", ack="client-individual", headers=headers)
        in_time = listener.done.wait(TIME_LIMIT)
    if not in_time or listener.error or listener._left:  # noqa: SLF001 - a class of this file
        raise RuntimeError(listener.error or f"{listener._left} messages did not arrive")  # noqa: SLF001
    connection.disconnect()
    return measuring.measured(job.messages)
