"""Options → the protocol of their broker. The only place that chooses one; the driver and the executors both ask here.

The scheme of ``brokerUrl`` decides. All schemes of today are STOMP's.
"""

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.links import SinkProtocol
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.stomp.sink import STOMP_SINK
from pyspark_jms.stomp.source import StompSource

__all__ = ["sink_protocol", "source_protocol"]


def source_protocol(options: SourceOptions) -> SourceProtocol:  # noqa: ARG001  # brokerUrl has one scheme's family
    """For the driver and, with the same options, for every task."""
    return StompSource()


def sink_protocol(options: SinkOptions) -> SinkProtocol:  # noqa: ARG001  # brokerUrl has one scheme's family
    """For every task and, with the same options, for the driver."""
    return STOMP_SINK
