"""The parts of messages → the columns of their rows."""

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.annotations import ABSENT, Annotations
from pyspark_jms.amqp.columns.bodies import body_columns
from pyspark_jms.amqp.columns.byte_reader import SYM8, SYM32, ByteReader
from pyspark_jms.amqp.columns.destinations import KINDS, destination_of, reply_to_of
from pyspark_jms.amqp.columns.fields import BOOLEAN, BYTE, TIME, UBYTE, UINT, field_at, numbers, string, times
from pyspark_jms.amqp.columns.one_body import BY_ANNOTATION
from pyspark_jms.amqp.columns.one_message import Reading
from pyspark_jms.amqp.columns.properties import property_columns
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.columns.walk import Parts
from pyspark_jms.amqp.wire.sections import FINGERPRINT_BYTES
from pyspark_jms.columns.cut import Ints
from pyspark_jms.jms.model import DeliveryMode

__all__ = ["columns_of"]

_DEFAULT_PRIORITY = 4
_SLASH = pa.scalar("/", pa.string())
_EMPTY, _TRUE = pa.scalar(0, pa.int32()), pa.scalar(value=True, type=pa.bool_())
_DELIVERY_TIME = {**TIME, 0x81: None, 0x55: None}
_MESSAGE_ID, _TO, _SUBJECT, _REPLY_TO, _CORRELATION_ID, _CONTENT_TYPE = 0, 2, 3, 4, 5, 6
_EXPIRY, _CREATED = 8, 9


def columns_of(reader: ByteReader, parts: Parts, reading: Reading) -> dict[str, pa.Array]:
    """Every column but ``sequence`` and ``body_error``; ``RefusedRowsError`` if a row is for the slow path."""
    return _Rows(reader, parts, reading).columns()


class _Rows:
    def __init__(self, reader: ByteReader, parts: Parts, reading: Reading) -> None:
        self._reader = reader
        self._parts = parts
        self._reading = reading
        self._annotations = Annotations(reader, parts.annotations, len(parts))

    def columns(self) -> dict[str, pa.Array]:
        rows = len(self._parts)
        # Every step is tried, so that all rows that must be refused are found in one round.
        refusals = Refusals()
        earlier = refusals.attempt(partial(self._header, 4, UINT, absent=0))
        ids = refusals.attempt(partial(self._string, _MESSAGE_ID))
        content_types = refusals.attempt(partial(self._string, _CONTENT_TYPE, (SYM8, SYM32)))
        steps: dict[str, Callable[[], pa.Array]] = {
            "JMSType": partial(self._string, _SUBJECT),
            "JMSCorrelationID": partial(self._string, _CORRELATION_ID),
            "JMSDestination": self._destinations,
            "JMSReplyTo": self._reply_tos,
            "JMSTimestamp": partial(self._time, _CREATED),
            "JMSExpiration": partial(self._time, _EXPIRY),
            "JMSDeliveryTime": self._delivery_times,
            "JMSDeliveryMode": self._delivery_modes,
            "JMSPriority": self._priorities,
        }
        found = {name: refusals.attempt(step) for name, step in steps.items()}
        if earlier is None or ids is None or content_types is None:
            raise refusals.error()
        found |= refusals.attempt(partial(self._properties, ids, earlier)) or {}
        found |= refusals.attempt(partial(self._bodies, content_types)) or {}
        refusals.raise_any()
        return found | {
            "JMSMessageID": ids,
            "JMSRedelivered": pa.array(earlier > 0),
            "content_type": content_types,
            "body_error": pa.nulls(rows, pa.string()),
            "delivery_id": self._delivery_ids(ids),
        }

    def _properties(self, ids: pa.Array, earlier: Ints) -> dict[str, pa.Array]:
        without_id = np.asarray(ids.is_null())
        return property_columns(self._reader, self._parts, self._reading.dialect, without_id, earlier)

    def _bodies(self, content_types: pa.Array) -> dict[str, pa.Array]:
        types = self._annotations.small("x-opt-jms-msg-type", BYTE, range(len(BY_ANNOTATION)))
        return body_columns(self._reader, self._parts, types, content_types, self._reading.body_type)

    def _priorities(self) -> pa.Array:
        return _int32(self._header(1, UBYTE, absent=_DEFAULT_PRIORITY))

    def _header(self, number: int, codes: Mapping[int, int | None], *, absent: int) -> Ints:
        field = field_at(self._parts.header, number)
        return numbers(self._reader, field, len(self._parts), codes, absent=absent)

    def _string(self, number: int, codes: tuple[int, int] | None = None) -> pa.Array:
        field = field_at(self._parts.properties, number)
        if codes is None:
            return string(self._reader, field, len(self._parts))
        return string(self._reader, field, len(self._parts), codes)

    def _time(self, number: int) -> pa.Array:
        field = field_at(self._parts.properties, number)
        if field is None:
            return times(np.zeros(len(self._parts), np.int64))
        return times(numbers(self._reader, field, len(self._parts), TIME, absent=0))

    def _delivery_times(self) -> pa.Array:
        found = self._annotations.numbers("x-opt-delivery-time", _DELIVERY_TIME)
        return times(np.where(found == ABSENT, 0, found))

    def _delivery_modes(self) -> pa.Array:
        durable = self._header(0, BOOLEAN, absent=0)
        return _int32(np.where(durable == 1, DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT))

    # --- destinations and ids ---------------------------------------------------------------------

    def _destinations(self) -> pa.Array:
        kinds = self._annotations.small("x-opt-jms-dest", BYTE, range(len(KINDS)))
        source, prefixes = self._reading.source, self._reading.dialect.destination_prefixes
        return _by_pair(self._string(_TO), kinds, lambda to, kind: destination_of(to, kind, source, prefixes))

    def _reply_tos(self) -> pa.Array:
        reply_to = self._string(_REPLY_TO)
        if reply_to.null_count == len(reply_to):
            return reply_to
        kinds = self._annotations.small("x-opt-jms-reply-to", BYTE, range(len(KINDS)))
        prefixes = self._reading.dialect.destination_prefixes
        return _by_pair(reply_to, kinds, lambda name, kind: reply_to_of(name, kind, prefixes))

    def _delivery_ids(self, ids: pa.Array) -> pa.Array:
        """``NAME/message-id``, or ``NAME/~fingerprint`` without a message-id."""
        without = np.flatnonzero(np.asarray(pc.equal(pc.binary_length(ids), _EMPTY).fill_null(_TRUE)))
        if len(without):
            digests = pa.array(self._fingerprints(without), pa.string())
            mask = np.zeros(len(ids), np.bool_)
            mask[without] = True
            ids = pc.replace_with_mask(ids, pa.array(mask), digests)
        return pc.binary_join_element_wise(pa.scalar(self._reading.source.name, pa.string()), ids, _SLASH)

    def _fingerprints(self, rows: Ints) -> list[str]:
        data = memoryview(self._reader.buffer)
        places = zip(self._parts.begins[rows].tolist(), self._parts.ends[rows].tolist(), strict=True)
        return [f"~{blake2b(data[begin:end], digest_size=FINGERPRINT_BYTES).hexdigest()}" for begin, end in places]


def _int32(values: Ints) -> pa.Array:
    return pa.array(values.astype(np.int32))


def _by_pair(names: pa.Array, kinds: Ints, spelled: Callable[[str | None, int | None], str | None]) -> pa.Array:
    """``spelled`` of each name and its kind, called once for each different pair."""
    encoded = names.dictionary_encode()
    different = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(different)).to_numpy().astype(np.int64)
    pairs = codes * (len(KINDS) + 1) + kinds + 1
    first = int(pairs[0])
    each = np.array([first]) if (pairs == first).all() else None
    where = None
    if each is None:
        each, where = np.unique(pairs, return_inverse=True)
    texts = pa.array([_spell(spelled, [*different, None], pair) for pair in each.tolist()], pa.string())
    return pa.repeat(texts[0], len(names)) if where is None else texts.take(pa.array(where))


def _spell(spelled: Callable[[str | None, int | None], str | None], names: list[str | None], pair: int) -> str | None:
    name, kind = divmod(pair, len(KINDS) + 1)
    return spelled(names[name], kind - 1 if kind else None)
