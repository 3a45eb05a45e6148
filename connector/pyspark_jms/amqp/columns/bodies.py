"""The bodies of messages → the columns of bodies. A row whose body is not of its type is refused.

What decides on the type of a body is the same for the reader of one message and for the encoder.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader, Refusals
from pyspark_jms.amqp.columns.entries import (
    IS_ELEMENT,
    OF_ELEMENTS,
    FlattenedEntries,
    flatten,
    only_of_types,
    texts_of,
    types_of,
)
from pyspark_jms.amqp.columns.headers import names_of
from pyspark_jms.amqp.columns.walk import NO_BODY, Entries, Parts, elements_of, entries_of
from pyspark_jms.amqp.wire.constructors import TYPES
from pyspark_jms.amqp.wire.sections import DATA, SEQUENCE, VALUE
from pyspark_jms.columns.arrays import Ints, Mask, is_utf8, not_utf8, strings_at
from pyspark_jms.columns.schema import COLUMNS, TYPED_VALUE
from pyspark_jms.columns.value_texts import BODY_TYPE_NAMES
from pyspark_jms.jms.model import ANNOTATED_BODY_TYPES, BodyType
from pyspark_jms.jms.subscription import BodyChoice

__all__ = ["BY_ANNOTATION", "NO_BODY_TYPE", "OBJECT_TYPE", "TEXT_TYPE", "body_columns", "is_text_type"]

BY_ANNOTATION = ANNOTATED_BODY_TYPES
"""The body type by the value of ``x-opt-jms-msg-type``."""

OBJECT_TYPE = "application/x-java-serialized-object"
NO_BODY_TYPE = "application/x-jms-message"
"""Of a message without a body. Artemis and Classic make a BytesMessage of one without a content type, and a plain
Message of one whose type they do not know.
"""

TEXT_TYPE = re.compile(
    r"(text/[^;\s]+|application/([^;\s]+\+)?(xml|json)|application/(xml-dtd|javascript|ecmascript))\s*(;.*)?",
    re.IGNORECASE | re.DOTALL,
)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)

_ORDER = list(BodyType)
_TEXT, _BYTES, _MAP, _STREAM, _OBJECT, _MESSAGE = range(len(_ORDER))
_NO_SECTION, _NOTHING, _STRING, _DATA, _BINARY, _LIST, _PAIRS = range(7)
"""The shapes of bodies: no section, a null, a string, data, …"""

_BY_ANNOTATION = np.array([_ORDER.index(kind) for kind in BY_ANNOTATION])
_BY_SHAPE = np.array([_MESSAGE, _TEXT, _TEXT, _BYTES, _BYTES, _STREAM, _MAP])

_SHAPES = np.full((256, 256), -1, np.int64)
for _section, _type, _shape in (
    (DATA, "binary", _DATA),
    (SEQUENCE, "list", _LIST),
    (VALUE, "string", _STRING),
    (VALUE, "binary", _BINARY),
    (VALUE, "list", _LIST),
    (VALUE, "map", _PAIRS),
    (VALUE, "null", _NOTHING),
):
    _SHAPES[_section, TYPES[_type]] = _shape

_FITS = np.zeros((len(_ORDER), 7), np.bool_)
_FITS[:, [_NO_SECTION, _NOTHING]] = True
_FITS[_TEXT, [_STRING, _DATA]] = True
_FITS[_BYTES, [_DATA, _BINARY]] = True
_FITS[_OBJECT, [_DATA, _BINARY]] = True
_FITS[_MAP, _PAIRS] = True
_FITS[_STREAM, _LIST] = True


def body_columns(
    reader: ByteReader,
    parts: Parts,
    refusals: Refusals,
    *,
    annotations: Ints,
    content_types: Callable[[], pa.Array],
    choice: BodyChoice,
    wanted: Collection[str] = COLUMNS,
) -> dict[str, pa.Array]:
    """The wanted columns of bodies. ``annotations``: ``x-opt-jms-msg-type`` of each row, -1 without one.

    ``content_types`` is called if they decide about a body.
    """
    shapes = _shapes(parts, refusals)
    kinds = _kinds(shapes, annotations, content_types, choice)
    fits = _FITS[kinds, shapes]
    if choice == "bytes":
        fits = fits | (shapes == _STRING)
    if not fits.all():
        refusals.add(np.flatnonzero(~fits))
        shapes = np.where(fits, shapes, _NO_SECTION)
    bodies = _Bodies(reader, parts, kinds, shapes, refusals)
    columns: dict[str, Callable[[], pa.Array]] = {
        "body_type": bodies.types,
        "text": bodies.text,
        "bytes": bodies.bytes,
        "map": bodies.map,
        "stream": bodies.stream,
    }
    return {name: read() for name, read in columns.items() if name in wanted}


def _shapes(parts: Parts, refusals: Refusals) -> Ints:
    code = parts.body.code
    if isinstance(code, int):
        code = np.full(len(parts), code)
    shapes = np.where(code == NO_BODY, _NO_SECTION, _SHAPES[parts.body_section, code])
    wrong = shapes < 0
    refusals.add_where(np.arange(len(parts)), wrong)
    return np.where(wrong, _NO_SECTION, shapes)


def _kinds(shapes: Ints, annotations: Ints, content_types: Callable[[], pa.Array], choice: BodyChoice) -> Ints:
    if choice != "auto":
        return np.full(len(shapes), _ORDER.index(BodyType(choice)))
    kinds = np.where(annotations >= 0, _BY_ANNOTATION[annotations], _BY_SHAPE[shapes])
    data = np.flatnonzero((annotations < 0) & (shapes == _DATA))
    if len(data) and (found := content_types()).null_count < len(found):
        encoded = found.take(pa.array(data)).dictionary_encode()
        known = [_kind_of(content_type) for content_type in encoded.dictionary.to_pylist()] + [_BYTES]
        kinds[data] = np.array(known)[encoded.indices.fill_null(len(known) - 1).to_numpy()]
    return kinds


def _kind_of(content_type: str) -> int:
    if content_type == OBJECT_TYPE:
        return _OBJECT
    return _TEXT if is_text_type(content_type) else _BYTES


def is_text_type(content_type: str) -> bool:
    """Return whether a body of bytes with this content type is text that can be read as UTF-8."""
    charset = _CHARSET.search(content_type)
    known = charset is None or charset[1].lower() in {"utf-8", "utf8", "us-ascii"}
    return known and TEXT_TYPE.fullmatch(content_type) is not None


@dataclass(frozen=True, slots=True)
class _Bodies:
    reader: ByteReader
    parts: Parts
    kinds: Ints
    shapes: Ints
    refusals: Refusals

    def types(self) -> pa.Array:
        first = int(self.kinds[0])
        if (self.kinds == first).all():
            return pa.repeat(BODY_TYPE_NAMES[first], len(self.kinds))
        return BODY_TYPE_NAMES.take(pa.array(self.kinds))

    def text(self) -> pa.Array:
        wanted = (self.kinds == _TEXT) & (self.shapes > _NOTHING)
        column = self._cut(wanted, empty=None)
        if is_utf8(column):
            return column
        wrong = not_utf8(column)
        self.refusals.add(np.flatnonzero(wrong))
        return self._cut(wanted & ~wrong, empty=None)

    def bytes(self) -> pa.Array:
        wanted = (self.kinds == _BYTES) | (self.kinds == _OBJECT)
        if not wanted.any():
            return pa.nulls(len(self.kinds), pa.binary())
        column = self._cut(wanted, empty=self.shapes <= _NOTHING)
        texts = wanted & (self.shapes == _STRING)
        if texts.any():
            checked = self._cut(texts, empty=None)
            if not is_utf8(checked):
                self.refusals.add(np.flatnonzero(not_utf8(checked)))
        return column.view(pa.binary())

    def _cut(self, keep: Mask, *, empty: Mask | None) -> pa.Array:
        """The contents of some bodies; ``empty``: those that are empty instead."""
        if not keep.any():
            return pa.nulls(len(keep), pa.string())
        start, stop = self.parts.body.start, self.parts.body.stop
        if empty is not None and empty.any():
            stop = np.where(empty, start, stop)
        return strings_at(self.reader.buffer, start, stop, None if keep.all() else keep)

    def map(self) -> pa.Array:
        kind = pa.map_(pa.string(), TYPED_VALUE)
        rows = np.flatnonzero(self.kinds == _MAP)
        if not len(rows):
            return pa.nulls(len(self.kinds), kind)
        given = rows[self.shapes[rows] == _PAIRS]
        entries = self._inside(given, entries_of)
        names = names_of(self.reader, entries, self.refusals)
        flat = flatten([entry.field for entry in entries], names.codes, len(self.kinds))
        self.refusals.add(flat.rows_with_a_name_twice(len(names)))
        keys = flat.pick_each(names.texts(), flat.name)
        offsets, absent = pa.array(flat.offsets, pa.int32()), pa.array(self.kinds != _MAP)
        typed = self._typed(flat)
        return pa.MapArray.from_arrays(offsets, keys, typed, kind, mask=absent)

    def stream(self) -> pa.Array:
        rows = np.flatnonzero(self.kinds == _STREAM)
        if not len(rows):
            return pa.nulls(len(self.kinds), pa.list_(TYPED_VALUE))
        given = rows[self.shapes[rows] == _LIST]
        entries = self._inside(given, elements_of)
        flat = flatten([entry.field for entry in entries], [0] * len(entries), len(self.kinds))
        typed = self._typed(flat)
        offsets, absent = pa.array(flat.offsets, pa.int32()), pa.array(self.kinds != _STREAM)
        return pa.ListArray.from_arrays(offsets, typed, mask=absent)

    def _typed(self, flat: FlattenedEntries) -> pa.Array:
        values = [types_of(flat, OF_ELEMENTS), texts_of(self.reader, flat, self.refusals)]
        return pa.StructArray.from_arrays(values, fields=list(TYPED_VALUE))

    def _inside(self, rows: Ints, read: Callable[[ByteReader, Ints, Ints], tuple[Entries, Mask]]) -> Entries:
        """The entries of the bodies of some rows. A row with a value that JMS does not have is refused."""
        if not len(rows):
            return []
        found, bad = read(self.reader, self.parts.body_at[rows], self.parts.ends[rows])
        self.refusals.add(rows[bad])
        placed = [entry._replace(field=entry.field._replace(rows=rows[entry.field.rows])) for entry in found]
        return [
            entry._replace(field=only_of_types(entry.field, IS_ELEMENT, self.refusals))
            for entry in placed
            if len(entry.field.rows)
        ]
