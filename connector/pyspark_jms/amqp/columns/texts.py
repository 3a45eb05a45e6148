"""Values of many constructors → their JMS types and the texts that Java writes for them."""

from base64 import b64encode

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import BIN8, BIN32, NULL, STR8, STR32, SYM8, SYM32, ByteReader
from pyspark_jms.amqp.columns.flattened_entries import FlattenedEntries
from pyspark_jms.amqp.columns.ids import uuid_texts
from pyspark_jms.amqp.columns.one_value import AMQP_NAMES, JMS_TYPES
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.columns.strings import Ints, is_utf8, not_utf8, strings_at
from pyspark_jms.columns.value_texts import java_text
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.rules import AMQP_TYPES

__all__ = ["IS_ELEMENT", "IS_PROPERTY", "NUMBER", "SEQUENCES", "TYPES", "element_types", "property_types", "texts_of"]

NUMBER = 0x01
"""Not of AMQP: the constructor of an int that does not stand in the block; its ``start`` is the number itself."""

SEQUENCES = {0x70: 0x71, 0x52: 0x02, 0x43: 0x03}
"""Constructor of JMSXGroupSeq, a uint → that of the int of the same bits. Two are not of AMQP: the wide one is."""

TYPES = pa.array([*(kind.value for kind in ValueType), *AMQP_TYPES], pa.string())

_ORDER = TYPES.to_pylist()
_SMALL_SEQUENCE, _SEQUENCE_0, _UINT_0, _ULONG_0 = 0x02, 0x03, 0x43, 0x44
_ZEROS = (_SEQUENCE_0, _UINT_0, _ULONG_0)
_STORED = {_SMALL_SEQUENCE: 0x52}
_ULONG, _UUID = 0x80, 0x98
_OF_AMQP = (0x50, 0x60, 0x70, 0x52, 0x43, _ULONG, 0x53, _ULONG_0, 0x83, _UUID, SYM8, SYM32)
"""The constructors without a JMS type whose values are read all at once. Others are left to the reader of one value."""

_WHOLE = (0x51, 0x61, 0x71, 0x54, 0x81, 0x55, 0x83, 0x50, 0x60, 0x70, 0x52, 0x80, 0x53, *_ZEROS, 0x02, NUMBER)
_TRUE, _BOOLEAN, _FLOAT, _DOUBLE, _CHAR = 0x41, 0x56, 0x72, 0x82, 0x73
_BOOLEANS = (0x42, _TRUE, _BOOLEAN)
_TEXTS = frozenset({STR8, STR32, SYM8, SYM32})
_BYTES = (BIN8, BIN32)
_TRUTHS = pa.array(["false", "true"], pa.string())

_OF_ELEMENTS = np.full(256, -1, np.int64)
_OF_ELEMENTS[list(JMS_TYPES)] = [_ORDER.index(kind) for kind in JMS_TYPES.values()]
_OF_ELEMENTS[[NUMBER, _SMALL_SEQUENCE, _SEQUENCE_0]] = _ORDER.index(ValueType.INT)
_OF_PROPERTIES = _OF_ELEMENTS.copy()
_OF_ELEMENTS[list(_OF_AMQP)] = [_ORDER.index(AMQP_TYPES[AMQP_NAMES[code]]) for code in _OF_AMQP]
_OF_PROPERTIES[[*_OF_AMQP, *_BYTES]] = [_ORDER.index(AMQP_NAMES[code]) for code in (*_OF_AMQP, *_BYTES)]

IS_ELEMENT = _OF_ELEMENTS >= 0
IS_PROPERTY = IS_ELEMENT.copy()
IS_PROPERTY[_CHAR] = False
"""By constructor: whether such values are read all at once."""


def element_types(flat: FlattenedEntries) -> pa.Array:
    """The JMS type of each value. A value that is not ``IS_ELEMENT`` has been refused before."""
    return _types(flat, _OF_ELEMENTS)


def property_types(flat: FlattenedEntries) -> pa.Array:
    """The type of each value, that of AMQP where JMS has no such property."""
    return _types(flat, _OF_PROPERTIES)


def _types(flat: FlattenedEntries, numbers: Ints) -> pa.Array:
    if isinstance(flat.code, np.ndarray):
        return TYPES.take(pa.array(numbers[flat.code]))
    return flat.pick_each(TYPES, [int(numbers[code]) for code in flat.code])


def texts_of(reader: ByteReader, flat: FlattenedEntries, refusals: Refusals) -> pa.Array:
    """The text of each value, null for a null."""
    return _Texts(reader, flat, refusals).column()


class _Texts:
    def __init__(self, reader: ByteReader, flat: FlattenedEntries, refusals: Refusals) -> None:
        self._reader = reader
        self._flat = flat
        self._index = np.zeros(len(flat), np.int64)
        self._parts: list[pa.Array] = []
        self._size = 0
        self._refusals = refusals

    def column(self) -> pa.Array:
        present = self._flat.constructors()
        self._strings(present)
        self._numbers(present)
        self._booleans(present)
        for code in {_FLOAT, _DOUBLE} & present:
            at = self._flat.places_of(code)
            numbers = self._reader.numbers(code, self._flat.start[at])
            native = numbers.astype(np.float32 if code == _FLOAT else np.float64)
            self._add(at, java_text(pa.array(native)).view(pa.string()))
        if _CHAR in present:
            self._chars()
        if _UUID in present:
            at = self._flat.places_of(_UUID)
            self._add(at, uuid_texts(self._reader, self._flat.start[at]))
        for code in {BIN8, BIN32} & present:
            at = self._flat.places_of(code)
            contents = strings_at(self._reader.buffer, self._flat.start[at], self._flat.stop[at]).view(pa.binary())
            self._add(at, pa.array([b64encode(content).decode() for content in contents.to_pylist()], pa.string()))
        if not self._parts:
            return pa.nulls(len(self._flat), pa.string())
        nulls = None
        if NULL in present:
            nulls = np.zeros(len(self._flat), np.bool_)
            nulls[self._flat.places_of(NULL)] = True
        whole = self._parts[0] if len(self._parts) == 1 else pa.concat_arrays(self._parts)
        return whole.take(pa.array(self._index, mask=nulls))

    def _add(self, at: Ints, texts: pa.Array) -> None:
        """The texts of the values at some places."""
        self._index[at] = np.arange(self._size, self._size + len(at))
        self._parts.append(texts)
        self._size += len(texts)

    def _strings(self, present: set[int]) -> None:
        if not _TEXTS & present:
            return
        at = self._flat.places_of(*_TEXTS)
        start, stop = self._flat.start[at], self._flat.stop[at]
        texts = strings_at(self._reader.buffer, start, stop)
        if not is_utf8(texts):
            wrong = not_utf8(texts)
            self._refuse(at[wrong])
            texts = strings_at(self._reader.buffer, start, stop, ~wrong)
        self._add(at, texts)

    def _numbers(self, present: set[int]) -> None:
        codes = [code for code in _WHOLE if code in present]
        if not codes:
            return
        places = [self._flat.places_of(code) for code in codes]
        each = [self._whole(code, self._flat.start[at]) for code, at in zip(codes, places, strict=True)]
        at, numbers = np.concatenate(places), np.concatenate(each)
        if _ULONG in codes:  # one that no long holds has become negative
            ulongs = places[codes.index(_ULONG)]
            self._refuse(ulongs[each[codes.index(_ULONG)] < 0])
        if (numbers == numbers[0]).all():  # JMSXDeliveryCount, where nothing is redelivered
            self._add(at[:1], pa.array(numbers[:1]).cast(pa.string()))
            self._index[at] = self._index[at[0]]
        else:
            self._add(at, pa.array(numbers).cast(pa.string()))

    def _whole(self, code: int, start: Ints) -> Ints:
        if code == NUMBER:
            return start
        if code in _ZEROS:  # they have no bytes
            return np.zeros(len(start), np.int64)
        numbers: Ints = self._reader.numbers(_STORED.get(code, code), start).astype(np.int64)
        return numbers

    def _booleans(self, present: set[int]) -> None:
        codes = [code for code in _BOOLEANS if code in present]
        for code in codes:
            at = self._flat.places_of(code)
            truths = np.full(len(at), int(code == _TRUE))
            if code == _BOOLEAN:
                truths = self._reader.numbers(code, self._flat.start[at]).astype(np.int64)
                self._refuse(at[truths > 1])
                truths = np.minimum(truths, 1)
            self._index[at] = self._size + truths
        if codes:
            self._parts.append(_TRUTHS)
            self._size += len(_TRUTHS)

    def _chars(self) -> None:
        at = self._flat.places_of(_CHAR)
        points = self._reader.numbers(_CHAR, self._flat.start[at]).astype(np.int64)
        wrong = (points > 0xFFFF) | ((points >= 0xD800) & (points < 0xE000))  # noqa: PLR2004 - surrogates
        self._refuse(at[wrong])
        self._add(at, pa.array([chr(point) for point in np.where(wrong, 0, points).tolist()], pa.string()))

    def _refuse(self, entries: Ints) -> None:
        if len(entries):
            self._refusals.add(self._flat.row_of_each()[entries])
