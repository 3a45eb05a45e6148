"""Columns with the conversions of JMS, the conversion of one value, the headers of selectors. Imports pyspark."""

from pyspark_jms.jms.conversions import convert
from pyspark_jms.jms.headers import SELECTOR_SCHEMA
from pyspark_jms.spark.functions import jms_map, jms_property, jms_stream, jms_text, selector_for, write_id

__all__ = [
    "SELECTOR_SCHEMA",
    "convert",
    "jms_map",
    "jms_property",
    "jms_stream",
    "jms_text",
    "selector_for",
    "write_id",
]
