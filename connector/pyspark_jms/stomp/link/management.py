"""Management requests over STOMP: a SEND, and a MESSAGE on a topic that carries the replies of all clients."""

import time

from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.management.link import ManagementLink, Reply
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.link.connection import Connection, connect
from pyspark_jms.stomp.wire.frame import Frame, encode_frame, parse_frame

__all__ = ["StompManagementLink"]

_SUBSCRIPTION = "1"


class StompManagementLink(ManagementLink):
    _protocol = "STOMP"
    _connection: Connection

    def __init__(self, settings: ConnectionSettings) -> None:
        super().__init__(settings, connect(settings.of_management()))

    def _listen(self) -> None:
        headers = {"id": _SUBSCRIPTION, "destination": self.words.reply_address, "ack": "auto"}
        headers |= self._connection.dialect.subscribe_headers[DestinationKind.TOPIC]
        self._connection.request("SUBSCRIBE", headers)

    def _exchange(self, headers: dict[str, str], body: str) -> Reply:
        correlation = self._new_correlation()
        sent = {
            "destination": self.words.address,
            "reply-to": self.words.reply_address,
            "correlation-id": correlation,
            **headers,
        }
        # No content-length: the request is a text. JSON has no NUL.
        self._connection.send(encode_frame(Frame("SEND", tuple(sent.items())))[:-1] + body.encode() + b"\0")
        reply: Frame = self._reply(correlation)
        return Reply(reply.header(self.words.success_header) == "true", reply.body)

    def _arrived(self, deadline: float) -> list[tuple[object, Frame]]:
        connection = self._connection
        left = deadline - time.monotonic()
        connection.condition.await_(connection.has_messages, connection.check_messages, left, self._no_reply)
        blocks = connection.prefetch.take()
        frames = [parse_frame(block.message(index)) for block in blocks for index in range(len(block))]
        return [(frame.header("correlation-id"), frame) for frame in frames]
