"""The progress of a query → typed metrics of its jms sources. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["SourceMetrics", "metrics_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMetrics:
    """The metrics of one source at the end of a batch, or while no message arrives.

    A metric is None if the source does not have it. Counts begin with the start of the query.
    """

    query_id: str
    run_id: str
    query_name: str | None
    source: int
    """The number of the source in the query."""
    is_idle: bool
    """Spark found nothing to read and ran no batch. ``batch_id`` is then the next one, and rows and rates are 0."""
    batch_id: int
    timestamp: datetime
    """The start of the batch, or of the attempt to find messages for one."""
    batch_seconds: float
    rows: int
    """The rows of the batch."""
    input_rows_per_second: float
    processed_rows_per_second: float

    guarantee: str
    broker: str | None
    """Name and version that the broker gave."""
    sequence: int
    """The end of the last batch."""
    received: int | None
    received_bytes: int | None
    """None without option ``readers``."""
    received_by_reader: tuple[int, ...]
    """Messages of each reader, in their order; empty without option ``readers``."""
    received_bytes_by_reader: tuple[int, ...]
    acknowledged: int | None
    redelivered: int | None
    """Received messages that the broker marked as delivered before."""
    recognised: int | None
    """Duplicates that the source dropped."""
    reconnects: int | None
    dead_letters: int | None
    dropped_too_large: int | None
    selector_dropped: int | None
    """None also if tasks run on other machines, because the source then does not know the number."""
    in_flight_messages: int | None
    """Messages that were received and not acknowledged."""
    in_flight_bytes: int | None
    lost_credit: int | None
    """Over AMQP: messages that the broker counted for this connection and did not deliver."""

    backlog: int | None
    """Messages in the journal or the staging queue whose batch is not done."""
    backlog_age_seconds: float | None
    """The age of the oldest message of the backlog."""
    journal_bytes: int | None

    depth: int | None
    """Messages on the queues of the query, with those in flight. The source asks the broker every 30 s."""
    delivering: int | None
    """Messages on the queues that are in flight to any consumer."""
    consumers: int | None
    undelivered: int | None
    """Messages on the queues that are due and not in flight. None also with a selector."""
    stuck_in_delivery: int | None

    @property
    def lag(self) -> int | None:
        """About how many messages wait for this query: those that it has received, those in its journal or staging
        queue, and ``undelivered``.

        Without the permission ``manage``, and with a selector, the query knows only the messages that it has received.
        """
        # What is in flight to a query with a journal is in the journal too, as soon as it is written.
        here = [count for count in (self.backlog, self.in_flight_messages) if count is not None]
        return max(here) + (self.undelivered or 0) if here else self.undelivered


def metrics_of(progress: Any) -> tuple[SourceMetrics, ...]:
    """Return the metrics of each jms source. The first progress of a query has none.

    ``progress`` is a ``StreamingQueryProgress`` of PySpark, or the object of its JSON.
    """
    found = progress if isinstance(progress, Mapping) else json.loads(progress.json)
    return tuple(_jms_sources(found))


def _jms_sources(progress: Mapping[str, Any]) -> Iterator[SourceMetrics]:
    for number, source in enumerate(progress.get("sources") or ()):
        latest = source.get("latestOffset")
        metrics = _parsed(latest) if isinstance(latest, str) else latest
        if isinstance(metrics, Mapping) and isinstance(metrics.get("guarantee"), str) and "seq" in metrics:
            yield _metrics(progress, number, source, metrics)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _metrics(
    progress: Mapping[str, Any], number: int, source: Mapping[str, Any], metrics: Mapping[str, Any]
) -> SourceMetrics:
    return SourceMetrics(
        query_id=str(progress["id"]),
        run_id=str(progress["runId"]),
        query_name=progress.get("name"),
        source=number,
        is_idle=_is_idle(progress),
        batch_id=int(progress["batchId"]),
        timestamp=datetime.fromisoformat(progress["timestamp"]),
        batch_seconds=float(progress.get("batchDuration") or 0) / 1000,
        rows=int(source.get("numInputRows") or 0),
        input_rows_per_second=float(source.get("inputRowsPerSecond") or 0),
        processed_rows_per_second=float(source.get("processedRowsPerSecond") or 0),
        guarantee=metrics["guarantee"],
        broker=metrics.get("broker"),
        sequence=int(metrics["seq"]),
        **{name: _integer(metrics, *keys) for name, keys in _COUNTS.items()},
        backlog_age_seconds=_age(metrics),
        received_by_reader=_by_reader(metrics.get("movedByReader")),
        received_bytes_by_reader=_by_reader(metrics.get("movedBytesByReader")),
    )


def _is_idle(progress: Mapping[str, Any]) -> bool:
    """Whether Spark reported this while it had nothing to do: of a batch it also reports the duration of addBatch."""
    durations = progress.get("durationMs")
    return isinstance(durations, Mapping) and "addBatch" not in durations


_COUNTS = {
    "received": ("received", "moved"),
    "received_bytes": ("movedBytes",),
    "acknowledged": ("acknowledged", "retired"),
    "redelivered": ("redelivered",),
    "recognised": ("recognised",),
    "reconnects": ("reconnects",),
    "dead_letters": ("deadLetters",),
    "dropped_too_large": ("droppedTooLarge",),
    "selector_dropped": ("selectorDropped",),
    "in_flight_messages": ("inFlightMessages",),
    "in_flight_bytes": ("inFlightBytes",),
    "lost_credit": ("lostCredit",),
    "backlog": ("backlog",),
    "journal_bytes": ("journalBytes",),
    "depth": ("depth",),
    "delivering": ("delivering",),
    "consumers": ("consumers",),
    "undelivered": ("undelivered",),
    "stuck_in_delivery": ("stuckInDelivery",),
}
"""Field → the names that it has in the progress: of a read with and without a journal, and of a read by a staging
queue, which moves messages there and retires them."""


def _integer(metrics: Mapping[str, Any], *names: str) -> int | None:
    """The first that is a number; a text states why a number is not known."""
    values = (metrics.get(name) for name in names)
    return next((value for value in values if isinstance(value, int)), None)


def _by_reader(values: Any) -> tuple[int, ...]:
    return tuple(each for each in values if isinstance(each, int)) if isinstance(values, list) else ()


def _age(metrics: Mapping[str, Any]) -> float | None:
    value = metrics.get("backlogAgeSeconds")
    return float(value) if isinstance(value, int | float) else None
