"""What the connector left at a broker: its own queues with their messages ↔ one JSON file.

    {"queues": [
        {"name": …, "address": …, "routing": "MULTICAST", "max_consumers": 1, "messages": […]},
    ]}

``name`` is that of the queue, which on a topic's address is another one: a durable subscription. A message is the
base64 text of its sections over AMQP, annotations and all.
"""

import base64
import contextlib
import json
from pathlib import Path

from amqp_messages import block_of
from amqp_sending import settings_of

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.link.pull import browse
from pyspark_jms.amqp.wire.types import Target

PREFIX = "pyspark-jms."


def keep(broker, file):
    """Write all queues whose names begin with ``PREFIX``."""
    names = sorted(name for name in broker.server.getActiveMQServerControl().getQueueNames() if name.startswith(PREFIX))
    queues = [_attributes(broker, name) for name in names]
    found = [queue | {"messages": _messages(broker, queue)} for queue in queues]
    Path(file).write_text(json.dumps({"queues": found}, indent=1) + "\n")


def _attributes(broker, name):
    queue = broker.server.locateQueue(name)
    return {
        "name": name,
        "address": str(queue.getAddress()),
        "routing": str(queue.getRoutingType()),
        "max_consumers": int(queue.getMaxConsumers()),
    }


def _messages(broker, queue):
    with contextlib.closing(connect(settings_of(broker))) as connection:
        messages = list(browse(connection, f"{queue['address']}::{queue['name']}"))
    return [base64.b64encode(message).decode() for message in messages]


def put_back(broker, file):
    """Create the queues of a file, and send their messages."""
    kept = json.loads(Path(file).read_text())
    control = broker.server.getActiveMQServerControl()
    for queue in kept["queues"]:
        address, routing, limit = queue["address"], queue["routing"], queue["max_consumers"]
        durable, purge_without_consumers, create_address = True, False, True
        control.createQueue(
            address, routing, queue["name"], None, durable, limit, purge_without_consumers, create_address
        )
        if queue["messages"]:
            _send(broker, queue)


def _send(broker, queue):
    capability = {"ANYCAST": "queue", "MULTICAST": "topic"}[queue["routing"]]
    with Producer(settings_of(broker)) as producer:
        producer.open(Target(address=queue["address"], capabilities=(capability,)))
        producer.send(block_of([base64.b64decode(message) for message in queue["messages"]]))
        producer.commit()
