"""A ``StreamingQueryListener`` that hands on the metrics of jms sources."""

import logging
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_jms.spark.metrics import SourceMetrics, metrics_of

__all__ = ["JmsListener"]

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
