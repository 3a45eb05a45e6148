"""What a broker offers over AMQP: findings of one connection."""

from collections.abc import Iterator
from contextlib import closing

from jms_selector.syntax.dialects import dialect_of
from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.management import describe_queue, open_amqp_management
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import JMSError, UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.management.queue_facts import look_up_queues
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.sentences import counted
from pyspark_jms.tools.check.findings import Finding, Verdict

__all__ = ["amqp_findings", "described_queue"]

_LIMIT_ADVICE = (
    "A driver that is killed counts as one redelivery of each message in flight, a stopped query does not. After the"
    " limit the broker drops the message, or dead-letters it if the queue has a dead-letter exchange. Raise"
    " delivery-limit by a policy, or give the queue a dead-letter exchange."
)
_STREAM_ADVICE = "Read it with spark.readStream and option streamOffset: the checkpoint then has the offset."
_WITHOUT_TRANSACTIONS = Finding(
    name="transactions",
    value="the broker has none: it confirms each row, and no acknowledgement. Reading and writing are at-least-once",
    verdict=Verdict.NOTE,
    advice="The rows that a failed task sent stay on the broker, and the next attempt sends them again. Messages that"
    " were read are read again if the broker was killed before it stored their acknowledgements.",
)


def amqp_findings(settings: ConnectionSettings, scratch_queue: str) -> Iterator[Finding]:
    with Producer(settings) as producer:
        yield Finding(name="connection", value=f"AMQP 1.0 to {producer.server or 'a broker without a name'}")
        yield Finding(name="dialect", value=producer.dialect.name)
        yield _destinations(producer)
        yield _transactions(producer, settings, scratch_queue)
        yield from _proven(producer.dialect)


def _destinations(producer: Producer) -> Finding:
    if producer.has_anonymous_relay:
        return Finding(name="column destination", value="rows may name their destinations")
    return Finding(
        name="column destination",
        value="the broker does not route messages by their own destination",
        verdict=Verdict.NOTE,
        advice="Write to one destination: give option queue or topic.",
    )


def _transactions(producer: Producer, settings: ConnectionSettings, scratch_queue: str) -> Finding:
    """Begins a transaction that has no message in it, and ends it."""
    if not producer.dialect.has_transactions:
        return _WITHOUT_TRANSACTIONS
    try:
        look_up_queues(open_amqp_management, settings, [scratch_queue])
        address = producer.dialect.send.target_address(DestinationKind.QUEUE, scratch_queue)
        producer.open(Target(address=address, capabilities=("queue",)))
        producer.send(MessageBlock())
        producer.commit()
    except UnsupportedError as error:
        return Finding.of_error("transactions", error)
    except JMSError as error:
        return Finding.of_error("transactions", error, Verdict.PROBLEM)
    return Finding(name="transactions", value="a task is one transaction; acknowledgements are confirmed")


def _proven(dialect: Dialect) -> Iterator[Finding]:
    """Return what the dialect trusts the broker with, because tests have seen this kind of broker do it."""
    if dialect.browses:
        yield Finding(name="batch reads", value="show messages without delivering them")
    else:
        yield Finding(
            name="batch reads",
            value="receive messages and give them back: it is not proven that this broker shows them otherwise",
            verdict=Verdict.NOTE,
            advice="While spark.read or pyspark-jms peek runs, other consumers of the queue do not get these messages.",
        )
    if dialect.selector_dialect is not None and not dialect_of(dialect.selector_dialect).unknown_broker:
        yield Finding(name="selectors", value="are evaluated by the broker")
    else:
        yield Finding(
            name="selectors",
            value="are evaluated in Spark only, with selectorInSpark=residual",
            verdict=Verdict.NOTE,
            advice="Messages that do not match are consumed and dropped.",
        )
    if dialect.default_redeliveries is not None:
        yield Finding(
            name="redelivery limit",
            value=f"of a quorum queue: {dialect.default_redeliveries}, if the queue and its policies set none",
            verdict=Verdict.NOTE,
            advice=_LIMIT_ADVICE,
        )


def described_queue(settings: ConnectionSettings, queue: str) -> Finding | None:
    """Return what a broker without other management tells of a queue, or None if it tells nothing."""
    with closing(connect(settings)) as connection:
        dialect = connection.dialect
    address = dialect.send.source_address(DestinationKind.QUEUE, queue)
    facts = describe_queue(settings, address) if dialect.can(Feature.STREAMS) else None
    if facts is None:
        return None
    limit = facts.arguments.get("x-delivery-limit", dialect.default_redeliveries)
    of_limit = f", redelivery limit {limit} if no policy sets another" if facts.kind == "quorum" else ""
    return Finding(
        name="queue",
        value=f"{queue}: a {facts.kind} queue, {counted(facts.messages, 'waiting message')}{of_limit}",
        verdict=Verdict.NOTE if of_limit or facts.kind == "stream" else Verdict.FINE,
        advice=_STREAM_ADVICE if facts.kind == "stream" else _LIMIT_ADVICE if of_limit else "",
        details={"type": facts.kind, "messages": facts.messages} | ({"redeliveries": limit} if of_limit else {}),
    )
