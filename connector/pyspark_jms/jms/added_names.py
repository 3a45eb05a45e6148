"""Names of properties that a broker adds to messages, for example when it converts them between protocols. Data.

Rows do not have them, and the sink leaves them out. tests/brokers/test_every_protocol.py sends a plain message over
each protocol, reads it over each, and fails if a version of a broker adds another name.
"""

from dataclasses import dataclass

__all__ = ["ANY_BROKER", "ARTEMIS", "CLASSIC", "NATIVE_ID", "RABBITMQ"]

CONVERSION_PREFIX = "JMS_AMQP_"
"""The prefix of properties in which a broker keeps the parts of an AMQP message that JMS does not have."""

NATIVE_ID = "NATIVE_MESSAGE_ID"
"""The property in which Artemis keeps the message-id of an AMQP message. In a message that a client sends, Artemis
makes it the id of the new message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedNames:
    names: frozenset[str]
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.names or name.startswith(self.prefixes or ("\0",))


ANY_BROKER = AddedNames(
    # ActiveMQ.Retain and .Retained: a retained message of MQTT on Classic. scheduledJobId: a message that Classic's
    # scheduler delivered; Classic does not delay a message that has it.
    names=frozenset(
        {
            NATIVE_ID,
            "ActiveMQ.MQTT.QoS",
            "ActiveMQ.Retain",
            "ActiveMQ.Retained",
            "mqtt.message.retain",
            "mqtt.qos.level",
            "scheduledJobId",
        }
    ),
    # __HDR_: the parts of an OpenWire message on Artemis, which gives a message with __HDR_MESSAGE_ID the id of the
    # first one: consumers with failover drop it as a duplicate.
    prefixes=(CONVERSION_PREFIX, "__HDR_"),
)
"""No application has these: they are left out whatever broker the row is sent to. Added by Artemis 2.44.0 and
2.55.0, and by Classic 6.3.1."""

ARTEMIS = AddedNames(
    # The broker returns the headers of SEND as properties (destination-type even twice). __AMQ_CID is the id of a Java
    # producer's connection, _AMQ_LARGE_SIZE the size of a large message, which its producer may have compressed. Over
    # STOMP mqtt.correlation.data is a text such as [B@b2ed272.
    names=ANY_BROKER.names
    | {
        "content-length",
        "destination",
        "destination-type",
        "receipt",
        "transaction",
        "__AMQ_CID",
        "_AMQ_LARGE_COMPRESSED",
        "_AMQ_LARGE_SIZE",
        "mqtt.correlation.data",
    },
    prefixes=ANY_BROKER.prefixes,
)
"""Over STOMP: 2.44.0 and 2.55.0."""

CLASSIC = AddedNames(
    # It stays on a message that a STOMP client has browsed with a transformation.
    names=ANY_BROKER.names | {"content-length", "amq-msg-type", "transformation"},
    prefixes=ANY_BROKER.prefixes,
)
"""Over STOMP; transformation over AMQP too: 6.3.1."""

RABBITMQ = AddedNames(
    names=ANY_BROKER.names
    | {
        "content-length",
        "receipt",
        "transaction",
        "durable",
        "auto-delete",
        "exclusive",
        "content-encoding",  # of AMQP 0.9.1, as are cluster-id and the others that have a column
        "cluster-id",
        "x-reply-to-topic",  # the response topic of MQTT 5
    },
    prefixes=ANY_BROKER.prefixes,
)
"""Over STOMP: 3.10.8 and 4.3.6. Over AMQP 1.0 a message that a STOMP client sent has the headers of its SEND."""
