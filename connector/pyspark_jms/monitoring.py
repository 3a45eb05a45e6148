"""Metrics of running queries, typed and for Prometheus. The module imports pyspark."""

from pyspark_jms.spark.metrics import JmsListener, SourceMetrics, metrics_of
from pyspark_jms.spark.prometheus import PrometheusExporter

__all__ = ["JmsListener", "PrometheusExporter", "SourceMetrics", "metrics_of"]
