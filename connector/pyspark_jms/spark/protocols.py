"""The options of a read or a write → the protocol of their broker, and the query of a streaming read.

The scheme of ``brokerUrl`` decides: all addresses have the same. Each function imports the code of one protocol, which
takes a tenth of a second of CPU or more: Spark starts many processes, and ends those that were idle for a minute.
The interfaces are imported for type checkers only: they would load the columns and, with the first array of pyarrow,
pandas (38 MB).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions

if TYPE_CHECKING:
    from pyspark_jms.sink.links import ConnectSink
    from pyspark_jms.source.links import Reading
    from pyspark_jms.source.query import Query

__all__ = ["connect_sink", "query_of", "reading_of"]


def query_of(reading: Reading) -> Query:
    """Return, for the driver, the query that reads a stream, with the store of its batches."""
    from pyspark_jms.source.query import Query

    options = reading.options
    if options.exactly_once and _is_amqp(options.connection):
        from pyspark_jms.source.stores.register import RegisterStore

        return Query(reading, RegisterStore)
    if options.stream_offset is not None:
        from pyspark_jms.source.stores.log import LogStore

        return Query(reading, LogStore)
    from pyspark_jms.source.stores.received import ReceivedStore

    return Query(reading, ReceivedStore)


def reading_of(options: SourceOptions) -> Reading:
    """Add the protocol, on the driver and, with the same options, in every task."""
    from pyspark_jms.source.links import Reading

    if _is_amqp(options.connection):
        from pyspark_jms.amqp.source import AmqpSource

        return Reading(options, AmqpSource())
    from pyspark_jms.stomp.source import StompSource

    return Reading(options, StompSource())


def connect_sink(options: SinkOptions) -> ConnectSink:
    """Return what opens the link of a task."""
    if _is_amqp(options.connection):
        from pyspark_jms.amqp.sink import AmqpSinkLink

        return AmqpSinkLink
    from pyspark_jms.stomp.sink import StompSinkLink

    return StompSinkLink


def _is_amqp(settings: ConnectionSettings) -> bool:
    return settings.protocol == "amqp"
