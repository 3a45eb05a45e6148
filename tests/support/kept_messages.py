"""What the connector left at a broker: its own queues with their messages ↔ one JSON file.

    {"protocol": "amqp", "queues": [
        {"name": …, "address": …, "routing": "MULTICAST", "max_consumers": 1, "messages": […]},
    ]}

``name`` is that of the queue, which on a topic's address is another one: a durable subscription. A message is over AMQP
the base64 text of its sections, annotations and all, and over STOMP ``{"headers": {name: value, …}, "body": text}``
without the headers that belong to a frame and not to the message.
"""

import base64
import json
from pathlib import Path

from amqp_messages import block_of
from amqp_sending import settings_of
from rawstomp import RawStomp

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.link.pull import browse
from pyspark_jms.amqp.wire.definitions import Target

PREFIX = "pyspark-jms."
OF_FRAMES = {"ack", "destination", "destination-type", "expires", "message-id", "persistent", "redelivered"}
OF_FRAMES |= {"subscription", "timestamp", "transaction"}


def keep(broker, file, protocol):
    """Write all queues whose names begin with ``PREFIX``."""
    names = sorted(name for name in broker.server.getActiveMQServerControl().getQueueNames() if name.startswith(PREFIX))
    queues = [_attributes(broker, name) for name in names]
    read = {"amqp": _amqp_messages, "stomp": _stomp_messages}[protocol]
    found = [queue | {"messages": read(broker, queue)} for queue in queues]
    Path(file).write_text(json.dumps({"protocol": protocol, "queues": found}, indent=1) + "\n")


def _attributes(broker, name):
    queue = broker.server.locateQueue(name)
    return {
        "name": name,
        "address": str(queue.getAddress()),
        "routing": str(queue.getRoutingType()),
        "max_consumers": int(queue.getMaxConsumers()),
    }


def _amqp_messages(broker, queue):
    connection = connect(settings_of(broker))
    try:
        messages = list(browse(connection, f"{queue['address']}::{queue['name']}"))
    finally:
        connection.close()
    return [base64.b64encode(message).decode() for message in messages]


def _stomp_messages(broker, queue):
    """They stay in the queue."""
    with RawStomp(broker) as client:
        found = client.read(queue["name"], wanted=broker.message_count(queue["name"]), ack=False)
    return [
        {
            "headers": {name: value for name, value in message.headers.items() if name not in OF_FRAMES},
            "body": message.body.decode(),
        }
        for message in found
    ]


def put_back(broker, file):
    """Create the queues of a file, and send their messages."""
    kept = json.loads(Path(file).read_text())
    send = {"amqp": _send_over_amqp, "stomp": _send_over_stomp}[kept["protocol"]]
    control = broker.server.getActiveMQServerControl()
    for queue in kept["queues"]:
        address, routing, limit = queue["address"], queue["routing"], queue["max_consumers"]
        durable, purge_without_consumers, create_address = True, False, True
        control.createQueue(
            address, routing, queue["name"], None, durable, limit, purge_without_consumers, create_address
        )
        if queue["messages"]:
            send(broker, queue)


def _send_over_amqp(broker, queue):
    capability = {"ANYCAST": "queue", "MULTICAST": "topic"}[queue["routing"]]
    with Producer(settings_of(broker)) as producer:
        producer.open(Target(address=queue["address"], capabilities=(capability,)))
        producer.send(block_of([base64.b64decode(message) for message in queue["messages"]]))
        producer.commit()


def _send_over_stomp(broker, queue):
    with RawStomp(broker) as client:
        client.send(queue["name"], [(message["headers"].items(), message["body"]) for message in queue["messages"]])
