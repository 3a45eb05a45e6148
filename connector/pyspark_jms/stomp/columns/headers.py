"""Header lines and their layout → the columns that the dialect feeds from headers. Knows the dialect, no body."""

from collections.abc import Callable
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.cut import Ints, Mask
from pyspark_jms.columns.envelope import read_types
from pyspark_jms.columns.integers import integers
from pyspark_jms.columns.schema import ARROW_SCHEMA, BODY_TYPES, COLUMNS
from pyspark_jms.jms.model import BODY_MARKER, OCTET_STREAM, BodyType, DeliveryMode, Destination, DestinationKind
from pyspark_jms.stomp.columns.layout import Layout, with_properties
from pyspark_jms.stomp.columns.lines import Fault, Lines
from pyspark_jms.stomp.columns.values import destinations, stable_ids, times, truths
from pyspark_jms.stomp.dialects.base import BodyRule, Dialect

__all__ = ["Headers"]

_INT32 = (-(1 << 31), (1 << 31) - 1)
_MOST_STORED = (1 << 62) - 1
_AFTER_LINES = 1 << 61
_TEXT, _BYTES = (BODY_TYPES.index(kind.value).as_py() for kind in (BodyType.TEXT, BodyType.BYTES))
_MAP, _OBJECT = (BODY_TYPES.index(kind.value).as_py() for kind in (BodyType.MAP, BodyType.OBJECT))
_FALSE = pa.scalar(value=False, type=pa.bool_())
_TRANSFORMED = "the broker turned the object into XML"
_LOST_BODY = "the broker did not send the body: it is neither text nor bytes"
_UNKNOWN_BODY = f"property {BODY_MARKER!r} names no body type"
_DURABLE, _OTHER = (pa.scalar(int(mode), pa.int32()) for mode in (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT))
_TOPIC, _NOTHING = pa.scalar(f"{DestinationKind.TOPIC}://", pa.string()), pa.scalar("", pa.string())


class Headers:
    """The headers of all frames, by the column they feed."""

    def __init__(self, lines: Lines, layout: Layout, dialect: Dialect) -> None:
        self._lines = lines
        self._layout = layout
        self._dialect = dialect
        self._left: list[Ints] = []
        """Lines that could not be understood, and so stay properties for everybody to see."""
        self.faults: list[Fault] = list(lines.faults)

    def __len__(self) -> int:
        return len(self._lines.first) - 1

    def columns(self) -> dict[str, pa.Array]:
        """Every column that is one header, and ``properties``: after ``body_types`` or ``leave_body_markers``."""
        roles = dict.fromkeys(self._dialect.message_headers.values())
        columns = {role: self._column(role) for role in roles if role[0] != "@"}
        if self._dialect.message_id_is_jms:
            columns["JMSMessageID"] = self.text("@message-id")
        return columns | {"property_types": self._property_types(), "properties": self._properties()}

    def _column(self, role: str) -> pa.Array:
        """What all frames say alike is read once."""
        read = _READERS.get(role, Headers.as_it_is)
        lines = self._layout.roles.get(role)
        if lines is None or self._lines.one_value(lines):
            told = len(self.faults)
            texts = pa.nulls(1, pa.string()) if lines is None else self._lines.values(lines[:1])
            column = read(self, role, texts)
            if len(self.faults) == told:
                return pa.repeat(column[0], len(self))
            del self.faults[told:]
        return read(self, role, self.text(role))

    def read_from(self, source: Destination) -> pa.Array:
        """A queue is read under one name; what a topic subscription matches (wildcards) the frame tells."""
        constant = pa.scalar(str(source), pa.string())
        if source.kind is DestinationKind.QUEUE:
            return pa.repeat(constant, len(self))
        prefix = self._dialect.addresses.prefixes[source.kind]
        spelled = self._plain(_without_prefix(self.text("@destination"), prefix))
        named = pc.binary_join_element_wise(_TOPIC, spelled, _NOTHING)
        return pc.coalesce(named, constant)

    def delivery_id(self, source: Destination) -> pa.Array:
        separator = self._dialect.stable_id_separator
        if separator is None:
            return pa.nulls(len(self), pa.string())
        return stable_ids(self.text("@message-id"), separator, source.name)

    def body_types(self) -> tuple[Ints, dict[int, str]]:
        """The code of each frame's body type: as its marker says, else by the dialect's rule.

        And, by row, why a marker says none: then the frame's code stands, and the marker stays a property.
        """
        by_frame = self._frame_types()
        marker = self._layout.roles.get("@body")
        if marker is None:
            return by_frame, self.transformed_objects()
        said = pc.index_in(self.text("@body"), value_set=BODY_TYPES).fill_null(-1).to_numpy()
        unknown = np.flatnonzero((said < 0) & (marker >= 0))
        self._left.append(marker[unknown])
        unread = self.transformed_objects() | dict.fromkeys(unknown.tolist(), _UNKNOWN_BODY)
        return np.where(said < 0, by_frame, said), unread

    def lost_bodies(self, sizes: Ints) -> dict[int, str]:
        """By row, why a body of that size cannot be the one that was sent: STOMP has no word for its type.

        The broker tells how large it stores a large body: bytes as they are, and a text in UTF-16, of which UTF-8
        takes no less than half.
        """
        if "@stored-size" not in self._layout.roles:
            return {}
        stored, _ = integers(self.text("@stored-size"), 0, _MOST_STORED)
        lost = 2 * sizes + self._dialect.stored_text_overhead < stored.fill_null(0).to_numpy()
        return dict.fromkeys(np.flatnonzero(lost).tolist(), _LOST_BODY)

    def leave_body_markers(self) -> None:
        """Nobody asks for them: they stay properties."""
        marker = self._layout.roles.get("@body")
        if marker is not None:
            self._left.append(marker[marker >= 0])

    def _frame_types(self) -> Ints:
        match self._dialect.body_rule:
            case BodyRule.CONTENT_LENGTH_NOT_LAST:
                line = self._line("@content-length")
                last = self._lines.first[1:] - 1
                found: Ints = np.where((line >= 0) & (line != last), _BYTES, _TEXT)
            case BodyRule.CONTENT_LENGTH:
                says_text = self._says("@message-type", self._dialect.text_message_type)
                found = np.where((self._line("@content-length") < 0) | says_text, _TEXT, _BYTES)
                found[self.transformed_maps()] = _MAP
                found[self._has_transformed_object()] = _OBJECT
            case BodyRule.CONTENT_TYPE:
                found = np.where(self._says("content_type", OCTET_STREAM), _BYTES, _TEXT)
        return found

    def transformed_maps(self) -> Mask:
        """Which frames hold a map as the broker's own transformation writes it."""
        return self._says("@transformation", self._dialect.transformed_map)

    def transformed_objects(self) -> dict[int, str]:
        """By row, why an object is not the one that was sent."""
        rows = np.flatnonzero(self._has_transformed_object())
        return dict.fromkeys(rows.tolist(), _TRANSFORMED)

    def _has_transformed_object(self) -> Mask:
        return self._says("@transformation", self._dialect.transformed_object)

    def _says(self, role: str, text: str | None) -> Mask:
        if text is None or role not in self._layout.roles:
            return np.zeros(len(self), np.bool_)
        equal = pc.equal(self.text(role), pa.scalar(text, pa.string())).fill_null(_FALSE)
        says: Mask = equal.to_numpy(zero_copy_only=False)
        return says

    def _line(self, role: str) -> Ints:
        line = self._layout.roles.get(role)
        return np.full(len(self), -1) if line is None else line

    def text(self, role: str) -> pa.Array:
        if role not in self._layout.roles:
            return pa.nulls(len(self), pa.string())
        return self._lines.values(self._layout.roles[role])

    def as_it_is(self, _role: str, texts: pa.Array) -> pa.Array:
        return texts

    def time(self, role: str, texts: pa.Array) -> pa.Array:
        moments, wrong = times(texts, self._dialect.timestamp_unit_ms if role == "JMSTimestamp" else 1)
        self._blame(role, wrong)
        return moments

    def number(self, role: str, texts: pa.Array) -> pa.Array:
        numbers, wrong = integers(texts, *_INT32)
        self._blame(role, wrong)
        return pc.cast(numbers, pa.int32())

    def truth(self, _role: str, texts: pa.Array) -> pa.Array:
        return truths(texts)

    def delivery_mode(self, _role: str, texts: pa.Array) -> pa.Array:
        return pc.if_else(truths(texts), _DURABLE, _OTHER)

    def reply_to(self, role: str, texts: pa.Array) -> pa.Array:
        if role not in self._layout.roles:
            return texts
        return self._plain(destinations(texts, self._dialect.reply_to_prefixes))

    def _plain(self, names: pa.Array) -> pa.Array:
        """Names without percent-encoding, where this broker's destinations have it. Each distinct one is read once."""
        if not self._dialect.addresses.percent_encoded:
            return names
        encoded = names.dictionary_encode()
        return pa.array([unquote(name) for name in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)

    def _property_types(self) -> pa.Array:
        marker = self._layout.roles.get("@types")
        if marker is None:
            return pa.nulls(len(self), ARROW_SCHEMA.field("property_types").type)
        types, unreadable = read_types(self.text("@types"))
        self._left.append(marker[unreadable])
        return types

    def _properties(self) -> pa.Array:
        layout = with_properties(self._layout, self._lines, np.concatenate(self._left)) if self._left else self._layout
        offsets = pa.array(layout.property_offsets, pa.int32())
        return pa.MapArray.from_arrays(offsets, layout.property_keys, self._lines.values(layout.property_lines))

    def _blame(self, role: str, rows: list[int]) -> None:
        headers = [header for header, fed in self._dialect.message_headers.items() if fed == role]
        place = _AFTER_LINES + COLUMNS.index(role)
        self.faults += [Fault(row, place, f"header {headers[0]!r} is not a number") for row in rows]


def _without_prefix(texts: pa.Array, prefix: str) -> pa.Array:
    if not prefix:
        return texts
    return pc.if_else(pc.starts_with(texts, prefix), pc.utf8_slice_codeunits(texts, len(prefix)), texts)


_READERS: dict[str, Callable[[Headers, str, pa.Array], pa.Array]] = {
    "JMSDeliveryMode": Headers.delivery_mode,
    "JMSDeliveryTime": Headers.time,
    "JMSExpiration": Headers.time,
    "JMSPriority": Headers.number,
    "JMSRedelivered": Headers.truth,
    "JMSReplyTo": Headers.reply_to,
    "JMSTimestamp": Headers.time,
}
"""How a column is read that is not the text of its header."""
