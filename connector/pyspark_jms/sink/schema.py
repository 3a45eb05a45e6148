"""The columns of a write, checked before any row is. No arrays: Spark also plans a write, see ``columns.schema``."""

import pyarrow as pa

from pyspark_jms.columns.sink_schema import check_columns
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.options.sink import SinkOptions

__all__ = ["check_schema"]


def check_schema(options: SinkOptions, schema: pa.Schema) -> None:
    """Raise the first fault of the columns that does not depend on the rows."""
    check_columns(schema, options.property_columns)
    if options.destination is None and "destination" not in {name.lower() for name in schema.names}:
        raise InvalidDestinationError(
            "The rows have no column destination, and there is no default.",
            "Set option queue or topic, or give each row a destination.",
        )
