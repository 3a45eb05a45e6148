"""Headers of JMS in the sections of AMQP."""

import uuid

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import (
    FALSE,
    NULL,
    TRUE,
    binary,
    byte,
    entries_in,
    parts_of,
    string,
    symbol,
    timestamp,
    ubyte,
    ulong,
    values_in,
)
from sink_rows import DESTINATION, rows_of

from pyspark_jms.amqp.columns.encode_headers import (
    NO_KIND,
    Identity,
    addresses_of,
    annotations,
    correlation_ids,
    delivery_times_of,
    header,
    properties,
    reply_addresses_of,
)
from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.amqp.wire.sections import id_text
from pyspark_jms.columns.arrays import join_rows
from pyspark_jms.columns.rows import BODY_TYPES, Rows
from pyspark_jms.errors import InvalidDestinationError, MessageFormatError, UnsupportedError
from pyspark_jms.jms.headers import PropertiesField
from pyspark_jms.jms.model import Destination

TOPIC = Destination.parse("topic://t")


def test_one_destination_is_constant():
    found = addresses_of(rows_of(text=["a", "b"]), ARTEMIS, TOPIC)
    assert (found.pieces, found.kinds.tolist()) == ([b"\xa1\x01t"], [1, 1])


def test_each_row_may_name_its_own():
    found = addresses_of(rows_of(destination=["topic://x", None, "q", "queue://q"]), ARTEMIS, TOPIC)
    assert join_rows(found.pieces).to_pylist() == [b"\xa1\x01x", b"\xa1\x01t", b"\xa1\x01q", b"\xa1\x01q"]
    assert found.kinds.tolist() == [1, 1, 0, 0]


def test_an_option_may_name_what_a_row_may_not():
    reserved = Destination.parse("queue://activemq.management")
    assert addresses_of(rows_of(text=["a"]), ARTEMIS, reserved).kinds.tolist() == [0]
    with pytest.raises(InvalidDestinationError, match="row 10 "):
        addresses_of(rows_of(destination=["activemq.management"]), ARTEMIS, None)
    with pytest.raises(InvalidDestinationError, match="comma"):
        addresses_of(rows_of(text=["a"]), CLASSIC, Destination.parse("queue://a,b"))


def test_reply_to_keeps_its_kind():
    texts = ["queue://a", None, "topic://b", "temp-queue://c", "temp-topic://d", "e", "f://g"]
    found = reply_addresses_of(rows_of(JMSReplyTo=texts), AMQP)
    assert join_rows(found.pieces).to_pylist() == [
        b"\xa1\x01a",
        b"\x40",
        *(b"\xa1\x01" + name for name in (b"b", b"c", b"d", b"e")),
        b"\xa1\x05f://g",
    ]
    assert found.kinds.tolist() == [0, NO_KIND, 1, 2, 3, 0, 0]


def test_no_reply_to():
    assert reply_addresses_of(rows_of(text=["a"]), ARTEMIS) is None


def test_a_reply_to_without_a_name_is_refused():
    with pytest.raises(MessageFormatError, match=r"Row 11 .*JMSReplyTo"):
        reply_addresses_of(rows_of(JMSReplyTo=["a", "queue://"]), ARTEMIS)


def test_a_reply_to_that_is_not_utf8_is_refused():
    texts = pa.array([b"a", b"\xff"]).view(pa.string())
    with pytest.raises(MessageFormatError, match=r"Row 11 .*JMSReplyTo .*UTF-8"):
        reply_addresses_of(rows_of(JMSReplyTo=texts), ARTEMIS)


NOW_MS = 1_000_000


def joined(pieces, rows=1):
    if all(isinstance(piece, bytes) for piece in pieces):
        return [b"".join(pieces)] * rows
    return join_rows(pieces).to_pylist()


def fields(section):
    return values_in(parts_of(section)[0x70])


def test_the_defaults_are_one_constant():
    pieces = header(rows_of(text=["a", "b"]), np.zeros(1, np.int64), NOW_MS)
    assert b"".join(pieces) == bytes.fromhex("005370d0 00000007 00000002 41 5004")


def test_mode_and_priority_of_each_row():
    rows = rows_of(JMSDeliveryMode=[1, None], JMSPriority=[9, 0])
    first, second = joined(header(rows, np.zeros(1, np.int64), NOW_MS))
    assert fields(first) == [FALSE, ubyte(9)]
    assert fields(second) == [TRUE, ubyte(0)]


@pytest.mark.parametrize(
    ("expiration", "ttl"),
    [(NOW_MS + 5, 5), (NOW_MS + 1, 1), (NOW_MS + 2**32 - 1, 2**32 - 1), (NOW_MS + 2**32, None), (0, None)],
)
def test_ttl_is_the_rest_of_the_life(expiration, ttl):
    rows = rows_of(text=["a", "b"])
    own = np.array([expiration, NOW_MS + 7])
    found = fields(joined(header(rows, own, NOW_MS))[0])[2]
    assert found == (NULL if ttl is None else b"\x70" + ttl.to_bytes(4, "big"))


def test_one_ttl_of_all_rows_is_constant():
    pieces = header(rows_of(text=["a", "b"]), np.array([NOW_MS + 1]), NOW_MS)
    assert fields(b"".join(pieces))[2] == b"\x70\0\0\0\x01"


def found_annotations(section):
    return {key[2:].decode(): value for key, value in entries_in(parts_of(section)[0x72])}


@pytest.mark.parametrize(
    ("kind", "code"), [("message", 0), ("object", 1), ("map", 2), ("bytes", 3), ("stream", 4), ("text", 5)]
)
def test_the_type_of_the_message(kind, code):
    rows = rows_of(text=["a"])
    pieces = annotations(
        rows,
        np.array([BODY_TYPES.index(kind)]),
        addresses_of(rows, ARTEMIS, DESTINATION),
        None,
        np.zeros(1, np.int64),
    )
    assert found_annotations(b"".join(pieces)) == {"x-opt-jms-dest": byte(0), "x-opt-jms-msg-type": byte(code)}


def test_each_row_has_its_own_annotations():
    rows = rows_of(
        text=["a", "b", "c"],
        destination=["queue://a", "topic://b", "c"],
        JMSReplyTo=["topic://r", None, "temp-queue://s"],
        delivery_delay=pa.array([5, None, 0]),
    )
    times = delivery_times_of(rows, ARTEMIS, NOW_MS)
    to, reply_to = addresses_of(rows, ARTEMIS, None), reply_addresses_of(rows, ARTEMIS)
    texts = np.full(3, BODY_TYPES.index("text"))
    found = [found_annotations(section) for section in joined(annotations(rows, texts, to, reply_to, times))]
    assert found == [
        {
            "x-opt-jms-dest": byte(0),
            "x-opt-jms-msg-type": byte(5),
            "x-opt-jms-reply-to": byte(1),
            "x-opt-delivery-time": b"\x81" + (NOW_MS + 5).to_bytes(8, "big"),
        },
        {"x-opt-jms-dest": byte(1), "x-opt-jms-msg-type": byte(5)},
        {"x-opt-jms-dest": byte(0), "x-opt-jms-msg-type": byte(5), "x-opt-jms-reply-to": byte(2)},
    ]


def test_one_delivery_time_of_all_rows():
    rows = rows_of(text=["a", "b"])
    to = addresses_of(rows, ARTEMIS, DESTINATION)
    texts = np.full(2, BODY_TYPES.index("text"))
    for section in joined(annotations(rows, texts, to, None, np.array([77]))):
        assert found_annotations(section)["x-opt-delivery-time"] == b"\x81" + (77).to_bytes(8, "big")


def test_a_broker_that_cannot_delay_refuses_a_delay_and_takes_a_time_that_is_over():
    rows = rows_of(text=["a", "b"], delivery_delay=pa.array([0, 5]))
    with pytest.raises(UnsupportedError, match=r"Row 11 .*has a delivery delay, and rabbitmq would deliver it at once"):
        delivery_times_of(rows, RABBITMQ, NOW_MS)
    over = rows_of(text=["a"], delivery_delay=pa.array([0]))
    assert not delivery_times_of(over, RABBITMQ, NOW_MS).any()


UUID = b"\x98" + uuid.UUID(int=7).bytes
ENCODED = [UUID, b"\x44", ulong(255), ulong(256), ulong(2**64 - 1), binary(b""), binary(bytes(range(256)) * 2)]
ENCODED += [string(text) for text in ("", "a", "ID:a", "ID:AMQP_UUID:a", "ID:AMQP_x", "é" * 300, "ID:AMQP_STRING:")]
SPELLED = [id_text(value, 0, of_message=False) for value in ENCODED]


def sent(*ids):
    texts = pa.array(ids, pa.string())
    rows = rows_of(JMSCorrelationID=texts)
    return join_rows(correlation_ids(rows, texts.view(pa.binary()))).to_pylist()


@pytest.mark.parametrize("value", ENCODED, ids=lambda value: f"{value[0]:02x}-{len(value)}")
def test_an_id_is_sent_as_it_came(value):
    """By itself, and among ids that are strings, and nulls."""
    spelled = id_text(value, 0, of_message=False)
    assert sent(spelled) == [value]
    assert sent(None, "a", spelled, "ID:AMQP_NO_PREFIX:b") == [NULL, string("a"), value, string("b")]


def test_every_type_in_one_batch():
    assert sent(*SPELLED) == ENCODED


@pytest.mark.parametrize("digits", ["0123456789ABCDEF0123456789ABCDEF", "01234567-89AB-CDEF-0123-456789ABCDEF"])
def test_capital_letters_are_read(digits):
    value = f"ID:AMQP_{'UUID' if '-' in digits else 'BINARY'}:{digits}"
    assert sent(value)[0].endswith(bytes.fromhex(digits.replace("-", "")))


@pytest.mark.parametrize(
    "wrong",
    ["UUID:", "UUID:x", f"UUID:{uuid.UUID(int=7).hex}", "ULONG:-1", "ULONG:", f"ULONG:{2**64}", "ULONG:x", "BINARY:0"],
)
def test_what_is_not_of_the_type_that_it_names_is_refused(wrong):
    begin = f"JMSCorrelationID that begins with ID:AMQP_{wrong.partition(':')[0]}: and does not"
    with pytest.raises(MessageFormatError, match=f"Row 12 .*{begin}"):
        sent("a", None, f"ID:AMQP_{wrong}")


def found(rows, expirations=(0,), content_types=(b"\x40",), groups=None):
    pieces = properties(
        rows,
        Identity("ID:p-", 0x0102),
        to=addresses_of(rows, ARTEMIS, DESTINATION),
        reply_to=reply_addresses_of(rows, ARTEMIS),
        content_types=list(content_types),
        expirations=np.array(expirations),
        groups=groups or {},
    )
    return [values_in(parts_of(section)[0x73]) for section in join_rows(pieces).to_pylist()]


def test_every_field_has_its_place():
    rows = rows_of(text=["a"], JMSType=["ty"], JMSReplyTo=["r"], JMSCorrelationID=["c"])
    (fields,) = found(
        rows, [9], [b"\xa3\x01m"], {PropertiesField.GROUP_ID: [b"\xa1\x01g"], PropertiesField.GROUP_SEQUENCE: [b"\x43"]}
    )
    texts = [string(text) for text in ("default", "ty", "r", "c")]
    times = [timestamp(9), timestamp(0x0102)]
    assert fields == [string("ID:p-000000000010"), NULL, *texts, symbol("m"), NULL, *times, string("g"), b"\x43"]


def test_absent_headers_are_null():
    (fields,) = found(rows_of(text=["a"]))
    assert [index for index, value in enumerate(fields) if value != NULL] == [0, 2, 9]
    assert len(fields) == 10


def test_each_row_has_its_own():
    first, second = found(rows_of(JMSType=["x", None], JMSCorrelationID=[None, "ID:y"]), [0, 8])
    assert (first[3], first[5], first[8]) == (string("x"), NULL, NULL)
    assert (second[3], second[5], second[8]) == (NULL, string("ID:y"), timestamp(8))
    assert (first[0], second[0]) == (string("ID:p-000000000010"), string("ID:p-000000000011"))


def test_a_message_id_ends_with_the_number_of_the_row():
    rows = rows_of(text=["a"] * 3)
    numbered = Rows(columns=rows.columns, first=0, count=3, numbers=np.array([0, 9_999, 123_456_789_012]))
    assert [row[0][2:] for row in found(numbered)] == [b"ID:p-000000000000", b"ID:p-000000009999", b"ID:p-123456789012"]


@pytest.mark.parametrize("column", ["JMSType", "JMSCorrelationID"])
def test_what_is_not_utf8_is_refused(column):
    texts = pa.array([b"a", b"\xff"]).view(pa.string())
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{column} .*UTF-8"):
        found(rows_of(**{column: texts}))
