"""Columns with the conversions of JMS, and the conversion of one value. The module imports pyspark."""

from pyspark_jms.jms.conversions import convert
from pyspark_jms.spark.functions import jms_map, jms_property, jms_stream, jms_text, selector_for, write_id

__all__ = ["convert", "jms_map", "jms_property", "jms_stream", "jms_text", "selector_for", "write_id"]
