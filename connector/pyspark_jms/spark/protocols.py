"""Options → the protocol of their broker. The only place that chooses one; used by the driver and the executors.

The scheme of ``brokerUrl`` decides: all addresses have the same.
"""

from pyspark_jms.amqp.moving import AmqpMover
from pyspark_jms.amqp.sink import AMQP_SINK
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.links import SinkProtocol
from pyspark_jms.source.engine import SourceEngine
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.source.moving import ConnectMover
from pyspark_jms.source.staged.stream import StagedSource
from pyspark_jms.source.stream import StreamSource
from pyspark_jms.stomp.moving import StompMover
from pyspark_jms.stomp.sink import STOMP_SINK
from pyspark_jms.stomp.source import StompSource

__all__ = ["connect_mover", "sink_protocol", "source_engine", "source_protocol"]


def source_engine(options: SourceOptions) -> SourceEngine:
    """For the driver: one of the two ways to read a stream."""
    if options.exactly_once:
        return StagedSource(options, AmqpSource())
    return StreamSource(options, source_protocol(options))


def source_protocol(options: SourceOptions) -> SourceProtocol:
    """For the driver and, with the same options, for every task."""
    return AmqpSource() if _is_amqp(options.connection) else StompSource()


def sink_protocol(options: SinkOptions) -> SinkProtocol:
    """For every task and, with the same options, for the driver."""
    return AMQP_SINK if _is_amqp(options.connection) else STOMP_SINK


def connect_mover(options: SourceOptions) -> ConnectMover:
    """For the command that moves messages from queue to queue."""
    return AmqpMover if _is_amqp(options.connection) else StompMover


def _is_amqp(settings: ConnectionSettings) -> bool:
    return settings.addresses[0].protocol == "amqp"
