"""AMQP 0-9-1 to a RabbitMQ under test, with pika: queue operations that STOMP does not have, and a foreign producer.

One channel, one request at a time. pika is imported when a connection is made: it is in the extra ``test``.
"""

import contextlib
import importlib
import logging
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from pyspark_jms.errors import EmbeddedBrokerError

__all__ = ["Amqp", "require_pika"]

_SECONDS = 30.0

_pika_log = logging.getLogger("pika")
if _pika_log.level == logging.NOTSET:
    _pika_log.setLevel(logging.CRITICAL)  # it logs every refused connection with a stack trace


def require_pika() -> Any:
    """The module ``pika``; ``EmbeddedBrokerError`` if it is not installed."""
    try:
        return importlib.import_module("pika")
    except ImportError:
        raise EmbeddedBrokerError(
            "The package pika, which RabbitMQ in tests needs, is not installed.", "pip install 'pyspark-jms[test]'."
        ) from None


class Amqp:
    """``with Amqp(host, port, user, password) as amqp: amqp.count("orders")``. Raises ``EmbeddedBrokerError``."""

    def __init__(self, host: str, port: int, user: str, password: str) -> None:
        self._pika = require_pika()
        parameters = self._pika.ConnectionParameters(
            host=host,
            port=port,
            credentials=self._pika.PlainCredentials(user, password),
            heartbeat=0,
            socket_timeout=_SECONDS,
            stack_timeout=_SECONDS,
            blocked_connection_timeout=_SECONDS,
        )
        with self._errors():
            self._connection = self._pika.BlockingConnection(parameters)
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(self._pika.exceptions.AMQPError):
            self._connection.close()

    def count(self, queue: str) -> tuple[int, int]:
        """Waiting messages, without those in delivery, and consumers. An error if the queue does not exist."""
        with self._errors():
            declared = self._channel.queue_declare(queue, passive=True).method
        return declared.message_count, declared.consumer_count

    def declare(self, queue: str, arguments: Mapping[str, str] | None = None) -> None:
        """Create a durable queue."""
        with self._errors():
            self._channel.queue_declare(queue, durable=True, arguments=dict(arguments or {}))

    def purge(self, queue: str) -> int:
        """Delete the waiting messages, and return their number."""
        with self._errors():
            return int(self._channel.queue_purge(queue).method.message_count)

    def publish(
        self, queue: str, body: bytes, *, content_type: str | None = None, message_id: str | None = None
    ) -> None:
        """Send a persistent message, and wait for the broker's confirmation."""
        properties = self._pika.BasicProperties(content_type=content_type, message_id=message_id, delivery_mode=2)
        with self._errors():
            self._channel.basic_publish("", queue, body, properties)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        known = self._pika.exceptions
        try:
            yield
        except (known.ChannelClosedByBroker, known.ConnectionClosedByBroker) as error:
            raise EmbeddedBrokerError(
                f"RabbitMQ refuses: {error.reply_text}.", "Check that there is such a queue."
            ) from None
        except (known.AMQPError, OSError) as error:
            raise EmbeddedBrokerError(
                f"The AMQP connection to RabbitMQ failed: {error or type(error).__name__}.", "Look at RabbitMQ's log."
            ) from None
