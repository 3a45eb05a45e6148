import struct

import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.amqp.columns.encode_values import VALUE_TYPES, encoded_numbers, encoded_values, plain_values
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.jms.model import ValueType


def encoded(*pairs):
    kinds = np.array([VALUE_TYPES.index(kind) for kind, _ in pairs])
    return join_rows(encoded_values(kinds, pa.array([text for _, text in pairs], pa.string()))).to_pylist()


CASES = [
    ("boolean", "true", "41"),
    ("boolean", "FALSE", "42"),
    ("byte", "-128", "5180"),
    ("short", "+7", "610007"),
    ("int", "-2147483648", "7180000000"),
    ("int", "0000000000000000000000001", "7100000001"),
    ("long", "-9223372036854775808", "818000000000000000"),
    ("long", "9223372036854775807", "817fffffffffffffff"),
    ("float", "1.5", "723fc00000"),
    ("float", "NaN", "727fc00000"),
    ("float", "1e39", "727f800000"),
    ("float", "1.00000017881393432617187499", "723f800001"),  # two roundings would give ...02
    ("double", "-0.0", "828000000000000000"),
    ("double", "1e400", "827ff0000000000000"),
    ("double", "-Infinity", "82fff0000000000000"),
    ("double", "0x1p-1074", "820000000000000001"),
    ("double", "4.9E-324", "820000000000000001"),
    ("double", "1.5d", "823ff8000000000000"),
    ("char", "é", "73000000e9"),
    ("char", "\0", "7300000000"),
    ("string", "é", "a102c3a9"),
    ("string", "", "a100"),
    ("bytes", "AAEC", "a003000102"),
    ("bytes", "", "a000"),
]


@pytest.mark.parametrize(("kind", "text", "wanted"), CASES, ids=lambda value: repr(value)[:30])
def test_each_type_has_its_constructor(kind, text, wanted):
    assert encoded((kind, text)) == [bytes.fromhex(wanted)]


def plainly(kind, *texts):
    pieces = plain_values(ValueType(kind), pa.array(texts, pa.string()))
    return pieces and join_rows(pieces).to_pylist()


PLAIN = frozenset({"boolean", "byte", "short", "int", "long", "float", "double"})


@pytest.mark.parametrize(("kind", "text", "wanted"), [case for case in CASES if case[0] in PLAIN], ids=str)
def test_plain_values_are_the_same_or_left_to_the_others(kind, text, wanted):
    assert plainly(kind, text) in (None, [bytes.fromhex(wanted)])


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("boolean", ["TRUE"]),
        ("int", ["1", None]),
        ("int", ["1", "-"]),
        ("int", ["1", ""]),
        ("int", ["0x1"]),
        ("byte", ["128"]),
        ("double", ["nan"]),
        ("double", ["1e"]),
        ("float", [" 1"]),
    ],
)
def test_what_is_not_plain(kind, texts):
    assert plainly(kind, *texts) is None


def test_plain_values_of_each_kind():
    assert plainly("boolean", "true", "false") == [b"\x41", b"\x42"]
    assert plainly("short", "-2", "3") == [b"\x61\xff\xfe", b"\x61\x00\x03"]
    assert plainly("double", "1e400", ".5") == [struct.pack(">Bd", 0x82, float("inf")), struct.pack(">Bd", 0x82, 0.5)]


def test_many_types_keep_their_order():
    pairs = [(kind, text) for kind, text, _ in CASES] + [("int", None), ("string", None)]
    assert encoded(*pairs, *pairs) == 2 * [*(bytes.fromhex(wanted) for _, _, wanted in CASES), b"\x40", b"\x40"]


def test_only_nulls():
    assert encoded(("int", None), ("int", None)) == [b"\x40", b"\x40"]


def test_no_values():
    assert encoded() == []


def test_columns_of_numbers_keep_their_width():
    assert encoded_numbers(pa.array([True, None, False])).to_pylist()[::2] == [b"\x41", b"\x42"]
    assert encoded_numbers(pa.array([-1], pa.int8())).to_pylist() == [b"\x51\xff"]
    assert encoded_numbers(pa.array([1], pa.int16())).to_pylist() == [b"\x61\0\x01"]
    assert encoded_numbers(pa.array([1], pa.int32())).to_pylist() == [b"\x71\0\0\0\x01"]
    assert encoded_numbers(pa.array([7, 2**62 + 1], pa.int64())[1:]).to_pylist() == [
        struct.pack(">Bq", 0x81, 2**62 + 1)
    ]
    assert encoded_numbers(pa.array([1.5, None], pa.float32())).to_pylist()[0] == struct.pack(">Bf", 0x72, 1.5)
    assert encoded_numbers(pa.array([0.1])).to_pylist() == [struct.pack(">Bd", 0x82, 0.1)]
