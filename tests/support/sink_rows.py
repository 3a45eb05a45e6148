"""Rows of the sink for unit tests of encoders."""

import pyarrow as pa
from plain_encoder import DEFAULT_DESTINATION

from pyspark_jms.columns.row_parts import sink_columns
from pyspark_jms.columns.rows import Rows
from pyspark_jms.jms.model import Destination

DESTINATION = Destination.parse(DEFAULT_DESTINATION)
"""That of rows without one."""
TEXT_MAP = pa.map_(pa.string(), pa.string())


def rows_of(property_columns=(), /, **columns):
    """Rows 10, 11, … of these columns: lists of texts, or Arrow arrays."""
    batch = pa.record_batch({name: _array(name, values) for name, values in columns.items()})
    return Rows(columns=sink_columns(batch, property_columns), first=10, count=batch.num_rows)


def _array(name, values):
    return pa.array(values, TEXT_MAP if name in {"properties", "property_types"} else None)
