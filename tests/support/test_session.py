import os
import socket
import subprocess
import sys

import pytest
import session

CONNECTED = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(link.getsockname()[1], flush=True)
link.recv(1)
"""


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def client(server):
    """A process with a connection to the server, and the local port of the connection."""
    command = [sys.executable, "-c", CONNECTED, str(server.getsockname()[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process, int(process.stdout.readline())
        process.kill()


def test_the_connections_of_a_process_are_its_own(server, client):
    process, port = client
    assert session.connections(process.pid) == {(port, server.getsockname()[1])}
    assert (port, server.getsockname()[1]) not in session.connections(os.getpid())


def test_a_death_counts_if_the_process_was_alive(client):
    process, _ = client
    assert session.kill_and_await(process.pid, 10)
    assert not session.kill_and_await(process.pid, 10)  # a zombie
    process.wait(10)
    assert not session.kill_and_await(process.pid, 10)
