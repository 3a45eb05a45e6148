"""What is found out about a broker: connection, clock, management, and the guarantees that its dialect allows."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing

from pyspark_jms.amqp.dialects import Dialect as AmqpDialect
from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.management import describe_queue, open_amqp_management
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import JMSError, UnsupportedError
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.queue_facts import look_up_queues
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.sentences import counted
from pyspark_jms.stomp.link.connection import Connection
from pyspark_jms.tools.check.findings import Finding, Verdict, note, problem
from pyspark_jms.tools.check.scratch_queue import Clock, trusts_selectors

__all__ = [
    "amqp_findings",
    "clock_finding",
    "described_queue",
    "guarantee_findings",
    "open_management",
    "read_clock",
    "stomp_findings",
]

_CLOCKS_MAY_DIFFER_MS = 1_000
"""The difference of the broker's and the driver's clocks that AvailableNow tolerates."""

_LIMIT_ADVICE = (
    "A driver that is killed counts as one redelivery of each message in flight, a stopped query does not. After the"
    " limit the broker drops the message, or dead-letters it if the queue has a dead-letter exchange. Raise"
    " delivery-limit by a policy, or give the queue a dead-letter exchange."
)
_STREAM_ADVICE = "Read it with spark.readStream and option streamOffset: the checkpoint then has the offset."
_WITHOUT_TRANSACTIONS = note(
    "transactions",
    "the broker has none: it confirms each row, and no acknowledgement. Reading and writing are at-least-once",
    "The rows that a failed task sent stay on the broker, and the next attempt sends them again. Messages that were"
    " read are read again if the broker was killed before it stored their acknowledgements.",
)


def stomp_findings(link: Connection, user: str | None) -> Iterator[Finding]:
    yield Finding("connection", f"{link.address}, {f'as {user}' if user else 'without a user'}")
    yield Finding("broker", f"{link.server or 'no server header'}; dialect {link.dialect.name}")


# --- management and clock, over either protocol ------------------------------------------------------


def open_management(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings
) -> tuple[ManagementLink | None, Finding]:
    """Return a link on which the first management request succeeded, or None and the reason."""
    link = None
    try:
        link = open_link(settings)
        link.attribute(link.words.broker_resource, link.words.version)
    except JMSError as error:
        if link is not None:
            link.close()
        remedy = f"{error.remedy} Queries do not need it; without it the check cannot inspect a queue."
        return None, Finding.of_error("management", error, remedy=remedy)
    return link, Finding("management", "this user has the permission for management")


def read_clock(management: ManagementLink | None) -> Clock | None:
    if management is None:
        return None
    before = time.time() * 1000
    try:
        there = float(management.attribute(management.words.broker_resource, management.words.clock))
    except JMSError:
        return None
    return before, there, time.time() * 1000


def clock_finding(clock: Clock | None) -> Finding:
    if clock is None:
        return note("clock", "the broker's clock could not be read")
    before, there, after = clock
    ahead = there - after if there > after else min(there - before, 0.0)
    details = {"aheadMilliseconds": round(ahead)}
    if abs(ahead) <= _CLOCKS_MAY_DIFFER_MS:
        value = f"the clocks of the broker and this machine differ by less than {_CLOCKS_MAY_DIFFER_MS / 1000:g} s"
        return Finding("clock", value, details=details)
    return problem(
        "clock",
        f"the broker's clock is {abs(ahead) / 1000:.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's",
        "Synchronise the clocks: a time to live starts at this machine's clock and ends at the broker's, and"
        " AvailableNow compares both clocks to find the messages that are older than its start.",
        details,
    )


# --- what is guaranteed over STOMP -------------------------------------------------------------------

_OFFERED = (
    ("reading, journal", Feature.JOURNAL, "exactly-once, with deliveryGuarantee=exactly-once and journalLocation"),
    ("writing", Feature.TRANSACTIONS, "at-least-once; the rows of a task are one transaction"),
    ("writing, ledger", Feature.EXACTLY_ONCE_WRITE, "exactly-once"),
)


def guarantee_findings(dialect: BrokerDialect) -> Iterator[Finding]:
    yield Finding("reading", "at-least-once")
    for name, feature, value in _OFFERED:
        if (refusal := dialect.cannot.get(feature)) is None:
            yield Finding(name, value)
        else:
            error = refusal.error(dialect.name)
            yield note(name, f"at-least-once only: {error.fact}", error.remedy)
    readers = "several queries can share" if dialect.can(Feature.SHARED) else "one query at a time can read"
    yield Finding("topics", f"a durable subscription has the guarantees of a queue; {readers} a subscription")


# --- what a broker offers over AMQP ------------------------------------------------------------------


def amqp_findings(settings: ConnectionSettings, scratch_queue: str) -> Iterator[Finding]:
    with Producer(settings) as producer:
        yield Finding("connection", f"AMQP 1.0 to {producer.server or 'a broker without a name'}")
        yield Finding("dialect", producer.dialect.name)
        if producer.has_anonymous_relay:
            yield Finding("column destination", "rows may name their destinations")
        else:
            value = "the broker does not route messages by their own destination"
            yield note("column destination", value, "Write to one destination: give option queue or topic.")
        yield _transactions(producer, settings, scratch_queue)
        yield from _proven(producer.dialect)


def _transactions(producer: Producer, settings: ConnectionSettings, scratch_queue: str) -> Finding:
    """Begin a transaction that has no message in it, and end it."""
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
    return Finding("transactions", "a task is one transaction; acknowledgements are confirmed")


def _proven(dialect: AmqpDialect) -> Iterator[Finding]:
    """Return what the dialect trusts the broker with, because tests have seen this kind of broker do it."""
    if dialect.browses:
        yield Finding("batch reads", "show messages without delivering them")
    else:
        yield note(
            "batch reads",
            "receive messages and give them back: it is not proven that this broker shows them otherwise",
            "While spark.read or pyspark-jms peek runs, other consumers of the queue do not get these messages.",
        )
    if trusts_selectors(dialect):
        yield Finding("selectors", "are evaluated by the broker")
    else:
        value = "are evaluated in Spark only, with selectorInSpark=residual"
        yield note("selectors", value, "Messages that do not match are consumed and dropped.")
    if dialect.default_redeliveries is not None:
        value = f"of a quorum queue: {dialect.default_redeliveries}, if the queue and its policies set none"
        yield note("redelivery limit", value, _LIMIT_ADVICE)


def described_queue(settings: ConnectionSettings, queue: str) -> Finding | None:
    """Return what a broker without other management tells of a queue, or None if it tells nothing."""
    with closing(connect(settings)) as connection:
        dialect = connection.dialect
    address = dialect.send.source_address(DestinationKind.QUEUE, queue)
    facts = describe_queue(settings, address) if dialect.can(Feature.STREAMS) else None
    if facts is None:
        return None
    details: dict[str, object] = {"type": facts.kind, "messages": facts.messages}
    value, advice = f"{queue}: a {facts.kind} queue, {counted(facts.messages, 'waiting message')}", ""
    if facts.kind == "quorum":
        limit = details["redeliveries"] = facts.arguments.get("x-delivery-limit", dialect.default_redeliveries)
        value, advice = f"{value}, redelivery limit {limit} if no policy sets another", _LIMIT_ADVICE
    elif facts.kind == "stream":
        advice = _STREAM_ADVICE
    return Finding("queue", value, Verdict.NOTE if advice else Verdict.FINE, advice, details)
