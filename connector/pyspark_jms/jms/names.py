"""Names of destinations and subscriptions: what a broker misreads, what a row must not name, and what a pattern means.

Knows no broker and no connection.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark_jms.errors import InvalidDestinationError, InvalidOptionError, JMSError
from pyspark_jms.jms.model import DurableSubscription

__all__ = [
    "AMQP_NODES",
    "ARTEMIS_PROPERTIES",
    "ARTEMIS_QUEUES",
    "CLASSIC_DESTINATIONS",
    "CLASSIC_NAMES",
    "CONNECTOR_QUEUES",
    "JOINING_DOT",
    "SCHEDULED_PROPERTIES",
    "TWO_COLONS",
    "RefusedName",
    "RefusedSubscriptions",
    "has_wildcards",
    "may_receive",
    "require_distinct",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedName:
    """A rule for names that must not reach the broker, because it would not take them for plain names."""

    pattern: str
    """A regular expression; a name in which it is found is refused."""

    reason: str
    """The rest of the error's sentence "The name NAME …"."""

    when_reading: bool = True
    """Whether the rule holds for reading too, and not only for sending."""

    when_sending: bool = True
    """Whether the rule holds for sending too, and not only for reading."""

    remedy: str = "Use another name."
    """The remedy in the error."""

    def check(self, name: str) -> None:
        if re.search(self.pattern, name):
            raise InvalidDestinationError(f"The name {name!r} {self.reason}.", self.remedy)


CONNECTOR_QUEUES = RefusedName(
    pattern=r"pyspark-jms\.",
    reason="is reserved for this connector's own queues, so no row and no moved message may go there",
)
"""The prefix of commit ledgers, staging queues, replies of the management and scratch queues.

At any place in the name: an acceptor of Artemis may remove a prefix such as ``jms.queue.``.
"""

ARTEMIS_QUEUES = RefusedName(
    pattern=r"activemq\.(management|notifications)(::|$)|\$(sys\.|\.artemis\.|ACTIVEMQ_ARTEMIS_)",
    reason="is reserved for management, notifications and other queues of Artemis itself, so rows must not name it",
)
"""The default names, at any place in the name: an acceptor may remove a prefix such as ``/queue/``.

Names with a dollar are those of MQTT sessions, of bridges in a cluster, of federation and of mirrors.
"""

ARTEMIS_PROPERTIES = frozenset(
    {
        "__AMQ_CID",
        "_AMQ_ACTUAL_EXPIRY",
        "_AMQ_BRIDGE_DUP",
        "_AMQ_CONTENT_TYPE",
        "_AMQ_DUPL_ID",
        "_AMQ_INGRESS_TIMESTAMP",
        "_AMQ_LARGE_COMPRESSED",
        "_AMQ_LARGE_SIZE",
        "_AMQ_ORIG_ADDRESS",
        "_AMQ_ORIG_MESSAGE_ID",
        "_AMQ_ORIG_QUEUE",
        "_AMQ_ORIG_ROUTING_TYPE",
        "_AMQ_PREFIX",
        "_AMQ_ROUTING_TYPE",
        "_AMQ_SCHED_DELIVERY",
        "_AMQ_VALIDATED_USER",
        "mqtt.correlation.data",
    }
)
"""Properties that a consumer of Artemis may find: the id of a Java producer's connection, the origin of a message in a
dead-letter or expiry queue, additions of bridges and AMQP, the size of a large message, and the duplicate id, by which
the broker would drop the row or refuse its transaction. The correlation data of MQTT are bytes, which no row can send:
as a text, Artemis delivers the message to no MQTT client.
"""

CLASSIC_NAMES = (
    RefusedName(pattern=",", reason="has a comma, which separates destinations on ActiveMQ Classic"),
    RefusedName(pattern=r"\?", reason="has a question mark, after which ActiveMQ Classic reads options"),
    RefusedName(pattern=r"^\s|\s$", reason="begins or ends with white space, which ActiveMQ Classic removes"),
    RefusedName(
        pattern="[\U00010000-\U0010ffff\0]",
        reason="has a character outside the Basic Multilingual Plane, or U+0000, which its store changes",
    ),
    RefusedName(pattern=r"[*>]", reason="has a wildcard, which is for reading only", when_reading=False),
)

CLASSIC_DESTINATIONS = RefusedName(
    # The broker's plugins ignore case. ActiveMQ.DLQ, the dead-letter queue, is an ordinary queue.
    pattern=r"(?i)(^|/)ActiveMQ\.(Advisory|Agent|Scheduler|Statistics)(\.|$)",
    reason="is reserved for requests to ActiveMQ Classic and for its advisories, so rows must not name it",
)

AMQP_NODES = RefusedName(
    pattern=r"(?i)(^|/)\$(management|cbs|virtualhostProperties)(/|$)",
    reason="is a node by which brokers are managed over AMQP, so rows must not name it",
)
"""The nodes of AMQP Management and of Claims-based Security (OASIS drafts), and Broker-J's for facts of a virtual host.

Also as the last part of an address, where an entity has a node of its own (``orders/$management``).
"""

SCHEDULED_PROPERTIES = frozenset(f"AMQ_SCHEDULED_{word}" for word in ("DELAY", "REPEAT", "PERIOD", "CRON"))
"""The properties that the scheduler of ActiveMQ reads."""

TWO_COLONS = RefusedName(
    pattern="::",
    reason="has two colons: Artemis takes what is before them for an address",
    remedy="Use another character.",
)

JOINING_DOT = RefusedName(
    pattern=r"\.",
    reason="has a dot, and the broker calls the subscription clientId.subscriptionName: other values of the two options"
    " would be the same subscription",
    remedy="Use another character, or move what is before the last dot to the end of clientId: that is the same"
    " subscription.",
)
"""A rule for ``subscriptionName``. Dots of ``clientId`` are clear: the last dot of the full name is the joining one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedSubscriptions:
    """Rules for the topic, and the two parts of the name, of a durable subscription."""

    topics: tuple[RefusedName, ...] = ()
    """Rules for ``topic``."""

    names: tuple[RefusedName, ...] = ()
    """Rules for ``subscriptionName``."""

    names_after_client_id: tuple[RefusedName, ...] = ()
    """Further rules for ``subscriptionName`` with a ``clientId``."""

    client_ids: tuple[RefusedName, ...] = ()
    """Rules for ``clientId``."""

    def check(self, topic: str, durable: DurableSubscription) -> None:
        """``InvalidOptionError``: the broker would take the subscription for another one."""
        after_client_id = self.names_after_client_id if durable.client_id is not None else ()
        for option, value, rules in (
            ("topic", topic, self.topics),
            ("subscriptionName", durable.name, (*self.names, *after_client_id)),
            ("clientId", durable.client_id or "", self.client_ids),
        ):
            for rule in rules:
                if re.search(rule.pattern, value):
                    raise InvalidOptionError(f"Option {option} is {value!r}, which {rule.reason}.", rule.remedy)


# --- wildcards --------------------------------------------------------------------------------------

_ANY_WORDS = frozenset("#>")
"""Wildcards for any number of words: ``#`` of Artemis, ``>`` of ActiveMQ Classic."""

_MANAGED_WILDCARDS = frozenset("*#")
"""Wildcards of Artemis, whose management is asked for queues by name."""


def has_wildcards(queue: str) -> bool:
    """Return whether the name is a pattern on a broker with management: no queue has this name."""
    return not _MANAGED_WILDCARDS.isdisjoint(queue)


def may_receive(read: str, queue: str) -> bool:
    """Return whether a consumer of ``read`` may receive messages sent to ``queue``, on any of the brokers.

    ``read`` may have wildcards: ``*`` for one word, ``#`` (Artemis) and ``>`` (ActiveMQ Classic) for any number of
    words. Both parts of ``ADDRESS::QUEUE`` are compared, because brokers route messages by the address.
    """
    patterns, names = {read, *read.split("::")}, {queue, *queue.split("::")}
    return any(_match(pattern.split("."), name.split(".")) for pattern in patterns for name in names)


def require_distinct(pairs: Iterable[tuple[str, str, JMSError]]) -> None:
    """Raise the error of the first name, as a pattern too, whose consumer may receive what its queue gets."""
    for read, queue, error in pairs:
        if may_receive(read, queue):
            raise error


def _match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] in _ANY_WORDS:
        return any(_match(pattern[1:], words[skipped:]) for skipped in range(len(words) + 1))
    return bool(words) and pattern[0] in {"*", words[0]} and _match(pattern[1:], words[1:])
