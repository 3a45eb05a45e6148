"""Header lines and their layout → the columns that the dialect feeds from headers. Knows the dialect, no body."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.decode_cut import Bools, Ints
from pyspark_jms.columns.decode_lines import Fault, Lines
from pyspark_jms.columns.decode_values import destinations, integers, stable_ids, times, truths
from pyspark_jms.columns.layout import Layout
from pyspark_jms.columns.schema import COLUMNS
from pyspark_jms.dialect.base import BodyRule, Dialect
from pyspark_jms.model import DeliveryMode, Destination, DestinationKind

__all__ = ["Headers"]

_INT32 = (-(1 << 31), (1 << 31) - 1)
_AFTER_LINES = 1 << 61
_DURABLE, _OTHER = (pa.scalar(int(mode), pa.int32()) for mode in (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT))
_TOPIC, _NOTHING = pa.scalar(f"{DestinationKind.TOPIC}://", pa.string()), pa.scalar("", pa.string())


class Headers:
    """The headers of all frames, by the column they feed."""

    def __init__(self, lines: Lines, layout: Layout, dialect: Dialect) -> None:
        self._lines = lines
        self._layout = layout
        self._dialect = dialect
        self.faults: list[Fault] = list(lines.faults)

    def __len__(self) -> int:
        return len(self._lines.first) - 1

    def columns(self) -> dict[str, pa.Array]:
        """Every column that is one header, and ``properties``."""
        roles = dict.fromkeys(self._dialect.message_headers.values())
        columns = {role: _READERS.get(role, Headers.text)(self, role) for role in roles if role[0] != "@"}
        return columns | {"properties": self._properties()}

    def read_from(self, source: Destination) -> pa.Array:
        """A queue is read under one name; what a topic subscription matches (wildcards) the frame tells."""
        constant = pa.scalar(str(source), pa.string())
        if source.kind is DestinationKind.QUEUE:
            return pa.repeat(constant, len(self))
        named = pc.binary_join_element_wise(_TOPIC, self.text("@destination"), _NOTHING)
        return pc.coalesce(named, constant)

    def delivery_id(self, source: Destination) -> pa.Array:
        separator = self._dialect.stable_id_separator
        if separator is None:
            return pa.nulls(len(self), pa.string())
        return stable_ids(self.text("@message-id"), separator, source.name)

    def is_bytes(self) -> Bools:
        """Which frames hold a BytesMessage, by the dialect's rule."""
        match self._dialect.body_rule:
            case BodyRule.CONTENT_LENGTH_NOT_LAST:
                line = self._line("@content-length")
                last = self._lines.first[1:] - 1
                found: Bools = (line >= 0) & (line != last)
                return found

    def _line(self, role: str) -> Ints:
        line = self._layout.roles.get(role)
        return np.full(len(self), -1) if line is None else line

    def text(self, role: str) -> pa.Array:
        if role not in self._layout.roles:
            return pa.nulls(len(self), pa.string())
        return self._lines.values(self._layout.roles[role])

    def time(self, role: str) -> pa.Array:
        moments, wrong = times(self.text(role))
        self._blame(role, wrong)
        return moments

    def number(self, role: str) -> pa.Array:
        numbers, wrong = integers(self.text(role), *_INT32)
        self._blame(role, wrong)
        return pc.cast(numbers, pa.int32())

    def truth(self, role: str) -> pa.Array:
        return truths(self.text(role))

    def delivery_mode(self, role: str) -> pa.Array:
        return pc.if_else(self.truth(role), _DURABLE, _OTHER)

    def reply_to(self, role: str) -> pa.Array:
        if role not in self._layout.roles:
            return self.text(role)
        return destinations(self.text(role), self._dialect.reply_to_prefixes)

    def _properties(self) -> pa.Array:
        offsets = pa.array(self._layout.property_offsets, pa.int32())
        values = self._lines.values(self._layout.property_lines)
        return pa.MapArray.from_arrays(offsets, self._layout.property_keys, values)

    def _blame(self, role: str, rows: list[int]) -> None:
        headers = [header for header, fed in self._dialect.message_headers.items() if fed == role]
        place = _AFTER_LINES + COLUMNS.index(role)
        self.faults += [Fault(row, place, f"header {headers[0]!r} is not a number") for row in rows]


_READERS: dict[str, Callable[[Headers, str], pa.Array]] = {
    "JMSDeliveryMode": Headers.delivery_mode,
    "JMSDeliveryTime": Headers.time,
    "JMSExpiration": Headers.time,
    "JMSPriority": Headers.number,
    "JMSRedelivered": Headers.truth,
    "JMSReplyTo": Headers.reply_to,
    "JMSTimestamp": Headers.time,
}
"""How a column is read that is not the text of its header."""
