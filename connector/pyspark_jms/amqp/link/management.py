"""Management requests over AMQP: a message to the broker, and its reply on a topic for the replies of all clients."""

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.senders import await_credit
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import APPLICATION_PROPERTIES, PROPERTIES, VALUE, sections
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.types import Source, Target
from pyspark_jms.amqp.wire.values import Described, decode, encode
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.errors import BrokerError, JMSSecurityError
from pyspark_jms.management.link import ManagementLink, Reply, require_words
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["AmqpManagementLink"]

_CREDIT = 1_000
_REPLY_TO, _CORRELATION_ID = 4, 5


class AmqpManagementLink(ManagementLink):
    def __init__(self, settings: ConnectionSettings, connection: Connection | None = None) -> None:
        """``connection``: one that is open already, and belongs to this link from now on."""
        self._id, self._requests = uuid.uuid4().hex, 0
        # Without the client id: the connection of the query uses it.
        self._connection = connection or connect(replace(settings, client_id=None))
        dialect = self._connection.dialect
        try:
            words = require_words(dialect.management, dialect.name, "AMQP")
            super().__init__(settings, words, self._connection.address)
            self._attach()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def _attach(self) -> None:
        with self._connection.core() as session:
            self._replies = session.link(Receiver, f"replies-{self._id}")
            self._replies.attach_to(self._reply_source())
            self._sender = session.link(Sender, f"requests-{self._id}")
            self._sender.attach_to(Target(address=self.words.address))
        try:
            self._connection.await_attached(self._replies)
            self._connection.await_attached(self._sender)
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None

    def _reply_source(self) -> Source:
        if not self.words.reply_address:
            return Source(dynamic=True, expiry_policy="link-detach", capabilities=("temporary-queue",))
        return Source(address=self.words.reply_address, capabilities=("topic",))

    def _exchange(self, headers: dict[str, str], body: str) -> Reply:
        properties, value = self._ask(headers, body)
        succeeded = properties.get(self.words.success_header)
        return Reply(succeeded in {True, "true"}, str(value or "").encode())

    def _ask(self, headers: Mapping[str, str], body: Any) -> tuple[dict[str, Any], Any]:
        """Send a request, and return the application properties and the value of its reply."""
        self._requests += 1
        correlation = f"{self._id}-{self._requests}"
        source = self._replies.remote_source
        reply_to = self.words.reply_address or (source.address if source is not None else None)
        message = encode(Described(PROPERTIES, [None] * _REPLY_TO + [reply_to, correlation]))
        message += encode(Described(APPLICATION_PROPERTIES, dict(headers))) + encode(Described(VALUE, body))
        await_credit(self._connection, self._sender, "requests")
        with self._connection.core():
            self._replies.grant(_CREDIT)
            self._sender.send(MessageBlock(message, ends=index_of(np.array([len(message)]))), 0, 1, settled=False)
        return self._reply(correlation)

    def _reply(self, correlation: str) -> tuple[dict[str, Any], Any]:
        deadline = time.monotonic() + self._timeout
        while True:
            for message in self._arrived(deadline):
                found = {section.code: decode(message, section.value, section.end)[0] for section in sections(message)}
                if _item(found.get(PROPERTIES), _CORRELATION_ID) == correlation:
                    return found.get(APPLICATION_PROPERTIES, {}), found.get(VALUE)

    def _arrived(self, deadline: float) -> Iterator[bytes]:
        connection, transfers = self._connection, self._replies.transfers
        with connection.condition:
            while not len(transfers):
                connection.check()
                connection.check_link(self._replies)
                connection.check_link(self._sender)
                if self._sender.rejection is not None:
                    raise self._refused()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._no_reply()
                connection.condition.wait(left)
            block = transfers.take()
        with connection.core():
            self._replies.accept(block.ids)
        return (block.message(index) for index in range(len(block)))


def _item(fields: Any, number: int) -> Any:
    return fields[number] if isinstance(fields, list) and number < len(fields) else None
