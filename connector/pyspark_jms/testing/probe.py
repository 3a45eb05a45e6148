"""Tests whether a STOMP broker is ready, with one CONNECT. The connector's own connections are in ``stomp.link``."""

import contextlib
import socket
import ssl

__all__ = ["stomp_answer"]

_ANSWER_LIMIT = 64 * 1024
"""Maximum bytes of an answer to CONNECT; that of Artemis has less than 200."""


def stomp_answer(
    host: str, port: int, user: str, password: str, *, tls: bool, timeout: float, virtual_host: str | None = None
) -> str:
    """The broker's answer to a CONNECT with these credentials; an ``OSError`` without an answer in time."""
    head = f"CONNECT\naccept-version:1.2\nhost:{virtual_host or host}\nlogin:{user}\npasscode:{password}\n\n\0"
    answer = b""
    with _connection(host, port, tls=tls, timeout=timeout) as link:
        link.sendall(head.encode())
        while b"\0" not in answer and len(answer) < _ANSWER_LIMIT and (data := link.recv(4096)):
            answer += data
        with contextlib.suppress(OSError):  # after an ERROR the connection is closed
            link.sendall(b"DISCONNECT\nreceipt:bye\n\n\0")
            link.recv(4096)
    return answer.partition(b"\0")[0].decode(errors="replace").lstrip()


def _connection(host: str, port: int, *, tls: bool, timeout: float) -> socket.socket:
    plain = socket.create_connection((host, port), timeout=timeout)
    if not tls:
        return plain
    # Without verification: the probe connects to this process's own broker and uses the answer for readiness only.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with plain:  # wrapping takes over the descriptor; a failed handshake must not leak it
        return context.wrap_socket(plain)
