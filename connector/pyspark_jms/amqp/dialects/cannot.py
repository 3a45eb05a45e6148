"""``cannot`` of AMQP dialects: what every broker lacks over AMQP, or in this release, and what only some lack."""

from pyspark_jms.jms.features import Feature, Refusal

__all__ = ["NO_TRANSACTIONS", "ONE_ENTITY", "OTHER_BROKER", "OVER_AMQP", "no_exactly_once_writes", "no_topics"]


def no_exactly_once_reads(reason: str) -> Refusal:
    return Refusal(
        f"deliveryGuarantee=exactly-once is given for a read from {{broker}} over AMQP: {reason}.",
        "Leave it out, for at-least-once reads, or read over STOMP with journalLocation, if the broker allows it.",
    )


def no_exactly_once_writes(reason: str) -> Refusal:
    """``reason``: the rest of a sentence about the broker. Their ledger is a value that one connection at a time may
    hold and replace, for which a durable subscription must be a lock (``link.register``).
    """
    return Refusal(
        f"deliveryGuarantee=exactly-once is given for a write over AMQP, and {{broker}} {reason}.",
        "Remove the option, for at-least-once writes, or use Artemis.",
    )


def no_topics(reason: str, remedy: str) -> Refusal:
    return Refusal(f"{reason} So it has no topics to read, and no durable subscriptions.", remedy)


_JOURNAL = Refusal(
    "Option journalLocation is given for a read over AMQP, and a journal keeps STOMP messages only.",
    "Remove it: over AMQP deliveryGuarantee=exactly-once needs no folder. Or read over STOMP: stomp://HOST:61613.",
)
_STREAMS = Refusal("Option streamOffset is given, and {broker} has no streams.", "Remove option streamOffset.")

OVER_AMQP: dict[Feature, Refusal] = {Feature.JOURNAL: _JOURNAL, Feature.STREAMS: _STREAMS}

OTHER_BROKER = OVER_AMQP | {
    Feature.REGISTER: no_exactly_once_reads(
        "a staging queue needs a broker that refuses a second consumer of an unshared durable subscription, and"
        " shows its messages without delivering them. Other brokers than Artemis were not seen to do both"
    ),
    Feature.EXACTLY_ONCE_WRITE: no_exactly_once_writes(
        "may let a connection take a durable subscription over from another one that reads it, so that the"
        " subscription is no lock"
    ),
}
"""Of a broker of which nothing else was seen."""

NO_TRANSACTIONS: dict[Feature, Refusal] = {
    Feature.TRANSACTIONS: Refusal(
        "{broker} has no transactions over AMQP.",
        "Set transaction=none: the broker then confirms each row. The confirmed rows of a failed task stay, and its"
        " next attempt sends them again.",
    ),
    # What each of several connections may receive depends on whether the others live.
    Feature.CONNECTIONS: Refusal(
        "{broker} has no transactions over AMQP, whose answers show that each of several connections is alive.",
        "Use connections=1.",
    ),
    Feature.REGISTER: no_exactly_once_reads("{broker} has no transactions over AMQP"),
    Feature.EXACTLY_ONCE_WRITE: no_exactly_once_writes("has no transactions over AMQP"),
}

ONE_ENTITY = Refusal(
    "A transaction of {broker} has messages of one queue or topic only.",
    "Write to one destination: give option queue or topic, and no column destination. Or set transaction=none.",
)
