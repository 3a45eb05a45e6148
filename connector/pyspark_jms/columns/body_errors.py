"""Rows → those whose message could not be mapped, with the reason."""

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.read_columns import ReadColumns
from pyspark_jms.columns.read_properties import asked_rows

__all__ = ["body_errors"]


def body_errors(rows: pa.RecordBatch, columns: ReadColumns | None = None) -> dict[int, str]:
    """Row number → ``body_error``, of the rows that have one. ``columns``: those of the schema that the user gave."""
    errors = rows.column("body_error") if columns is None else asked_rows(columns, rows)[1]
    bad = np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False))
    return {int(index): str(errors[int(index)].as_py()) for index in bad}
