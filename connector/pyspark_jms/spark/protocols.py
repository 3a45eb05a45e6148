"""Which protocol the engines speak: the scheme of ``brokerUrl`` says it. STOMP is the only one so far."""

from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.stomp.source import StompSource

__all__ = ["source_protocol"]


def source_protocol(options: SourceOptions) -> SourceProtocol:  # noqa: ARG001  # brokerUrl has one scheme's family
    """For the driver and, with the same options, for every task."""
    return StompSource()
