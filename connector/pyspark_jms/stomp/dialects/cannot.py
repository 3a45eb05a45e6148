"""``cannot`` of STOMP dialects: what every broker lacks over STOMP, and what only some lack."""

from pyspark_jms.jms.features import Feature, Refusal

__all__ = ["NO_STABLE_IDS", "OVER_STOMP"]

OVER_STOMP: dict[Feature, Refusal] = {
    Feature.STREAMS: Refusal(
        "Option streamOffset is given, and only queues are streams, and only over AMQP.",
        "Use brokerUrl amqp://HOST:5672 and option queue, or remove streamOffset.",
    ),
    # STOMP cannot acknowledge a message and send another one in one transaction that the broker confirms.
    Feature.REGISTER: Refusal(
        "deliveryGuarantee=exactly-once is given for a read over STOMP without journalLocation, and STOMP has no"
        " other place for the messages of a batch.",
        "Give journalLocation, a folder that outlives the driver, or read over AMQP, which needs no folder:"
        " amqp://HOST:5672.",
    ),
    Feature.STAGING_QUEUE: Refusal(
        "Option readers or stagingQueue is given for a read over STOMP, which cannot move messages to a staging queue.",
        "Remove it and use journalLocation, a folder that outlives the driver, or read over AMQP: amqp://HOST:5672.",
    ),
    # A COMMIT that is in the network when its task is repeated can be carried out after the repetition has looked.
    Feature.EXACTLY_ONCE_WRITE: Refusal(
        "deliveryGuarantee=exactly-once is given for a write over STOMP, which cannot fence a COMMIT that is still"
        " in the network: a repeated task could send its rows a second time.",
        "Write over AMQP to Artemis, which speaks it on the same broker: amqp://HOST:5672. Or remove the option,"
        " for at-least-once writes.",
    ),
}

NO_STABLE_IDS = Refusal(
    "{broker} gives a message a new id at each delivery, so an exactly-once read could not recognise a redelivered"
    " message in its journal.",
    "Remove deliveryGuarantee and journalLocation: over STOMP this broker allows at-least-once reads only.",
)
"""A journal keeps messages until it has recognised each redelivery."""
