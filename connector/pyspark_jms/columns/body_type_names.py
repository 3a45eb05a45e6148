"""The values of column ``body_type``, as an Arrow array."""

import pyarrow as pa

from pyspark_jms.jms.model import BodyType

__all__ = ["BODY_TYPE_NAMES"]

BODY_TYPE_NAMES = pa.array([kind.value for kind in BodyType], pa.string())
"""The code of a body type is its index."""
