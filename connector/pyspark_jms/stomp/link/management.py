"""Management requests over STOMP: a SEND, and a MESSAGE on a topic that carries the replies of all clients."""

import time
import uuid

from pyspark_jms.errors import BrokerError, JMSSecurityError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.management.link import ManagementLink, Reply, require_words
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.wire.frame import Frame, encode_frame, parse_frame

__all__ = ["StompManagementLink"]

_SUBSCRIPTION = "1"


class StompManagementLink(ManagementLink):
    def __init__(self, settings: ConnectionSettings) -> None:
        self._id, self._requests = uuid.uuid4().hex, 0
        self._connection = connect(settings.of_management())
        dialect = self._connection.dialect
        try:
            words = require_words(dialect.management, dialect.name, "STOMP")
            super().__init__(settings, words, self._connection.address)
            self._subscribe()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def _subscribe(self) -> None:
        headers = {"id": _SUBSCRIPTION, "destination": self.words.reply_address, "ack": "auto"}
        headers |= self._connection.dialect.subscribe_headers[DestinationKind.TOPIC]
        try:
            self._connection.request("SUBSCRIBE", headers)
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None

    def _exchange(self, headers: dict[str, str], body: str) -> Reply:
        self._requests += 1
        correlation = f"{self._id}-{self._requests}"
        sent = {
            "destination": self.words.address,
            "reply-to": self.words.reply_address,
            "correlation-id": correlation,
            **headers,
        }
        # No content-length: the request is a text. JSON has no NUL.
        self._connection.send(encode_frame(Frame("SEND", tuple(sent.items())))[:-1] + body.encode() + b"\0")
        reply = self._reply(correlation)
        return Reply(reply.header(self.words.success_header) == "true", reply.body)

    def _reply(self, correlation: str) -> Frame:
        deadline = time.monotonic() + self._timeout
        while True:
            for frame in self._arrived(deadline):
                if frame.header("correlation-id") == correlation:
                    self._note_reply()
                    return frame  # other frames are replies to other clients

    def _arrived(self, deadline: float) -> list[Frame]:
        connection = self._connection
        left = deadline - time.monotonic()
        connection.condition.await_(connection.has_messages, connection.check_messages, left, self._no_reply)
        blocks = connection.prefetch.take()
        return [parse_frame(block.message(index)) for block in blocks for index in range(len(block))]
