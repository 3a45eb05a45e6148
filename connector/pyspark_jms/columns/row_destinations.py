"""Column ``destination`` → the destination of each row, made into what a protocol sends for it.

Does not know protocols.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.ragged import Mask, mask_of, to_binary
from pyspark_jms.columns.rows import Rows
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind

__all__ = ["Made", "common_destination", "distinct_destinations", "parse_destination"]

_FALSE = pa.scalar(value=False)
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Made(Generic[_Made]):
    """What was made of each distinct destination, and which of them each row has."""

    distinct: list[_Made]
    indices: pa.Array | None
    """An index into ``distinct`` for each row. None: every row has the only one."""


def distinct_destinations(
    rows: Rows, default: Destination | None, make: Callable[[Destination, bool], _Made]
) -> Made[_Made]:
    """Each distinct destination is made once.

    ``make`` is given a destination and whether it comes from the column; it raises ``InvalidDestinationError`` for a
    refused one.
    """
    column = rows.text("destination")
    fallback = [] if default is None else [make(default, False)]  # noqa: FBT003  make is not ours to name
    if column is None:
        return Made(fallback, None) if fallback else _no_destination(rows, np.ones(rows.count, np.bool_))
    encoded = column.dictionary_encode()
    indices, made = encoded.indices, []
    for code, data in enumerate(encoded.dictionary.to_pylist()):
        try:
            made.append(_made(data, make))
        except InvalidDestinationError as error:
            _fail(rows, mask_of(pc.equal(indices, pa.scalar(code, indices.type)).fill_null(_FALSE)), error)
    if indices.null_count:
        if not fallback:
            _no_destination(rows, mask_of(indices.is_null()))
        indices = indices.fill_null(len(made))
        made += fallback
    return Made(made, None if len(made) == 1 else indices)


def _no_destination(rows: Rows, wrong: Mask) -> NoReturn:
    error = InvalidDestinationError(
        f"{rows.label(int(wrong.argmax()))} has no destination.",
        "Set it in column destination, or set the default by option queue or topic.",
    )
    rows.fail(wrong, error)


def _made(data: bytes, make: Callable[[Destination, bool], _Made]) -> _Made:
    destination = parse_destination(data)
    if destination is None:
        raise InvalidDestinationError(
            "is neither queue://NAME, topic://NAME nor a queue's name",
            "Use one of these three forms; a name is UTF-8 without U+0000.",
        )
    try:
        return make(destination, True)  # noqa: FBT003
    except InvalidDestinationError as error:
        raise InvalidDestinationError(f"is refused: {error.fact.rstrip('.')}", error.remedy) from None


def _fail(rows: Rows, wrong: Mask, error: InvalidDestinationError) -> NoReturn:
    label = rows.label(int(wrong.argmax())).lower()
    rows.fail(wrong, InvalidDestinationError(f"The destination of {label} {error.fact}.", error.remedy))


def parse_destination(data: bytes) -> Destination | None:
    try:
        text = data.decode()
        destination = Destination.parse(text) if "://" in text else Destination(DestinationKind.QUEUE, text)
    except ValueError:  # UnicodeDecodeError is one
        return None
    return destination if destination.name and "\0" not in text else None


def common_destination(batch: pa.RecordBatch, default: Destination | None) -> Destination | None:
    """The one destination of all rows; None if they name several, or if a row has none. ``encode`` refuses the rest."""
    column = next((batch.column(i) for i, name in enumerate(batch.schema.names) if name.lower() == "destination"), None)
    if column is None or column.null_count == len(column):
        return default
    names = to_binary(column).unique().drop_null().to_pylist()
    if len(names) > 1:
        return None
    found = parse_destination(names[0])
    return found if not column.null_count or found == default else None
