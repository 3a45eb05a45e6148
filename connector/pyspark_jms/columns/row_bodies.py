"""Columns ``body_type``, ``text``, ``bytes``, ``map`` and ``stream`` → the body type of each row.

Does not know protocols.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pyspark_jms.columns.ragged import Mask
from pyspark_jms.columns.rows import Rows
from pyspark_jms.jms.model import BodyType

__all__ = ["BODY_TYPES", "Codes", "body_types"]

BODY_TYPES = tuple(BodyType)
_MESSAGE = BODY_TYPES.index(BodyType.MESSAGE)
_COLUMN_OF = {
    BodyType.TEXT: "text",
    BodyType.BYTES: "bytes",
    BodyType.MAP: "map",
    BodyType.STREAM: "stream",
    BodyType.OBJECT: "bytes",
}
_BODY_COLUMNS = ("text", "bytes", "map", "stream")
_NOT_STATED = -1

Codes: TypeAlias = npt.NDArray[np.int64]


def body_types(rows: Rows) -> Codes:
    """An index into ``BODY_TYPES`` for each row: of ``body_type``, else of the only body column that is not null."""
    given = {name: mask for name in _BODY_COLUMNS if (mask := rows.given(name)) is not None}
    stated = _stated_types(rows)
    codes = np.where(stated == _NOT_STATED, _inferred_types(rows, given, stated == _NOT_STATED), stated)
    for code, body_type in enumerate(BODY_TYPES):
        _check_stated(rows, body_type, stated == code, given)
    return codes


def _stated_types(rows: Rows) -> Codes:
    column = rows.text("body_type")
    if column is None:
        return np.full(rows.count, _NOT_STATED)
    encoded = column.dictionary_encode()
    known = {body_type.value.encode(): code for code, body_type in enumerate(BODY_TYPES)}
    codes = np.array([known.get(name, len(BODY_TYPES)) for name in encoded.dictionary.to_pylist()] + [_NOT_STATED])
    stated: Codes = codes[encoded.indices.fill_null(len(codes) - 1).to_numpy()]
    remedy = f"Use one of {', '.join(BODY_TYPES)}, or null to choose by the body."
    rows.refuse_any(stated == len(BODY_TYPES), "has an unknown body_type", remedy)
    return stated


def _inferred_types(rows: Rows, given: dict[str, Mask], not_stated: Mask) -> Codes:
    codes = np.full(rows.count, _MESSAGE)
    if len(given) > 1:
        several = sum(mask.astype(np.int8) for mask in given.values()) > 1
        remedy = "Leave all but one null, or set body_type to the one to send."
        rows.refuse_any(several & not_stated, "has more than one body", remedy)
    for name, mask in given.items():
        codes[mask] = BODY_TYPES.index(BodyType(name))
    return codes


def _check_stated(rows: Rows, body_type: BodyType, stated: Mask, given: dict[str, Mask]) -> None:
    """Refuse a row whose ``body_type`` names another body than the one it has: that body would be lost silently."""
    others = [mask for name, mask in given.items() if name != _COLUMN_OF.get(body_type)]
    if not others or not stated.any():
        return
    own = given.get(_COLUMN_OF.get(body_type, ""), np.zeros(rows.count, np.bool_))
    lost = stated & ~own & np.logical_or.reduce(others)
    rows.refuse_any(lost, f"has body_type {body_type}, but its body is in another column", "Correct one of the two.")
