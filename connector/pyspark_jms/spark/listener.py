"""A ``StreamingQueryListener`` that hands on the figures of jms sources."""

import logging
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_jms.spark.figures import SourceFigures, figures_of

__all__ = ["JmsListener"]

_log = logging.getLogger("pyspark_jms.spark")


class JmsListener(StreamingQueryListener):
    """``spark.streams.addListener(JmsListener(print))``: called after each batch, once for each jms source."""

    def __init__(self, on_figures: Callable[[SourceFigures], object]) -> None:
        self._on_figures = on_figures

    def onQueryStarted(self, event: Any) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:
        try:
            for figures in figures_of(event.progress):
                self._on_figures(figures)
        except Exception:  # noqa: BLE001 - the query goes on without its monitoring
            _log.exception("! a listener of jms figures failed")

    def onQueryIdle(self, event: Any) -> None:
        """The figures are those of the last progress."""

    def onQueryTerminated(self, event: Any) -> None:
        """The query tells its user."""
