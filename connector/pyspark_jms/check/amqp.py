"""What a broker offers over AMQP: findings of one connection."""

from collections.abc import Iterator

from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.definitions import Target
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.errors import JMSError, UnsupportedError
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["amqp_findings"]


def amqp_findings(settings: ConnectionSettings, scratch_queue: str) -> Iterator[Finding]:
    with Producer(settings) as producer:
        yield Finding(name="connection", value=f"AMQP 1.0 to {producer.server or 'a broker without a name'}")
        yield Finding(name="dialect", value=producer.dialect.name)
        yield _destinations(producer)
        yield _transactions(producer, scratch_queue)


def _destinations(producer: Producer) -> Finding:
    if producer.has_anonymous_relay:
        return Finding(name="column destination", value="rows may name their destinations")
    return Finding(
        name="column destination",
        value="the broker does not route messages by their own destination",
        verdict=Verdict.NOTE,
        advice="Write to one destination: give option queue or topic.",
    )


def _transactions(producer: Producer, scratch_queue: str) -> Finding:
    """Begins a transaction that has no message in it, and ends it."""
    try:
        producer.open(Target(address=scratch_queue, capabilities=("queue",)))
        producer.send(MessageBlock())
        producer.commit()
    except UnsupportedError as error:
        return Finding.of_error("transactions", error)
    except JMSError as error:
        return Finding.of_error("transactions", error, Verdict.PROBLEM)
    return Finding(name="transactions", value="a task is one transaction; acknowledgements are confirmed")
