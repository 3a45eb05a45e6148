"""Alternative clients for comparison. Each runs in a separate process."""

import threading
from typing import Any

import stomp
from proton.handlers import MessagingHandler
from proton.reactor import Container

from bench.job import TIME_LIMIT, Job, Measured
from bench.raw import meter

__all__ = ["proton", "stomp_py"]

_PREFETCH = 2_000


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


class _Receiver(MessagingHandler):
    """Accepts each message and does nothing else."""

    def __init__(self, job: Job) -> None:
        super().__init__(prefetch=_PREFETCH, auto_accept=False)
        self._job = job
        self.left = job.messages

    def on_start(self, event: Any) -> None:
        url = f"amqp://{self._job.host}:{self._job.port}"
        connection = event.container.connect(
            url, user=self._job.user, password=self._job.password, allowed_mechs="PLAIN", reconnect=False
        )
        event.container.create_receiver(connection, self._job.queue)

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        self.left -= 1
        if not self.left:
            event.connection.close()


def proton(job: Job) -> Measured:
    """A receiver with Proton's Python API. Measures a whole connection; nothing confirms its acceptances."""
    receiver = _Receiver(job)
    with meter(job) as measuring:
        Container(receiver).run()
    if receiver.left:
        raise RuntimeError(f"{receiver.left} messages did not arrive")
    return measuring.measured(job.messages)
