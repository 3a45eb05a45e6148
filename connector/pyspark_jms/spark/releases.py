"""What the installed Spark offers of what came after Spark 4.0.

Every difference between releases is here, and the installed classes decide, not the version: Databricks adds parts of
later releases to its runtimes.
"""

import inspect
from typing import Any

from pyspark.sql import datasource
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

__all__ = ["HAS_ADMISSION_CONTROL", "StreamArrowWriter", "arrow_type"]

HAS_ADMISSION_CONTROL = hasattr(datasource.DataSourceStreamReader, "getDefaultReadLimit")
"""From Spark 4.2 on: ``latestOffset`` gets the offset that it follows, Spark announces Trigger.AvailableNow, and the
progress of a query contains what the source reports."""

StreamArrowWriter: Any = getattr(datasource, "DataSourceStreamArrowWriter", datasource.DataSourceArrowWriter)
"""The base class of a streaming writer of RecordBatches.

Spark 4.1 added the class. Spark 4.0 gives RecordBatches to the ``write`` of any ``DataSourceArrowWriter``, also of a
stream, and calls ``commit`` and ``abort`` with the number of the batch.
"""

_TIMEZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}


def arrow_type(of: DataType) -> Any:
    """Return the Arrow type. Its timestamps are in UTC, the only choice before Spark 4.2 added the parameter."""
    return to_arrow_type(of, **_TIMEZONE)
