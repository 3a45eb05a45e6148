"""Ports of brokers: free ones, which a broker keeps when it restarts, and whether a broker answers there.

The connector's own connections are in ``stomp.link``.
"""

import contextlib
import random
import socket
import ssl

from pyspark_jms.errors import EmbeddedBrokerError

__all__ = [
    "free_port",
    "is_free",
    "stomp_answer",
]

_BELOW_EPHEMERAL = range(20_000, 32_768)
"""Ports below those of outgoing connections (Linux starts at 32768, macOS at 49152).

An outgoing connection could take a port of that range while the broker restarts. And a client that keeps connecting
to such a port on the loopback interface may connect to itself.
"""

_TRIES = 200


def free_port(host: str) -> int:
    for port in random.sample(_BELOW_EPHEMERAL, _TRIES):
        if is_free(host, port):
            return port
    raise EmbeddedBrokerError(f"No free port found on {host}.", "Set port= explicitly.")


def is_free(host: str, port: int) -> bool:
    """Return whether a server can listen on the port. Lingering connections of an earlier server do not count."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


# --- whether a STOMP broker is ready ----------------------------------------------------------------

_ANSWER_LIMIT = 64 * 1024
"""Maximum bytes of an answer to CONNECT; that of Artemis has less than 200."""


def stomp_answer(host: str, port: int, user: str, password: str, *, tls: bool, timeout: float) -> str:
    """Return the broker's answer to a CONNECT with these credentials. Without one in time, raise an ``OSError``."""
    # The host is the virtual host of RabbitMQ. The other brokers ignore it.
    head = f"CONNECT\naccept-version:1.2\nhost:/\nlogin:{user}\npasscode:{password}\n\n\0"
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
