"""How a broker answers questions about itself over STOMP. Data: ``link.management`` asks, others read the answers."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_jms.jms.model import BodyType

__all__ = ["ARTEMIS_MANAGEMENT", "Management"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Management:
    address: str
    """Where questions go; what answers them is the broker itself."""

    reply_address: str
    """Where answers come to. A topic: its subscriptions are ours alone and leave no queue behind."""

    resource_header: str
    attribute_header: str
    operation_header: str
    success_header: str
    """Of an answer: ``true``, or the question could not be answered."""

    body_types: Mapping[int, BodyType]
    """The broker's code of a message's body."""

    losses: Mapping[BodyType, str]
    """What its STOMP makes of a Java producer's body of that type, where it does not carry it."""


# Codes and losses as measured on 2.44.0 and 2.55.0 (docs/typed-messages.md, "What arrives as what").
ARTEMIS_MANAGEMENT = Management(
    address="activemq.management",
    reply_address="pyspark-jms.management",
    resource_header="_AMQ_ResourceName",
    attribute_header="_AMQ_Attribute",
    operation_header="_AMQ_OperationName",
    success_header="_AMQ_OperationSucceeded",
    body_types={
        0: BodyType.MESSAGE,
        2: BodyType.OBJECT,
        3: BodyType.TEXT,
        4: BodyType.BYTES,
        5: BodyType.MAP,
        6: BodyType.STREAM,
    },
    losses={
        BodyType.MAP: "arrive as an empty or garbled text",
        BodyType.OBJECT: "arrive as an empty text",
        BodyType.STREAM: "arrive as an empty or garbled text or, mostly, not at all: such a message stays in delivery"
        " until its reader ends",
    },
)
