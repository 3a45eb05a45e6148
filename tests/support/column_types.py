"""Batches that tests write, the types of their columns, which are those of the schema and of the sink alone, and the
columns of a read that wants few.
"""

import pyarrow as pa

from pyspark_jms.columns.schema import ARROW_SCHEMA, property_keys
from pyspark_jms.jms.headers import HEADERS, HeaderType

TYPES = {field.name: field.type for field in ARROW_SCHEMA} | {
    "destination": pa.string(),
    "time_to_live": pa.int64(),
    "delivery_delay": pa.int64(),
}

MILLISECONDS = {header.name: pa.timestamp("ms", tz="UTC") for header in HEADERS if header.type is HeaderType.TIME}
"""The times, of which the schema has microseconds."""

TEXT_HEADERS = [header.name for header in HEADERS if header.sent and header.type.ddl == "string"]


def wanted_of(row, fixed, names):
    """The wanted part of a row of all columns, in the order of the schema."""
    found = {name: row[name] for name in ARROW_SCHEMA.names if name in fixed}
    for name in names:
        for column, key in zip(("properties", "property_types"), property_keys(name), strict=True):
            found[key] = dict(row[column] or ()).get(name)
    return found


def batch_of(rows, columns=None, types=TYPES):
    """The rows, dictionaries, as a batch of these columns; without ``columns``, of all that a row has."""
    names = columns or sorted({name for row in rows for name in row}) or ["text"]
    return pa.record_batch({name: pa.array([row.get(name) for row in rows], types[name]) for name in names})
