import numpy as np
import plain_amqp
import pyarrow as pa
import pytest
from sink_rows import DEFAULTS, rows_of

from pyspark_jms.amqp.columns.encode_destinations import addresses_of, reply_addresses_of
from pyspark_jms.amqp.columns.encode_header import annotations, delivery_times_of, header
from pyspark_jms.amqp.dialects import ARTEMIS, RABBITMQ
from pyspark_jms.columns.row_fields import BODY_TYPES
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import UnsupportedError

NOW_MS = 1_000_000


def joined(pieces, rows=1):
    if all(isinstance(piece, bytes) for piece in pieces):
        return [b"".join(pieces)] * rows
    return join_rows(pieces).to_pylist()


def fields(section):
    ((_, value),) = plain_amqp.sections(section)
    return plain_amqp.fields(value, 5)


def test_the_defaults_are_one_constant():
    pieces = header(rows_of(text=["a", "b"]), DEFAULTS, np.zeros(1, np.int64), NOW_MS)
    assert b"".join(pieces) == bytes.fromhex("005370d0 00000007 00000002 41 5004")


def test_mode_and_priority_of_each_row():
    rows = rows_of(JMSDeliveryMode=[1, None], JMSPriority=[9, 0])
    first, second = joined(header(rows, DEFAULTS, np.zeros(1, np.int64), NOW_MS))
    assert fields(first) == {0: (0x42, b""), 1: (0x50, b"\x09")}
    assert fields(second) == {0: (0x41, b""), 1: (0x50, b"\x00")}


@pytest.mark.parametrize(
    ("expiration", "ttl"),
    [(NOW_MS + 5, 5), (NOW_MS - 5, 1), (NOW_MS, 1), (NOW_MS + 2**32 - 1, 2**32 - 1), (NOW_MS + 2**32, None), (0, None)],
)
def test_ttl_is_the_rest_of_the_life(expiration, ttl):
    rows = rows_of(text=["a", "b"])
    own = np.array([expiration, NOW_MS + 7])
    found = fields(joined(header(rows, DEFAULTS, own, NOW_MS))[0])[2]
    assert found == ((0x40, b"") if ttl is None else (0x70, ttl.to_bytes(4, "big")))


def test_one_ttl_of_all_rows_is_constant():
    pieces = header(rows_of(text=["a", "b"]), DEFAULTS, np.array([NOW_MS + 1]), NOW_MS)
    assert fields(b"".join(pieces))[2] == (0x70, b"\0\0\0\x01")


def found_annotations(section):
    ((_, value),) = plain_amqp.sections(section)
    return {key[1].decode(): (code, int.from_bytes(content, "big")) for key, (code, content) in plain_amqp.pairs(value)}


@pytest.mark.parametrize(
    ("kind", "code"), [("message", 0), ("object", 1), ("map", 2), ("bytes", 3), ("stream", 4), ("text", 5)]
)
def test_the_type_of_the_message(kind, code):
    rows = rows_of(text=["a"])
    pieces = annotations(
        rows,
        np.array([BODY_TYPES.index(kind)]),
        addresses_of(rows, ARTEMIS, DEFAULTS.destination),
        None,
        np.zeros(1, np.int64),
    )
    assert found_annotations(b"".join(pieces)) == {"x-opt-jms-dest": (0x51, 0), "x-opt-jms-msg-type": (0x51, code)}


def test_each_row_has_its_own_annotations():
    rows = rows_of(
        text=["a", "b", "c"],
        destination=["queue://a", "topic://b", "c"],
        JMSReplyTo=["topic://r", None, "temp-queue://s"],
        delivery_delay=pa.array([5, None, 0]),
    )
    times = delivery_times_of(rows, ARTEMIS, DEFAULTS, NOW_MS)
    to, reply_to = addresses_of(rows, ARTEMIS, None), reply_addresses_of(rows, ARTEMIS)
    texts = np.full(3, BODY_TYPES.index("text"))
    found = [found_annotations(section) for section in joined(annotations(rows, texts, to, reply_to, times))]
    assert found == [
        {
            "x-opt-jms-dest": (0x51, 0),
            "x-opt-jms-msg-type": (0x51, 5),
            "x-opt-jms-reply-to": (0x51, 1),
            "x-opt-delivery-time": (0x81, NOW_MS + 5),
        },
        {"x-opt-jms-dest": (0x51, 1), "x-opt-jms-msg-type": (0x51, 5)},
        {"x-opt-jms-dest": (0x51, 0), "x-opt-jms-msg-type": (0x51, 5), "x-opt-jms-reply-to": (0x51, 2)},
    ]


def test_one_delivery_time_of_all_rows():
    rows = rows_of(text=["a", "b"])
    to = addresses_of(rows, ARTEMIS, DEFAULTS.destination)
    texts = np.full(2, BODY_TYPES.index("text"))
    for section in joined(annotations(rows, texts, to, None, np.array([77]))):
        assert found_annotations(section)["x-opt-delivery-time"] == (0x81, 77)


def test_a_broker_that_cannot_delay_refuses_a_delay_and_takes_a_time_that_is_over():
    rows = rows_of(text=["a", "b"], delivery_delay=pa.array([0, 5]))
    with pytest.raises(UnsupportedError, match=r"Row 11 .*has a delivery delay, and rabbitmq would deliver it at once"):
        delivery_times_of(rows, RABBITMQ, DEFAULTS, NOW_MS)
    over = rows_of(text=["a"], delivery_delay=pa.array([0]))
    assert not delivery_times_of(over, RABBITMQ, DEFAULTS, NOW_MS).any()
