"""The metrics of all queries of a Spark driver, for Prometheus. Needs the extra ``pyspark-jms[monitoring]``."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.spark.metrics import JmsListener, SourceMetrics

__all__ = ["MetricsServer", "PrometheusExporter"]

_PREFIX = "pyspark_jms_"
_LABELS = ("query", "query_id", "source")


class _Family(NamedTuple):
    name: str
    """Without the prefix. A counter's samples also end in ``_total``."""
    help: str
    value: Callable[[SourceMetrics], float | None]
    is_counter: bool = False
    of_batch: bool = False
    """Of the last batch, also while the query is idle."""


def _start(metrics: SourceMetrics) -> float:
    return metrics.timestamp.timestamp()


_FAMILIES = (
    _Family("lag_messages", "Messages that no finished batch has, as far as the broker tells", lambda f: f.lag),
    _Family("oldest_age_seconds", "Age of the oldest message of the backlog", lambda f: f.backlog_age_seconds),
    _Family(
        "backlog_messages", "Messages in the journal or staging queue whose batch is not done", lambda f: f.backlog
    ),
    _Family("journal_bytes", "Size of the journal", lambda f: f.journal_bytes),
    _Family("in_flight_messages", "Messages received and not acknowledged", lambda f: f.in_flight_messages),
    _Family("in_flight_bytes", "Bytes received and not acknowledged", lambda f: f.in_flight_bytes),
    _Family("queue_messages", "Messages on the queues of the query", lambda f: f.depth),
    _Family("queue_delivering_messages", "Messages in flight to any consumer of the queues", lambda f: f.delivering),
    _Family("queue_consumers", "Consumers of the queues", lambda f: f.consumers),
    _Family("stuck_messages", "Messages in delivery that never reached the source", lambda f: f.stuck_in_delivery),
    _Family("empty_batches", "Batches in a row that got no message that the broker showed", lambda f: f.empty_batches),
    _Family("input_rows_per_second", "Rows a second that arrived", lambda f: f.input_rows_per_second),
    _Family("processed_rows_per_second", "Rows a second that a batch processed", lambda f: f.processed_rows_per_second),
    _Family("batch_seconds", "Duration of the last batch", lambda f: f.batch_seconds, of_batch=True),
    _Family("last_batch_timestamp_seconds", "Start of the last batch", _start, of_batch=True),
    _Family("progress_timestamp_seconds", "Start of the last batch or idle check", _start),
    _Family("received_messages", "Messages received", lambda f: f.received, is_counter=True),
    _Family("acknowledged_messages", "Messages acknowledged", lambda f: f.acknowledged, is_counter=True),
    _Family("redelivered_messages", "Messages received again", lambda f: f.redelivered, is_counter=True),
    _Family("duplicate_messages", "Duplicates that the source dropped", lambda f: f.recognised, is_counter=True),
    _Family("reconnects", "Connections that were lost and opened again", lambda f: f.reconnects, is_counter=True),
    _Family("dead_letters", "Messages sent to the dead-letter queue", lambda f: f.dead_letters, is_counter=True),
    _Family(
        "dropped_messages", "Messages above maxMessageBytes, dropped", lambda f: f.dropped_too_large, is_counter=True
    ),
    _Family("selector_dropped_messages", "Messages dropped by selector", lambda f: f.selector_dropped, is_counter=True),
    _Family("lost_credit_messages", "Messages counted and not delivered", lambda f: f.lost_credit, is_counter=True),
)
_BY_READER: tuple[tuple[str, str, Callable[[SourceMetrics], tuple[int, ...]]], ...] = (
    ("reader_messages", "Messages received by a reader", lambda f: f.received_by_reader),
    ("reader_bytes", "Bytes of messages received by a reader", lambda f: f.received_bytes_by_reader),
)
"""Counters with the label ``reader``."""


@dataclass(frozen=True, slots=True)
class _State:
    """Replaced as a whole by Spark's thread of listeners, so that a request reads it without a lock."""

    names: Mapping[str, str]
    """Query id → name."""
    failed: frozenset[str]
    metrics: Mapping[tuple[str, int], SourceMetrics]
    """By query id and number of the source."""
    batches: Mapping[tuple[str, int], SourceMetrics]
    """The metrics of the last batch, or the first metrics if there was no batch since."""


class PrometheusExporter(JmsListener):
    """A listener that gives the metrics of all queries to ``prometheus_client``.

        exporter = PrometheusExporter()
        spark.streams.addListener(exporter)
        exporter.serve(9464)

    It needs the extra ``pyspark-jms[monitoring]``.
    """

    def __init__(self, registry: Any = None, session: SparkSession | None = None) -> None:
        """``registry``: a ``CollectorRegistry``, by default that of the process. ``session``: as in ``JmsListener``."""
        super().__init__(self._keep, session)
        self._client = _client()
        self._registry = self._client.REGISTRY if registry is None else registry
        self._state = _State({}, frozenset(), {}, {})
        self._registry.register(self)

    def serve(self, port: int, address: str = "127.0.0.1") -> "MetricsServer":
        """Answer ``GET /metrics``. Port 0 selects a free port; address 0.0.0.0 accepts other machines too."""
        return MetricsServer(*self._client.start_http_server(port, address, self._registry))

    # --- called by Spark -----------------------------------------------------------------------

    def _keep(self, metrics: SourceMetrics) -> None:
        state, query_id = self._state, metrics.query_id
        key = query_id, metrics.source
        is_batch = not metrics.is_idle or key not in state.batches
        self._state = _State(
            {**state.names, query_id: metrics.query_name or query_id},
            state.failed - {query_id},
            {**state.metrics, key: metrics},
            {**state.batches, key: metrics} if is_batch else state.batches,
        )

    def onQueryTerminated(self, event: Any) -> None:
        """Show a query that failed as down until it runs again, and remove a query that was stopped."""
        state, query_id = self._state, str(event.id)
        metrics, batches = (
            {key: kept for key, kept in each.items() if key[0] != query_id} for each in (state.metrics, state.batches)
        )
        if event.exception is not None and query_id in state.names:
            self._state = _State(state.names, state.failed | {query_id}, metrics, batches)
        else:
            names = {key: name for key, name in state.names.items() if key != query_id}
            self._state = _State(names, state.failed - {query_id}, metrics, batches)

    # --- called by prometheus_client -----------------------------------------------------------

    def describe(self) -> Iterator[Any]:
        """Describe no metrics: there are none before the first batch."""
        return iter(())

    def collect(self) -> Iterator[Any]:
        state = self._state
        metrics, batches = list(state.metrics.values()), list(state.batches.values())
        up = self._client.core.GaugeMetricFamily(
            f"{_PREFIX}query_up", "1 while the query runs, 0 after it failed", labels=_LABELS[:2]
        )
        for query_id, name in state.names.items():
            up.add_metric([name, query_id], int(query_id not in state.failed))
        yield up
        yield self._info(metrics)
        for family in _FAMILIES:
            yield self._samples(family, batches if family.of_batch else metrics)
        for name, text, values in _BY_READER:
            samples = self._client.core.CounterMetricFamily(_PREFIX + name, text, labels=[*_LABELS, "reader"])
            for each in metrics:
                for reader, value in enumerate(values(each)):
                    samples.add_metric([*_label_values(each), str(reader)], value)
            yield samples

    def _info(self, metrics: list[SourceMetrics]) -> Any:
        info = self._client.core.GaugeMetricFamily(
            f"{_PREFIX}guarantee_info", "1: the guarantee of the query", labels=[*_LABELS, "guarantee", "broker"]
        )
        for each in metrics:
            info.add_metric([*_label_values(each), each.guarantee, each.broker or ""], 1)
        return info

    def _samples(self, family: _Family, metrics: list[SourceMetrics]) -> Any:
        core = self._client.core
        kind = core.CounterMetricFamily if family.is_counter else core.GaugeMetricFamily
        samples = kind(_PREFIX + family.name, family.help, labels=_LABELS)
        for each in metrics:
            value = family.value(each)
            if value is not None:
                samples.add_metric(_label_values(each), value)
        return samples


class MetricsServer:
    def __init__(self, server: Any, thread: Any) -> None:
        self._server, self._thread = server, thread
        self.port: int = server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _label_values(metrics: SourceMetrics) -> list[str]:
    return [metrics.query_name or metrics.query_id, metrics.query_id, str(metrics.source)]


def _client() -> Any:
    try:
        import prometheus_client
        import prometheus_client.core
    except ImportError:
        raise UnsupportedError(
            "prometheus-client is not installed.", "Install it: pip install 'pyspark-jms[monitoring]'."
        ) from None
    return prometheus_client
