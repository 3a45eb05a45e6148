"""A raw STOMP client, so that the tests of the brokers do not depend on the connector."""

import contextlib
import socket
import ssl

import pytest


class RawStomp:
    def __init__(self, link):
        self.link = link
        self.buffer = b""

    def ask(self, frame):
        """Send the frame and a NUL, and return the broker's answer; skip messages before it."""
        self.link.sendall(frame.encode() + b"\0")
        return self.next_frame("CONNECTED", "RECEIPT", "ERROR")

    def next_frame(self, *commands):
        while True:
            frame = self._frame()
            if frame.startswith(("END OF STREAM", *commands)):
                return frame

    def _frame(self):
        while b"\0" not in self.buffer:
            data = self.link.recv(65536)
            if not data:
                return "END OF STREAM"
            self.buffer += data
        frame, _, self.buffer = self.buffer.partition(b"\0")
        return frame.decode().lstrip()

    def send(self, queue, text):
        head = f"SEND\ndestination:{queue}\ndestination-type:ANYCAST\npersistent:true\nreceipt:r\n\n"
        return self.ask(head + text)

    def subscribe(self, queue):
        """Subscribe. The receipt and the messages arrive in any order at ``next_frame``."""
        head = f"SUBSCRIBE\nid:1\ndestination:{queue}\nsubscription-type:ANYCAST\nack:client-individual\n"
        self.link.sendall(f"{head}receipt:s\n\n\0".encode())


@pytest.fixture
def connect():
    """``connect(broker, user=..., context=...)``: a RawStomp and the broker's answer to CONNECT."""
    with contextlib.ExitStack() as stack:

        def connect(broker, user=None, password=None, *, port=None, context=None):
            link = stack.enter_context(socket.create_connection((broker.host, port or broker.port), timeout=10))
            if context is not None:
                link = stack.enter_context(context.wrap_socket(link, server_hostname="localhost"))
            stomp = RawStomp(link)
            login = f"login:{user or broker.user}\npasscode:{password or broker.password}"
            return stomp, stomp.ask(f"CONNECT\naccept-version:1.2\nhost:x\n{login}\n\n")

        yield connect


class Certificates:
    """An authority, and one certificate of it for both the broker and a client."""

    def __init__(self, authority):
        pair = authority.issue("localhost", hosts=["localhost", "127.0.0.1"])
        self.authority, self.cert, self.key = authority.cert, pair.cert, pair.key

    def context(self, *, client=False):
        context = ssl.create_default_context(cafile=self.authority)
        if client:
            context.load_cert_chain(self.cert, self.key)
        return context


@pytest.fixture(scope="session")
def certificates(authority):
    return Certificates(authority)
