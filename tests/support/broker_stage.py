"""A broker under its name, with a STOMP client that spells destinations in its form and shares no code with us."""

import functools
import os
import re
import urllib.parse

import pytest
import rawstomp
from broker_rows import access_over
from installed_rabbit import InstalledRabbit

from pyspark_jms.stomp.dialects import DIALECTS

WITHOUT_RABBITMQ = "no rabbitmq-server is installed (apt-get install rabbitmq-server)"


def require_rabbitmq():
    """Skip without RabbitMQ. With PYSPARK_JMS_REQUIRE_RABBITMQ=1, which CI sets, that is a failure."""
    if not InstalledRabbit.installed():
        (pytest.fail if os.environ.get("PYSPARK_JMS_REQUIRE_RABBITMQ") else pytest.skip)(WITHOUT_RABBITMQ)


class Stage:
    def __init__(self, name, broker):
        self.name, self.broker = name, broker
        self.dialect = DIALECTS[name]

    @property
    def access(self):
        return access_over(self.broker, "stomp")

    @functools.cached_property
    def version(self):
        with self.client() as client:
            return re.search(r"/([\d.]+)", client.server)[1]

    def client(self):
        return Client(self)

    def in_flight(self, queue, total):
        """Messages with a client and not acknowledged, of so many that were sent."""
        delivering_count = getattr(self.broker, "delivering_count", None)
        return total - self.broker.message_count(queue) if delivering_count is None else delivering_count(queue)


class Client(rawstomp.RawStomp):
    """A raw STOMP client that spells destinations in the form of this broker. Shares no code with the connector."""

    def __init__(self, stage, timeout=60):
        self._stage = stage
        super().__init__(stage.broker, timeout=timeout)

    def _queue(self, name):
        match self._stage.name:
            case "artemis":
                return name
            case "classic":
                return f"/queue/{name}"
            case "rabbitmq":
                return "/queue/" + urllib.parse.quote(name, safe="")

    def publish(self, topic, *texts, **properties):
        """Persistent texts to a topic. Confirmed, every one of them."""
        spelled = topic if self._stage.name == "artemis" else f"/topic/{topic}"
        self._send(spelled, "MULTICAST", [(list(properties.items()), text) for text in texts])

    def put(self, queue, messages):
        """Persistent messages, (headers, body) each; bytes with a content-length. Confirmed, every one of them."""
        self._send(self._queue(queue), "ANYCAST", messages)

    def _send(self, spelled, kind, messages):
        kind = [("destination-type", kind)] if self._stage.name == "artemis" else []
        for start in range(0, len(messages), 200):  # more receipts at once would wait for room on the way back
            part = messages[start : start + 200]
            for number, (headers, body) in enumerate(part):
                lines = [("destination", spelled), *kind, ("persistent", "true"), ("receipt", f"p{number}")]
                binary = body.encode() if isinstance(body, str) else body
                if isinstance(body, bytes):
                    lines.append(("content-length", len(binary)))
                self.write(rawstomp.frame("SEND", [*lines, *headers], binary))
            for _ in part:
                answer = self.receive()
                assert answer.command == "RECEIPT", answer

    def get(self, queue, wanted, *, ack=True):
        """So many messages of a queue, acknowledged one by one as they come, or left in delivery."""
        kind = [("subscription-type", "ANYCAST")] if self._stage.name == "artemis" else []
        window = [("consumer-window-size", "-1"), ("activemq.prefetchSize", "100"), ("prefetch-count", "100")]
        head = [("id", "g"), ("destination", self._queue(queue)), ("ack", "client-individual")]
        self.write(rawstomp.frame("SUBSCRIBE", [*head, *kind, *window]))
        found = []
        while len(found) < wanted:
            message = self.receive()
            assert message.command == "MESSAGE", message
            found.append(message)
            if ack:
                self.write(rawstomp.frame("ACK", [("id", self._ack_of(message))]))
        return found

    def _ack_of(self, message):
        if self._stage.name == "classic":
            return message.headers["ack"]
        return message.headers["message-id"]

    def __exit__(self, *_):
        self._socket.close()
