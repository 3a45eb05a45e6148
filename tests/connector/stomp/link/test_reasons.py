import pytest

from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    SubscriptionInUseError,
    UnconvertibleMessageError,
)
from pyspark_jms.network.address import Address
from pyspark_jms.stomp.dialects import ARTEMIS
from pyspark_jms.stomp.link.reasons import error_of

PLAIN, TLS = Address("host", 1), Address("host", 1, tls=True)


SAID = [
    ("Security Error occurred: User name [a] or password is invalid", JMSSecurityError, "Check user and password"),
    ("AMQ339016 Error creating subscription 1", JMSSecurityError, "may not consume from this destination, or"),
    ("AMQ229032 User lim does not have permission='CREATE_ADDRESS' on address x", JMSSecurityError, "Check user"),
    ('Invalid selector "a = 1 OR"', InvalidSelectorError, "Check the selector"),
    ("Selector cannot be empty", InvalidSelectorError, "Check the selector"),
    ("AMQ339001 Destination does not exist x", InvalidDestinationError, "is named TOPIC::QUEUE"),
    (
        "AMQ229014: Did not receive data from x within the 60000ms connection TTL",
        ConnectionLostError,
        "received nothing from this client",
    ),
    ("AMQ339017 Error unsubscribing 1", SubscriptionInUseError, "Stop other readers"),
    ("AMQ339011 Error sending message", BrokerError, "may not send to the destination, or its address is full"),
    ("AMQ339025 failed to ack because no message with id 1", BrokerError, "the broker's log"),
    ("", BrokerError, "the broker's log"),
]


@pytest.mark.parametrize(("text", "error", "remedy"), SAID)
@pytest.mark.parametrize("dialect", [ARTEMIS, None])
def test_what_an_error_frame_means(text, error, remedy, dialect):
    found = error_of(PLAIN, text, dialect)
    assert type(found) is error
    assert (text or "nothing") in found.fact
    assert remedy in found.remedy


def test_a_message_that_cannot_be_sent_over_stomp():
    text = "consumer with ID ServerConsumerImpl [id=7, filter=null, binding=…, closed=true] disconnected by server"
    found = error_of(PLAIN, text, ARTEMIS)
    assert type(found) is UnconvertibleMessageError
    assert "ServerConsumerImpl" not in str(found)
    assert "over AMQP, where the message is a row" in found.remedy


@pytest.mark.parametrize(
    "dump",
    [
        "CoreMessage[messageID=0, durable=true, properties=TypedProperties[card=SECRET]]",
        "LargeServerMessage[messageID=0, properties=TypedProperties[card=SECRET]]",
        "LargeServerMessageImpl[messageID=0, card=SECRET",
        "CoreMessage[a=b\nSECRET\n]",
    ],
)
def test_a_message_in_the_text_is_cut_off(dump):
    found = error_of(PLAIN, f"AMQ339011 Error sending message {dump}", ARTEMIS)
    assert "SECRET" not in str(found)
    assert "AMQ339011 Error sending message" in found.fact


def test_a_long_text_is_cut():
    assert len(str(error_of(PLAIN, "x" * 10_000, ARTEMIS))) < 500
