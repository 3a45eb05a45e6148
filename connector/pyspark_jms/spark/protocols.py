"""The options of a read or a write → the protocol of their broker, and the engine of a streaming read.

The scheme of ``brokerUrl`` decides: all addresses have the same. Each function imports the code of one protocol, which
takes a tenth of a second of CPU or more: Spark starts many processes, and ends those that were idle for a minute.
The interfaces are imported for type checkers only: they would load the columns and, with the first array of pyarrow,
pandas (38 MB).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions

if TYPE_CHECKING:
    from pyspark_jms.sink.links import ConnectSink
    from pyspark_jms.source.links import Reading
    from pyspark_jms.source.readers.reader_input import ReaderInput
    from pyspark_jms.source.task_inputs import TaskInput

__all__ = [
    "SourceEngine",
    "connect_sink",
    "reading_of",
    "source_engine",
]


class SourceEngine(Protocol):
    """In the streaming runner. Offsets are the dictionaries that Spark logs."""

    def initial_offset(self) -> dict[str, Any]: ...

    def drain(self) -> None:
        """Read only what was sent before the first ``latest_offset`` (Trigger.AvailableNow)."""

    def latest_offset(self, start: dict[str, Any]) -> dict[str, Any]: ...

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[TaskInput | ReaderInput]: ...

    def commit(self, end: dict[str, Any]) -> None: ...

    def progress(self) -> dict[str, object]:
        """The metrics of ``progress.sources[].latestOffset``."""

    def stop(self) -> None: ...


def source_engine(options: SourceOptions) -> SourceEngine:
    """Return, for the driver, one of the ways to read a stream."""
    if options.exactly_once and _is_amqp(options.connection):
        from pyspark_jms.source.readers.planner import ReaderSource

        return ReaderSource(reading_of(options))
    if options.stream_offset is not None:
        from pyspark_jms.source.logs import LogSource

        return LogSource(options)
    from pyspark_jms.source.stream import StreamSource

    return StreamSource(reading_of(options))


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
