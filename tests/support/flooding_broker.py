"""A STOMP server that confirms every request and ignores the prefetch window: it sends when a test calls ``send``."""

import contextlib
import socket
import threading


class FloodingBroker:
    """Of several connections, the one with the last SUBSCRIBE counts. ``server``: the name that it gives itself."""

    def __init__(self, server, body_bytes):
        self._greeting = f"CONNECTED\nversion:1.2\nserver:{server}\nheart-beat:0,0\n\n\0".encode()
        self._body = bytes(body_bytes)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._links = []
        self._link = self._subscription = None
        self._lock = threading.Lock()
        self.subscribed = threading.Event()
        self.sent = 0
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in (self._listener, *self._links):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(30)
        for each in (self._listener, *self._links):
            each.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._listener.accept()
                self._links.append(link)
                self._threads.append(threading.Thread(target=self._serve, args=(link,)))
                self._threads[-1].start()

    def _serve(self, link):
        with contextlib.suppress(OSError), link.makefile("rb") as frames:
            while frame := _frame(frames):
                self._answer(link, frame)

    def _answer(self, link, frame):
        head = frame.partition(b"\n\n")[0].split(b"\n")
        command, headers = head[0], dict(line.split(b":", 1) for line in head[1:])
        if command == b"CONNECT":
            self._write(link, self._greeting)
        if b"receipt" in headers:
            self._write(link, b"RECEIPT\nreceipt-id:" + headers[b"receipt"] + b"\n\n\0\n")
        if command == b"SUBSCRIBE":
            self._link, self._subscription = link, headers[b"id"]
            self.subscribed.set()

    def _write(self, link, data):
        with self._lock:
            link.sendall(data)

    def send(self, messages):
        """So many messages, whatever was acknowledged. Returns early when the client has ended the connection."""
        assert self.subscribed.wait(30)
        with contextlib.suppress(ConnectionError):
            for _ in range(messages):
                number = b"%d" % self.sent
                head = [b"MESSAGE", b"subscription:" + self._subscription, b"message-id:" + number, b"ack:" + number]
                head += [b"destination:/queue/q", b"redelivered:false", b"content-length:%d" % len(self._body)]
                self._write(self._link, b"\n".join(head) + b"\n\n" + self._body + b"\0\n")
                self.sent += 1


def _frame(frames):
    """The next frame without its NUL; empty at the end. No body of a client's frame has a NUL."""
    found = bytearray()
    while (byte := frames.read(1)) not in (b"", b"\0"):
        found += byte
    return bytes(found).lstrip(b"\n") if byte else b""
