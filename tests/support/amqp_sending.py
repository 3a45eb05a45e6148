"""Messages that an AMQP client sends."""

from amqp_messages import TRUE, block_of, list_, properties, section, string, timestamp
from streaming import access

from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.source import SourceOptions


def settings_of(running, /, **options):
    given = access(running, "amqp") | {"queue": "q"} | options
    return SourceOptions.parse(given).connection


def put(broker, name, *texts, kind="queue", **parts):
    """Send texts with the message-ids ``ID:0``, ``ID:1``, … as one transaction."""
    messages = [
        section(0x70, list_(TRUE))
        + properties(message_id=string(f"ID:{number}"), creation_time=timestamp(1_700_000_000_000), **parts)
        + section(0x77, string(text))
        for number, text in enumerate(texts)
    ]
    put_encoded(broker, name, messages, kind=kind)


def put_encoded(broker, name, messages, *, kind="queue"):
    """Send whole messages as one transaction."""
    with Producer(settings_of(broker)) as producer:
        producer.transactions.begin()
        producer.open(Target(address=name, capabilities=(kind,)))
        producer.send(block_of(messages))
        producer.commit()


def subscription_to(name, *, kind="queue", window_bytes=1 << 20, **more):
    return Subscription(destination=Destination.parse(f"{kind}://{name}"), window_bytes=window_bytes, **more)
