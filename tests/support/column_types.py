"""The types of the columns that tests write: those of the schema, and of the columns of the sink alone."""

import pyarrow as pa

from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.headers import HEADERS, HeaderType

TYPES = {field.name: field.type for field in ARROW_SCHEMA} | {
    "destination": pa.string(),
    "time_to_live": pa.int64(),
    "delivery_delay": pa.int64(),
}

MILLISECONDS = {header.name: pa.timestamp("ms", tz="UTC") for header in HEADERS if header.type is HeaderType.TIME}
"""The times, of which the schema has microseconds."""

TEXT_HEADERS = [header.name for header in HEADERS if header.sent and header.type.ddl == "string"]
