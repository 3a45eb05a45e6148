"""Is a STOMP broker there? One CONNECT, one answer. For readiness only: the connector's own link is in ``link``."""

import contextlib
import socket
import ssl

__all__ = ["stomp_answer"]

_ANSWER_LIMIT = 64 * 1024
"""Bytes of an answer to CONNECT; Artemis' is under 200."""


def stomp_answer(
    host: str, port: int, user: str, password: str, *, tls: bool, timeout: float, virtual_host: str | None = None
) -> str:
    """The frame that answers a CONNECT with these credentials; an ``OSError`` when nobody answers in time."""
    head = f"CONNECT\naccept-version:1.2\nhost:{virtual_host or host}\nlogin:{user}\npasscode:{password}\n\n\0"
    answer = b""
    with _connection(host, port, tls=tls, timeout=timeout) as link:
        link.sendall(head.encode())
        while b"\0" not in answer and len(answer) < _ANSWER_LIMIT and (octets := link.recv(4096)):
            answer += octets
        with contextlib.suppress(OSError):  # an ERROR has closed the connection already
            link.sendall(b"DISCONNECT\nreceipt:bye\n\n\0")
            link.recv(4096)
    return answer.partition(b"\0")[0].decode(errors="replace").lstrip()


def _connection(host: str, port: int, *, tls: bool, timeout: float) -> socket.socket:
    plain = socket.create_connection((host, port), timeout=timeout)
    if not tls:
        return plain
    # Without verification: this asks whether our own broker is up, nothing secret depends on the answer.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with plain:  # wrapping takes the descriptor over; a failed handshake must not leak it
        return context.wrap_socket(plain)
