"""Rows for a broker that changes some characters of headers when it stores them: such rows are refused.

ActiveMQ Classic stores headers in Java's modified UTF-8 and reads them as UTF-8: a character outside the Basic
Multilingual Plane, or U+0000, becomes two U+FFFD once the message was on disk. Bodies do not change.
"""

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_properties import properties_of, typed_columns
from pyspark_jms.columns.strings import Mask, bytes_of, is_ascii_text, offsets_of, to_binary

__all__ = ["check_stable"]

_HEADER_COLUMNS = ("JMSCorrelationID", "JMSType", "JMSReplyTo", "content_type")
_FOUR_BYTES = 0xF0
"""The first byte in UTF-8 of the characters outside the Basic Multilingual Plane has at least this value."""

_WHAT = "a character outside the Basic Multilingual Plane, or U+0000, which this broker changes when it stores them"
_REMEDY = "Move it into the body, or encode it."


def check_stable(rows: Rows) -> None:
    """Refuse rows with text in a header or a property that the broker would change."""
    for name in _HEADER_COLUMNS:
        texts = rows.text(name)
        if texts is not None:
            rows.refuse_any(_unstable(texts), f"has in {name} {_WHAT}", _REMEDY)
    for name, column in typed_columns(rows).items():
        rows.refuse_any(_unstable(column.texts), f"has in property {name!r} {_WHAT}", _REMEDY)
    properties = properties_of(rows)
    if properties is not None:
        for texts, place in ((properties.names, "its name"), (properties.values, "its value")):
            properties.entries.refuse_any(_unstable(texts), f"{place} has {_WHAT}", _REMEDY)


def _unstable(texts: pa.Array) -> Mask:
    texts = to_binary(texts)
    nothing: Mask = np.zeros(len(texts), np.bool_)
    if is_ascii_text(texts):
        return nothing
    data, offsets = bytes_of(texts), offsets_of(texts)
    wrong = np.flatnonzero((data >= _FOUR_BYTES) | (data == 0))
    nothing[np.searchsorted(offsets - offsets[0], wrong, side="right") - 1] = True
    found: Mask = nothing & np.asarray(texts.is_valid())
    return found
