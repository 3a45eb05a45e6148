"""The progress of a query → typed metrics of its jms sources, and a listener that hands them on."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ["JmsListener", "SourceMetrics", "metrics_of"]


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
    empty_batches: int | None
    """Of an exactly-once read over AMQP: batches in a row that got no message, although the broker showed some."""
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
    """Return whether Spark reported this while it had nothing to do: of a batch it also reports the duration of
    addBatch.
    """
    durations = progress.get("durationMs")
    return isinstance(durations, Mapping) and "addBatch" not in durations


_OTHER_NAMES = {
    "received": ("received", "moved"),
    "received_bytes": ("movedBytes",),
    "acknowledged": ("acknowledged", "retired"),
}
"""Field → its names in the progress, if its own is not the only one. A read by a staging queue moves messages there and
retires them."""

_COUNTS = {
    field.name: _OTHER_NAMES.get(field.name, (re.sub(r"_(\w)", lambda match: match[1].upper(), field.name),))
    for field in fields(SourceMetrics)
    if field.type == int | None
}


def _integer(metrics: Mapping[str, Any], *names: str) -> int | None:
    """The first that is a number; a text states why a number is not known."""
    values = (metrics.get(name) for name in names)
    return next((value for value in values if isinstance(value, int)), None)


def _by_reader(values: Any) -> tuple[int, ...]:
    return tuple(each for each in values if isinstance(each, int)) if isinstance(values, list) else ()


def _age(metrics: Mapping[str, Any]) -> float | None:
    value = metrics.get("backlogAgeSeconds")
    return float(value) if isinstance(value, int | float) else None


# --- the listener -----------------------------------------------------------------------------------

_log = logging.getLogger("pyspark_jms.spark")


class JmsListener(StreamingQueryListener):
    """A listener that calls a function after each batch, once for each jms source.

        spark.streams.addListener(JmsListener(print))

    While a query is idle, it calls the function about every 10 s (``spark.sql.streaming.noDataProgressEventInterval``).
    """

    def __init__(self, on_metrics: Callable[[SourceMetrics], object], session: SparkSession | None = None) -> None:
        """``session`` is the session of the queries. Default: the active session, or the one that was created first."""
        self._on_metrics = on_metrics
        self._session = session

    def onQueryStarted(self, event: Any) -> None:
        """Do nothing: a query has no metrics when it starts."""

    def onQueryProgress(self, event: Any) -> None:
        self._report(event.progress)

    def onQueryIdle(self, event: Any) -> None:
        """Report the metrics of the query's last progress: the event itself has none."""
        try:
            progress = self._query(str(event.id)).lastProgress
        except Exception:  # noqa: BLE001 - the query was stopped meanwhile, or it is of another session
            _log.debug("= no metrics of the idle query %s", event.id, exc_info=True)
        else:
            self._report(progress, only_idle=True)

    def _query(self, query_id: str) -> Any:
        session = self._session or self.spark or SparkSession.active()  # on Spark Connect, Spark sets `spark`
        return session.streams.get(query_id)

    def _report(self, progress: Any, *, only_idle: bool = False) -> None:
        """Report all metrics, or with ``only_idle`` none of a batch, because a batch has an event of its own."""
        try:
            for metrics in metrics_of(progress):
                if metrics.is_idle or not only_idle:
                    self._on_metrics(metrics)
        except Exception:  # noqa: BLE001 - the query goes on without its monitoring
            _log.exception("! a listener of jms metrics failed")

    def onQueryTerminated(self, event: Any) -> None:
        """Do nothing: ``query.exception()`` has the error of a query that failed."""
