"""The registers that a read whose tasks receive has left at a broker."""

import uuid

import amqp_sending
from bare_query import BareQuery
from streaming import access

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.planner import ReaderSource
from pyspark_jms.source.readers.task import read_reader


class ReaderQuery(BareQuery):
    def __init__(self, broker, **options):
        amqp_sending.settings_of(broker)  # skips without AMQP
        given = access(broker) | {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once", "readers": "1"}
        super().__init__(
            SourceOptions.parse(given | {key: str(each) for key, each in options.items() if each is not None})
        )
        self.start()

    def begin(self):
        """A durable subscription is made, and keeps what is sent from now on."""
        assert not self.plan()

    def start(self):
        """A new driver, with the logs of the one before."""
        self.source = ReaderSource(self.options, AmqpSource())

    def read(self, task):
        return [row for part in read_reader(task, self.options, AmqpSource()) for row in part.to_pylist()]


def left_registers(broker, queue, *texts, readers=2, **options):
    """The base of the registers of a query that has read these messages, and has ended. Its last batch is in them."""
    base = f"pyspark-jms.staging.{uuid.uuid4().hex[:8]}"
    running = ReaderQuery(broker, queue=queue, readers=readers, stagingQueue=base, **options)
    try:
        amqp_sending.put(broker, queue, *texts)
        assert len(running.texts(len(texts))) == len(texts)
    finally:
        running.source.stop()
    return base
