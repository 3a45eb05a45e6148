"""Questions to the broker itself: one request, one answer, on a connection of its own.

Of its own, because a broker closes the connection of a user who may not ask. Knows no attribute and no operation.
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
    """Connected and listening for answers once constructed; for one thread.

    A refusal, at once or at the first question, is a ``JMSSecurityError`` and ends the link; what the broker
    does not know (a queue that is not there) is an ``InvalidDestinationError`` and does not.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._timeout = settings.receipt_timeout
        self._user = settings.user
        self._me, self._asked = uuid.uuid4().hex, 0
        self._connection = connect(replace(settings, client_id=None))  # that one has a connection already
        try:
            self._words = self._require_words()
            self._listen()
        except BaseException:
            self._connection.close()
            raise

    @property
    def words(self) -> Management:
        return self._words

    def attribute(self, resource: str, name: str) -> Any:
        """``attribute("queue.orders", "messageCount")``"""
        return self._ask(resource, {self._words.attribute_header: name}, b"")

    def operation(self, resource: str, name: str, *parameters: object) -> Any:
        """``operation("queue.orders", "countMessages", "n = 1")``"""
        # Always with a list: Artemis answers an operation without one as it answers somebody who may not ask.
        return self._ask(resource, {self._words.operation_header: name}, json.dumps(parameters).encode())

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- one question ----------------------------------------------------------------------------

    def _require_words(self) -> Management:
        dialect = self._connection.dialect
        if dialect.management is None:
            raise UnsupportedError(
                f"Broker {dialect.name} answers no questions about itself over STOMP.", "Look into its own console."
            )
        return dialect.management

    def _listen(self) -> None:
        headers = {"id": _SUBSCRIPTION, "destination": self._words.reply_address, "ack": "auto"}
        headers |= self._connection.dialect.subscribe_headers[DestinationKind.TOPIC]
        try:
            self._connection.request("SUBSCRIBE", headers)
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None

    def _ask(self, resource: str, question: dict[str, str], body: bytes) -> Any:
        self._asked += 1
        correlation = f"{self._me}-{self._asked}"
        headers = {
            "destination": self._words.address,
            "reply-to": self._words.reply_address,
            "correlation-id": correlation,
            self._words.resource_header: resource,
            **question,
        }
        # No content-length: a question is a text. JSON has no NUL.
        frame = encode_frame(Frame("SEND", tuple(headers.items())))[:-1] + body + b"\0"
        try:
            self._connection.send(frame)
            answer = self._answer(correlation)
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None
        if answer.header(self._words.success_header) != "true":
            raise InvalidDestinationError(
                f"The broker has no answer on {' '.join(question.values())} of {resource}.", "Is the name right?"
            )
        return _value(answer.body)

    def _answer(self, correlation: str) -> Frame:
        deadline = time.monotonic() + self._timeout
        while True:
            for frame in self._arrived(deadline):
                if frame.header("correlation-id") == correlation:
                    return frame  # any other is an answer to somebody else

    def _arrived(self, deadline: float) -> list[Frame]:
        connection = self._connection
        with connection.changed:
            while not connection.waiting()[0]:
                connection.check_messages()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ReceiptTimeoutError(
                        f"{connection.address} did not answer a question about itself within {self._timeout:g} s.",
                        f"May this user receive from {self._words.reply_address}?",
                    )
                connection.changed.wait(left)
            blocks = connection.take()
        return [parse_frame(block.message(index)) for block in blocks for index in range(len(block))]

    def _refused(self) -> JMSSecurityError:
        return JMSSecurityError(
            f"User {self._user} may not ask {self._connection.address} about itself.",
            f"It needs the permission manage on {self._words.address}, and on {self._words.reply_address}"
            " createAddress, createNonDurableQueue and consume.",
        )


def _value(body: bytes) -> Any:
    """Answers are JSON arrays with one element; null is no answer at all."""
    try:
        answer = json.loads(body or b"[null]")
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, list) or len(answer) != 1:
        raise MalformedFrameError(
            "The broker's answer about itself is no JSON array of one element.", "Report this with its version."
        )
    return answer[0]
