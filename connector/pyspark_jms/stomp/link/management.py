"""Management requests to the broker: one request, one reply, on a separate connection.

The connection is separate because a broker closes the connection of a user without the permission. Which attributes
and operations there are stands in ``dialects.management``.
"""

import json
import time
import uuid
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from pyspark_jms.errors import (
    BrokerError,
    InvalidDestinationError,
    JMSSecurityError,
    MalformedFrameError,
    ReceiptTimeoutError,
    UnsupportedError,
)
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects.management import Management
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.wire.frame import Frame, encode_frame, parse_frame

__all__ = ["ManagementLink"]

_SUBSCRIPTION = "1"


class ManagementLink:
    """Connected and subscribed to replies once constructed; for one thread.

    Without the permission, the constructor or the first request raises ``JMSSecurityError``, and the link has ended.
    An unknown resource (a queue that does not exist) raises ``InvalidDestinationError``, and the link goes on.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._timeout = settings.receipt_timeout
        self._user = settings.user
        self._id, self._requests = uuid.uuid4().hex, 0
        self._connection = connect(replace(settings, client_id=None))  # another connection uses the client id
        try:
            self._words = self._require_words()
            self._subscribe()
        except BaseException:
            self._connection.close()
            raise

    @property
    def words(self) -> Management:
        return self._words

    def attribute(self, resource: str, name: str) -> Any:
        """``attribute("queue.orders", "messageCount")``"""
        return self._request(resource, {self._words.attribute_header: name}, b"")

    def queue_name(self, name: str) -> str:
        """The queue of a fully qualified name (``ADDRESS::QUEUE``), or the name itself."""
        return self._connection.dialect.addresses.queue_of(name)

    def queue_attribute(self, queue: str, name: str) -> Any:
        return self.attribute(self._words.queue_resource.format(queue), name)

    def queue_operation(self, queue: str, name: str, *parameters: object) -> Any:
        return self.operation(self._words.queue_resource.format(queue), name, *parameters)

    def operation(self, resource: str, name: str, *parameters: object) -> Any:
        """``operation("queue.orders", "countMessages", "n = 1")``"""
        # Always with a list: Artemis answers an operation without one as if the permission were missing.
        return self._request(resource, {self._words.operation_header: name}, json.dumps(parameters).encode())

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- one request ---------------------------------------------------------------------------

    def _require_words(self) -> Management:
        dialect = self._connection.dialect
        if dialect.management is None:
            raise UnsupportedError(
                f"Broker {dialect.name} has no management over STOMP.", "Use the broker's own console."
            )
        return dialect.management

    def _subscribe(self) -> None:
        headers = {"id": _SUBSCRIPTION, "destination": self._words.reply_address, "ack": "auto"}
        headers |= self._connection.dialect.subscribe_headers[DestinationKind.TOPIC]
        try:
            self._connection.request("SUBSCRIBE", headers)
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None

    def _request(self, resource: str, request: dict[str, str], body: bytes) -> Any:
        self._requests += 1
        correlation = f"{self._id}-{self._requests}"
        headers = {
            "destination": self._words.address,
            "reply-to": self._words.reply_address,
            "correlation-id": correlation,
            self._words.resource_header: resource,
            **request,
        }
        # No content-length: the request is a text. JSON has no NUL.
        frame = encode_frame(Frame("SEND", tuple(headers.items())))[:-1] + body + b"\0"
        try:
            self._connection.send(frame)
            reply = self._reply(correlation)
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None
        if reply.header(self._words.success_header) != "true":
            raise InvalidDestinationError(
                f"The broker has no answer to {' '.join(request.values())} of {resource}.", "Is the name right?"
            )
        return _value(reply.body)

    def _reply(self, correlation: str) -> Frame:
        deadline = time.monotonic() + self._timeout
        while True:
            for frame in self._arrived(deadline):
                if frame.header("correlation-id") == correlation:
                    return frame  # other frames are replies to other clients

    def _arrived(self, deadline: float) -> list[Frame]:
        connection = self._connection
        with connection.changed:
            while not connection.waiting()[0]:
                connection.check_messages()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ReceiptTimeoutError(
                        f"{connection.address} did not answer a management request within {self._timeout:g} s.",
                        f"Check that this user may receive from {self._words.reply_address}.",
                    )
                connection.changed.wait(left)
            blocks = connection.take()
        return [parse_frame(block.message(index)) for block in blocks for index in range(len(block))]

    def _refused(self) -> JMSSecurityError:
        return JMSSecurityError(
            f"User {self._user} may not use the management of {self._connection.address}.",
            f"Grant the permission manage on {self._words.address}, and on {self._words.reply_address} createAddress,"
            " createNonDurableQueue and consume.",
        )


def _value(body: bytes) -> Any:
    """A reply is a JSON array with one element. The element null is an empty reply."""
    try:
        answer = json.loads(body or b"[null]")
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, list) or len(answer) != 1:
        raise MalformedFrameError(
            "The broker's management reply is not a JSON array of one element.",
            "Report this with the broker's version.",
        )
    return answer[0]
