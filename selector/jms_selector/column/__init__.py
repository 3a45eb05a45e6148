"""Selector -> Spark ``Column``. The only place that knows pyspark, and imports it when first called."""

from jms_selector.column.build import MAX_CONDITIONS, column

__all__ = ["MAX_CONDITIONS", "column"]
