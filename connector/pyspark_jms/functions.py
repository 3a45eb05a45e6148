"""The public name of :mod:`pyspark_jms.spark.functions`. Importing it imports pyspark."""

from pyspark_jms.spark.functions import jms_map, jms_property, jms_stream, jms_text, selector_for, write_id

__all__ = ["jms_map", "jms_property", "jms_stream", "jms_text", "selector_for", "write_id"]
