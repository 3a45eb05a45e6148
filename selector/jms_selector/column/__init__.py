"""Selector -> Spark ``Column``. The only place that knows pyspark, and imports it when first called."""

from jms_selector.column.build import MAX_DEPTH, column

__all__ = ["MAX_DEPTH", "column"]
