"""Free ports for brokers that keep their port when they restart."""

import random
import socket

from pyspark_jms.errors import EmbeddedBrokerError

__all__ = ["free_port", "is_free"]

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
    """Whether a server can listen on the port. Lingering connections of an earlier server do not count."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
