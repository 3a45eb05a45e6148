"""The message annotations of JMS (AMQP-JMS binding §3.1, §3.3): a number for each row."""

from collections.abc import Mapping

import numpy as np

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.compound_cursor import Field
from pyspark_jms.amqp.columns.fields import numbers
from pyspark_jms.amqp.columns.names import names_of
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.columns.walk import Entries
from pyspark_jms.columns.strings import Ints

__all__ = ["ABSENT", "Annotations"]

ABSENT = -(1 << 61)

_ROLES = ("x-opt-jms-dest", "x-opt-jms-reply-to", "x-opt-jms-msg-type", "x-opt-delivery-time")


class Annotations:
    def __init__(self, reader: ByteReader, entries: Entries, rows: int, refusals: Refusals) -> None:
        self._reader = reader
        self._rows = rows
        self._fields: dict[str, list[Field]] = {role: [] for role in _ROLES}
        names = names_of(reader, entries, refusals)
        for role, fields in self._fields.items():
            number = names.numbers.get(role, -1)
            for entry, code in zip(entries, names.codes, strict=True):
                which = np.equal(code, number)
                if which.any():
                    fields.append(entry.field if which.all() else entry.field.only(which))

    def numbers(self, role: str, codes: Mapping[int, int | None]) -> Ints:
        """The annotation in each row; ``ABSENT`` without one, or if its value has none of the constructors."""
        found = np.full(self._rows, ABSENT, np.int64)
        for field in self._fields[role]:
            values = numbers(self._reader, field, self._rows, codes, absent=ABSENT, refusals=None)
            if len(field.rows) == self._rows:
                found = values
            else:
                found[field.rows] = values[field.rows]
        return found

    def small(self, role: str, codes: Mapping[int, int | None], values: range) -> Ints:
        """The annotation as an index; -1 without one, and where it is not one of ``values``."""
        found = self.numbers(role, codes)
        return np.where((found >= values.start) & (found < values.stop), found, -1)
