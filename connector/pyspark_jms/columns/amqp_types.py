"""Names of types that only AMQP has → the JMS types that hold their values. Does not know protocols."""

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import AMQP_TYPES

__all__ = ["jms_types"]

_AMQP = pa.array(list(AMQP_TYPES), pa.string())
_AMQP_ONLY = pa.array([name for name in AMQP_TYPES if name not in set(ValueType)], pa.string())
"""An element of a map or stream may be a char of JMS. ``AMQP_TYPES`` begins with these names."""

_JMS = pa.array([kind.value for kind in AMQP_TYPES.values()], pa.string())


def jms_types(types: pa.Array, *, of_elements: bool) -> pa.Array:
    """The same, string or binary, with the JMS type in place of each type of AMQP."""
    places = pc.index_in(types, value_set=(_AMQP_ONLY if of_elements else _AMQP).view(types.type))
    if places.null_count == len(types):
        return types
    return pc.if_else(places.is_valid(), _JMS.view(types.type).take(places), types)
