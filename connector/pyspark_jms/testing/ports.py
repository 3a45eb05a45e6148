"""Ports for a broker that must come back on the same one."""

import random
import socket

from pyspark_jms.errors import EmbeddedBrokerError

__all__ = ["free_port", "is_free"]

_BELOW_EPHEMERAL = range(20_000, 32_768)
"""Ports the operating system gives to nobody's outgoing connection (Linux starts at 32768, macOS at 49152).

A port from above could be taken while the broker is down for a restart; worse, a client that keeps
connecting to it on the loopback interface ends up connected to itself.
"""

_TRIES = 200


def free_port(host: str) -> int:
    for port in random.sample(_BELOW_EPHEMERAL, _TRIES):
        if is_free(host, port):
            return port
    raise EmbeddedBrokerError(f"No free port found on {host}.", "Give port= explicitly.")


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now; connections of an earlier one that linger do not count."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
