"""Which broker a test talks to: the one ``JMS_BROKER_URL`` names, else an embedded one."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Never

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing.embedded import EmbeddedArtemis
from pyspark_jms.testing.operations import Broker

__all__ = ["ExternalBroker", "broker"]


@dataclass(frozen=True)
class ExternalBroker(Broker):
    """A running broker somebody else looks after. What needs its JVM is refused."""

    url: str
    user: str = "artemis"
    password: str = field(default="artemis", repr=False)

    @property
    def jvm(self) -> Any:
        self._refuse()

    @property
    def server(self) -> Any:
        self._refuse()

    def _release(self, _reference: Any) -> None:
        self._refuse()

    def _refuse(self) -> Never:
        raise EmbeddedBrokerError(
            f"Only the embedded broker can answer this; JMS_BROKER_URL names {self.url}.",
            "Unset JMS_BROKER_URL, or leave this test out.",
        )


@contextlib.contextmanager
def broker(**embedded: Any) -> Iterator[Broker]:
    """The broker of JMS_BROKER_URL, JMS_BROKER_USER, JMS_BROKER_PASSWORD; else ``EmbeddedArtemis(**embedded)``."""
    url = os.environ.get("JMS_BROKER_URL")
    if not url:
        with EmbeddedArtemis(**embedded) as artemis:
            yield artemis
        return
    get = os.environ.get
    yield ExternalBroker(url, get("JMS_BROKER_USER", "artemis"), get("JMS_BROKER_PASSWORD", "artemis"))
