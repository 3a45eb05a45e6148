"""The broker of a test: the broker at ``JMS_BROKER_URL`` if set, else an embedded broker."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Never
from urllib.parse import urlsplit

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.embedded import EmbeddedArtemis
from pyspark_jms.tools.testing.operations import Broker

__all__ = ["ExternalBroker", "broker"]


class ExternalBroker(Broker):
    """A running broker of another process. Methods that need the broker's JVM raise an error."""

    def __init__(self, url: str, user: str = "artemis", password: str = "artemis") -> None:
        first = urlsplit(url.partition(",")[0])
        if first.hostname is None or first.port is None:
            raise EmbeddedBrokerError(f"JMS_BROKER_URL={url} is not an address.", "Use stomp://HOST:PORT.")
        self.host, self.port = first.hostname, first.port
        self.user, self.password = user, password
        self._url = url

    @property
    def url(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"<ExternalBroker {self.url} user={self.user}>"

    def _refuse(self, _reference: Any = None) -> Never:
        raise EmbeddedBrokerError(
            f"Only an embedded broker has this method, and the broker {self.url} is not embedded.",
            "Unset JMS_BROKER_URL, or skip the test.",
        )

    jvm = gateway = server = property(_refuse)
    _release = _refuse


@contextlib.contextmanager
def broker(**embedded: Any) -> Iterator[Broker]:
    """Yield the broker that JMS_BROKER_URL, _USER and _PASSWORD name, or else ``EmbeddedArtemis(**embedded)``."""
    url = os.environ.get("JMS_BROKER_URL")
    if not url:
        with EmbeddedArtemis(**embedded) as artemis:
            yield artemis
        return
    get = os.environ.get
    yield ExternalBroker(url, get("JMS_BROKER_USER", "artemis"), get("JMS_BROKER_PASSWORD", "artemis"))
