"""Columns of the sink → what each row sets in a message: mode and priority, times, destination and body type.

Durations and instants are milliseconds; an instant of 0 is none. Does not know protocols.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.strings import Int64s, Mask, mask_of
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import DEFAULT_PRIORITY, BodyType, DeliveryMode, Destination, DestinationKind

__all__ = [
    "BODY_TYPES",
    "PRIORITIES",
    "Codes",
    "MappedDestinations",
    "body_types",
    "delivery_of",
    "distinct_destinations",
    "expiration_of",
    "first_given",
    "from_now",
    "modes_and_priorities",
    "parse_destination",
]

# --- mode, priority and times -----------------------------------------------------------------------

PRIORITIES = 10
"""JMS 3.1 §3.4.9: 0..9. Artemis confirms a message of any other priority and drops it."""

_LATEST = np.iinfo(np.int64).max


def modes_and_priorities(rows: Rows) -> Int64s:
    """``JMSDeliveryMode`` times ``PRIORITIES`` plus ``JMSPriority``: for each row, or one number for all of them.

    A row without them is persistent and has priority 4, as from a JMS producer.
    """
    modes = _or_default(rows, "JMSDeliveryMode", int(DeliveryMode.PERSISTENT))
    wrong = (modes < min(DeliveryMode)) | (modes > max(DeliveryMode))
    rows.refuse_any(wrong, "has a JMSDeliveryMode that is not 1 or 2", "Use 1 for NON_PERSISTENT, 2 for PERSISTENT.")
    priorities = _or_default(rows, "JMSPriority", DEFAULT_PRIORITY)
    wrong = (priorities < 0) | (priorities >= PRIORITIES)
    rows.refuse_any(wrong, "has a JMSPriority outside 0 to 9", "JMS 3.1 §3.4.9: use a priority from 0 to 9.")
    return modes * PRIORITIES + priorities


def _or_default(rows: Rows, name: str, default: int) -> Int64s:
    """A value for each row, or one value for all of them if the column is absent."""
    found = rows.integers(name)
    return np.array([default]) if found is None else np.where(found[1], found[0], default)


def expiration_of(rows: Rows, now_ms: int) -> Int64s:
    """The instant by ``time_to_live``, else ``JMSExpiration``, else 0: for each row, or one for all.

    A time to live of 0 is a value, "never", and not the absence of one: so it also comes before ``JMSExpiration``.
    """
    lives, has_life = _length(rows, "time_to_live")
    return np.where(has_life, from_now(now_ms, lives), _instant(rows, "JMSExpiration"))


def delivery_of(rows: Rows) -> tuple[Int64s, Int64s]:
    """The delay by ``delivery_delay``, or else the instant by ``JMSDeliveryTime``.

    A delay of 0 is a value, "now": so it also comes before ``JMSDeliveryTime``.
    """
    delays, has_delay = _length(rows, "delivery_delay")
    return delays, np.where(has_delay, 0, _instant(rows, "JMSDeliveryTime"))


def _length(rows: Rows, column: str) -> tuple[Int64s, Mask]:
    """A duration in milliseconds for each row, 0 for a null; and which are given."""
    found = rows.integers(column)
    if found is None:
        return np.zeros(1, np.int64), np.zeros(1, np.bool_)
    lengths, given = np.where(found[1], found[0], 0), found[1]
    rows.refuse_any(lengths < 0, f"has a negative {column}", "Use 0 or more milliseconds.")
    return lengths, given


def _instant(rows: Rows, column: str) -> Int64s:
    """Milliseconds since the epoch for each row, 0 for a null.

    0 means "never" in a header, so a time before the epoch is sent as the first millisecond after it.
    """
    found = rows.integers(column)
    if found is None:
        return np.zeros(1, np.int64)
    return np.where(found[1], np.maximum(found[0], 1), 0)


def from_now(now_ms: int, lengths: Int64s) -> Int64s:
    return np.where(lengths > 0, np.minimum(lengths, _LATEST - now_ms) + now_ms, 0)


def first_given(first: Int64s, second: Int64s) -> Int64s:
    return np.where(first != 0, first, second)


# --- destinations -----------------------------------------------------------------------------------

_FALSE = pa.scalar(value=False)
_Mapped = TypeVar("_Mapped")


@dataclass(frozen=True, slots=True)
class MappedDestinations(Generic[_Mapped]):
    """What was made of each distinct destination, and which of them each row has."""

    distinct: list[_Mapped]
    indices: pa.Array | None
    """An index into ``distinct`` for each row. None: every row has the only one."""


def distinct_destinations(
    rows: Rows, default: Destination | None, make: Callable[[Destination, bool], _Mapped]
) -> MappedDestinations[_Mapped]:
    """Each distinct destination is made once.

    ``make`` is given a destination and whether it comes from the column; it raises ``InvalidDestinationError`` for a
    refused one.
    """
    column = rows.text("destination")
    fallback = [] if default is None else [make(default, False)]  # noqa: FBT003  make is not ours to name
    if column is None:
        return MappedDestinations(fallback, None) if fallback else _no_destination(rows, np.ones(rows.count, np.bool_))
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
    return MappedDestinations(made, None if len(made) == 1 else indices)


def _no_destination(rows: Rows, wrong: Mask) -> NoReturn:
    error = InvalidDestinationError(
        f"{rows.label(int(wrong.argmax()))} has no destination.",
        "Set it in column destination, or set the default by option queue or topic.",
    )
    rows.fail(wrong, error)


def _made(data: bytes, make: Callable[[Destination, bool], _Mapped]) -> _Mapped:
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


# --- body types -------------------------------------------------------------------------------------

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
