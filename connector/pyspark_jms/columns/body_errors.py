"""Rows → those whose message could not be mapped, with the reason."""

import numpy as np
import pyarrow as pa

__all__ = ["body_errors"]


def body_errors(rows: pa.RecordBatch) -> dict[int, str]:
    """Row number → ``body_error``, of the rows that have one."""
    errors = rows.column("body_error")
    bad = np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False))
    return {int(index): str(errors[int(index)].as_py()) for index in bad}
