"""Host and port → a connected socket, within a time-out that includes the resolution of the name."""

import queue
import socket
import ssl
import threading
import time
from typing import Any, TypeAlias

from pyspark_jms.network.address import Address

__all__ = ["ResolveTimeoutError", "open_socket"]

_MIN_SECONDS = 0.1

_Found: TypeAlias = "list[tuple[Any, ...]]"


class ResolveTimeoutError(TimeoutError):
    """The name service did not answer in time."""


def open_socket(address: Address, context: ssl.SSLContext | None, timeout: float) -> socket.socket:
    """Connect as ``dial``, with TLS if there is a ``context``. The socket sends small writes at once.

    Its time-out is the rest of ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    connected = dial(address.host, address.port, timeout)
    try:
        connected.settimeout(max(deadline - time.monotonic(), _MIN_SECONDS))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected if context is None else context.wrap_socket(connected, server_hostname=address.host)
    except BaseException:
        connected.close()
        raise


def dial(host: str, port: int, timeout: float) -> socket.socket:
    """Try the addresses of the host in turn. Each gets an equal share of the rest of ``timeout`` seconds.

    Raises the ``OSError`` of the last address, ``socket.gaierror`` or ``UnicodeError`` for the name.
    """
    deadline = time.monotonic() + timeout
    found = _resolve(host, port, timeout)
    failure: OSError | None = None
    for tried, (family, kind, protocol, _, address) in enumerate(found):
        share = max((deadline - time.monotonic()) / (len(found) - tried), _MIN_SECONDS)
        try:
            return _connect(socket.socket(family, kind, protocol), address, share)
        except OSError as error:
            failure = error
    raise failure or OSError("the host name has no address")


def _connect(connecting: socket.socket, address: Any, timeout: float) -> socket.socket:
    try:
        connecting.settimeout(timeout)
        connecting.connect(address)
    except BaseException:
        connecting.close()
        raise
    return connecting


def _resolve(host: str, port: int, timeout: float) -> _Found:
    """``getaddrinfo`` has no time-out of its own: without an answer it waits as long as the system is configured to.

    So it runs in a thread. After the time-out nobody waits for the thread, which ends when the system gives up.
    """
    answer: queue.SimpleQueue[_Found | BaseException] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            answer.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except BaseException as error:  # noqa: BLE001  # without an answer it would be a name service that is silent
            answer.put(error)

    threading.Thread(target=look_up, name="pyspark-jms-resolve", daemon=True).start()
    try:
        found = answer.get(timeout=timeout)
    except queue.Empty:
        raise ResolveTimeoutError from None
    if isinstance(found, BaseException):
        raise found
    return found
