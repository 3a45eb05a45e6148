"""Consecutive rows to be encoded: their columns, their errors, and what each row sets in a message.

An error names a row by its number in the task. What a row sets is mode and priority, times, destination and body type;
durations and instants are milliseconds, and an instant of 0 is none. Does not know protocols.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NoReturn, NotRequired, TypeAlias, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.arrays import Int64s, Mask, Offsets, first_not_utf8, mask_of, offsets_of, to_binary
from pyspark_jms.errors import InvalidDestinationError, JMSError, MessageFormatError
from pyspark_jms.jms.model import DEFAULT_PRIORITY, BodyType, DeliveryMode, Destination, DestinationKind
from pyspark_jms.jms.rules import shown_name

__all__ = [
    "BODY_TYPES",
    "PRIORITIES",
    "Codes",
    "EncodeOptions",
    "Entries",
    "Rows",
    "WrongRows",
    "body_types",
    "compact",
    "delivery_of",
    "distinct_destinations",
    "expiration_of",
    "first_given",
    "from_now",
    "modes_and_priorities",
]


class WrongRows(Exception):  # noqa: N818  not an error itself: the cause of one
    """The cause of an error about rows: the numbers of all rows with the fault. The error names the first of them."""

    def __init__(self, numbers: Int64s) -> None:
        super().__init__()
        self.numbers = numbers


class EncodeOptions(TypedDict):
    """How rows become messages."""

    destination: Destination | None
    """That of rows without one."""
    property_columns: Sequence[str]
    """The columns that become typed properties."""
    now_ms: int
    """A time to live counts from it."""
    first_row: NotRequired[int]
    """The number of the first row in the task: errors name it."""
    numbers: NotRequired[Int64s | None]
    """The number of each row in the task, if they are not consecutive from ``first_row``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Consecutive rows: their columns, named as by ``sink_columns``, and their numbers in the task for errors."""

    columns: Mapping[str, pa.Array]
    first: int
    count: int
    numbers: Int64s | None = None
    """The number of each row in the task, or None if they are consecutive from ``first``."""

    def text(self, name: str) -> pa.Array | None:
        """A string or binary column with 32-bit offsets, as binary; None when absent or all null."""
        array = self.column(name)
        return None if array is None else to_binary(array)

    def integers(self, name: str) -> tuple[Int64s, Mask] | None:
        """The values, 0 for a null, and which are not null. A timestamp is given in milliseconds since the epoch."""
        array = self.column(name)
        if array is None:
            return None
        given = mask_of(array.is_valid())
        unit = array.type.unit if pa.types.is_timestamp(array.type) else None
        values = array.view(pa.int64()) if unit else array.cast(pa.int64())
        return _milliseconds(values.fill_null(0).to_numpy(), unit), given

    def given(self, name: str) -> Mask | None:
        """Which values of a column of any type are not null; None when all are null."""
        array = self.column(name)
        return None if array is None else mask_of(array.is_valid())

    def column(self, name: str) -> pa.Array | None:
        """A column of any type; None when absent or all null."""
        array = self.columns.get(name)
        return None if array is None or array.null_count == len(array) else array

    # --- parts ---------------------------------------------------------------------------------

    def only(self, mask: Mask) -> "Rows":
        """Some of the rows. They keep their numbers in errors."""
        if mask.all():
            return self
        kept = pa.array(mask)
        columns = {name: array.filter(kept) for name, array in self.columns.items()}
        return Rows(columns=columns, first=self.first, count=int(mask.sum()), numbers=self._numbers()[mask])

    def _numbers(self) -> Int64s:
        return np.arange(self.first, self.first + self.count) if self.numbers is None else self.numbers

    # --- errors --------------------------------------------------------------------------------

    def label(self, index: int) -> str:
        return f"Row {self.first + index if self.numbers is None else self.numbers[index]} of the task"

    def refuse(self, index: int, fact: str, remedy: str) -> NoReturn:
        """Refuse this one row. Use ``refuse_any`` where one check finds all rows with the fault."""
        wrong = np.zeros(self.count, np.bool_)
        wrong[index] = True
        self.fail(wrong, MessageFormatError(f"{self.label(index)} {fact}.", remedy))

    def require_utf8(self, texts: pa.Array, what: str, remedy: str = "Encode it, in base64 for example.") -> None:
        """Refuse the first of these texts, as binary, that is not UTF-8; ``what``: the text with its article."""
        wrong = first_not_utf8(texts)
        if wrong is not None:
            self.refuse(wrong, f"has {what} that is not UTF-8", remedy)

    def refuse_any(self, wrong: Mask, fact: str, remedy: str) -> None:
        """Refuse all rows for which ``wrong`` is true, if any; the error names the first one."""
        if wrong.any():
            self.fail(wrong, MessageFormatError(f"{self.label(int(wrong.argmax()))} {fact}.", remedy))

    def fail(self, wrong: Mask, error: JMSError) -> NoReturn:
        """Raise an error about exactly these rows."""
        raise error from WrongRows(self._numbers()[np.broadcast_to(wrong, self.count)])


@dataclass(frozen=True, slots=True)
class Entries:
    """Properties, map items or stream elements: those of all rows, one after the other.

    Row i has the entries from ``bounds[i]`` to ``bounds[i + 1]``.
    """

    rows: Rows
    bounds: Offsets
    kind: str
    """The name of an entry in errors, with its article: ``a property``, ``a map item``."""
    names: pa.Array | None
    """Binary. None where an entry has no name. Errors have its position in the row then, or if its name is unusual."""

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def only(self, mask: Mask) -> "Entries":
        before = np.concatenate([[0], np.cumsum(mask)])
        names = None if self.names is None else self.names.filter(pa.array(mask))
        return replace(self, bounds=before[self.bounds], names=names)

    def owners_of_all(self) -> Int64s:
        return np.repeat(np.arange(self.rows.count), np.diff(self.bounds))

    def owners(self, entries: Int64s) -> Int64s:
        found: Int64s = np.searchsorted(self.bounds, entries, side="right") - 1
        return found

    def refuse(self, index: int, fact: str, remedy: str) -> NoReturn:
        self.rows.refuse(int(self.owners(np.array([index]))[0]), f"has {self._label(index)}: {fact}", remedy)

    def refuse_any(self, wrong: Mask, fact: str | Callable[[int], str], remedy: str) -> None:
        """Refuse the rows of all entries for which ``wrong`` is true, if any; the error names the first one."""
        at = np.flatnonzero(wrong)
        if not len(at):
            return
        wrong_rows = np.zeros(self.rows.count, np.bool_)
        wrong_rows[self.owners(at)] = True
        problem = fact if isinstance(fact, str) else fact(int(at[0]))
        self.rows.refuse_any(wrong_rows, f"has {self._label(int(at[0]))}: {problem}", remedy)

    def _label(self, index: int) -> str:
        place = int(index - self.bounds[self.owners(np.array([index]))[0]])
        if self.names is None:
            return f"{self.kind} {place}"
        return f"{self.kind} {shown_name(self.names[index].as_py().decode(errors='replace'), place + 1)}"


def compact(lists: pa.Array) -> pa.Array:
    """A map or list array without entries under a null, which must be neither checked nor sent."""
    if lists.null_count and np.diff(offsets_of(lists))[mask_of(lists.is_null())].any():
        return lists.take(pa.array(np.arange(len(lists))))  # a copy has no such entries
    return lists


_PER_MILLISECOND = {"us": 1_000, "ns": 1_000_000}
_MOST_SECONDS = np.iinfo(np.int64).max // 1_000


def _milliseconds(values: Int64s, unit: str | None) -> Int64s:
    if unit == "s":
        return np.clip(values, -_MOST_SECONDS, _MOST_SECONDS) * 1_000
    return values // _PER_MILLISECOND.get(unit or "", 1)


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

    A time to live of 0 is a value, "never", and not the absence of one: so it also comes before ``JMSExpiration``. An
    instant that is over is not sent: the broker would confirm the row and drop it.
    """
    lives, has_life = _length(rows, "time_to_live")
    instants = _instant(rows, "JMSExpiration")
    return np.where(has_life, from_now(now_ms, lives), np.where(instants > now_ms, instants, 0))


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
    """An index into ``distinct`` for each row. None if every row has the only one."""


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
    if (failed := rows.given("body_error")) is not None:  # its bytes may be the whole message
        remedy = "Filter such rows out, or drop column body_error to send what the row has."
        rows.refuse_any(failed, "has a body_error: it is not the message that was sent", remedy)
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
