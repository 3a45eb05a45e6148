"""The protocols whose growth is measured: the raw clients of each, and the options of a query."""

from collections.abc import Callable
from dataclasses import dataclass

from bench import raw, raw_amqp
from bench.job import Job, Measured
from pyspark_jms.testing import EmbeddedArtemis

__all__ = ["AMQP", "PROTOCOLS", "STOMP", "Protocol"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """``prefix``: of the names of its measurements."""

    prefix: str
    fill: Callable[[Job], Measured]
    drain: Callable[[Job], Measured]
    message_bytes: Callable[[Job], int]
    url: Callable[[EmbeddedArtemis], str]

    def options(self, broker: EmbeddedArtemis) -> dict[str, str]:
        return {"brokerUrl": self.url(broker)}


STOMP = Protocol(
    prefix="",
    fill=raw.fill,
    drain=raw.drain,
    message_bytes=lambda job: len(raw.frame(job, 0)),
    url=lambda broker: broker.url,
)
AMQP = Protocol(
    prefix="amqp.",
    fill=raw_amqp.fill,
    drain=raw_amqp.drain,
    message_bytes=lambda job: len(raw_amqp.message(job, 0)),
    url=lambda broker: broker.amqp_url,
)
PROTOCOLS = {"stomp": STOMP, "amqp": AMQP}
