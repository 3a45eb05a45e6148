"""Encoded values and sections."""

import struct

import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.amqp.columns.encode_values import (
    NO_VALUE,
    VALUE_TYPES,
    compound,
    encoded_numbers,
    encoded_values,
    fixed,
    merged,
    numbers,
    only_where,
    plain_values,
    side_by_side,
    sized,
    table,
)
from pyspark_jms.amqp.wire.constructors import BIN8, LIST32, MAP32, STR8
from pyspark_jms.amqp.wire.values import sized_bytes
from pyspark_jms.columns.arrays import join_rows
from pyspark_jms.jms.conversions import ValueType


def binary(*values):
    return pa.array(values, pa.binary())


@pytest.mark.parametrize(("length", "head"), [(0, "a100"), (255, "a1ff"), (256, "b100000100")])
def test_a_size_has_one_byte_up_to_255(length, head):
    data = b"x" * length
    assert sized_bytes(data, STR8) == bytes.fromhex(head) + data
    assert join_rows(sized(binary(data), STR8)).to_pylist() == [bytes.fromhex(head) + data]


def test_short_long_and_null_strings_stand_side_by_side():
    texts = binary(b"never", b"a", None, b"x" * 300, b"")[1:]
    wanted = [b"\xa0\x01a", NO_VALUE, b"\xb0\x00\x00\x01\x2c" + b"x" * 300, b"\xa0\x00"]
    assert join_rows(sized(texts, BIN8)).to_pylist() == wanted


def test_bytes_under_a_null_are_not_sent():
    hidden = pa.Array.from_buffers(
        pa.binary(), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 3, 4], np.int32)), pa.py_buffer(b"abcd")]
    )
    assert join_rows(sized(hidden, STR8)).to_pylist() == [NO_VALUE, b"\xa1\x01d"]


def test_numbers_are_big_endian():
    assert numbers(np.array([1, -2]), 0x61, ">i2").to_pylist() == [b"\x61\x00\x01", b"\x61\xff\xfe"]


def test_fixed_gives_the_bytes_of_each_record():
    assert fixed(np.array([65, 66], np.dtype([("code", "u1")]))).to_pylist() == [b"A", b"B"]


def test_parts_stand_side_by_side():
    parts = [
        b"ab",
        np.array([[1], [2]], np.uint8),
        b"",
        np.zeros((2, 0), np.uint8),
        np.array([[3, 4], [5, 6]], np.uint8),
    ]
    assert side_by_side(parts, 2).tolist() == [[97, 98, 1, 3, 4], [97, 98, 2, 5, 6]]


def test_a_table_is_one_piece_if_all_rows_agree():
    assert table([b"a", b"b"], np.array([1, 1])) == b"b"
    assert table([b"a", None], np.array([0, 1])).to_pylist() == [b"a", None]


def test_only_where_leaves_the_other_rows_empty():
    mask = np.array([True, False])
    assert only_where(mask, b"x").to_pylist() == [b"x", b""]
    assert only_where(mask, binary(b"y", b"z")).to_pylist() == [b"y", b""]
    assert only_where(np.array([True, True]), b"x") == b"x"


def test_a_section_of_constants_is_constant():
    pieces = compound(0x73, LIST32, [b"\x41", NO_VALUE], 2)
    assert b"".join(pieces) == bytes.fromhex("005373d0 00000006 00000002 41 40")


def test_sizes_and_counts_differ_by_row():
    pieces = compound(0x74, MAP32, [binary(b"\xa1\x01a\x41", b"")], np.array([2, 0]))
    first, second = join_rows(pieces).to_pylist()
    assert first == bytes.fromhex("005374d1 00000008 00000002 a1016141")
    assert second == bytes.fromhex("005374d1 00000004 00000000")


def test_counts_may_differ_where_sizes_do_not():
    pieces = compound(0x74, MAP32, [b"\x40\x40"], np.array([2, 2]))
    assert join_rows(pieces)[1].as_py() == bytes.fromhex("005374d1 00000006 00000002 4040")


def test_neighbours_of_one_width_become_one_piece():
    ragged = binary(b"a", b"bc")
    pieces = [b"x", binary(b"1", b"2"), b"yz", ragged, b"v", b"w", binary(b"__", b"33", b"44")[1:], binary(b"", b"")]
    found = merged(pieces)
    assert [piece if isinstance(piece, bytes) else piece.to_pylist() for piece in found] == [
        [b"x1yz", b"x2yz"],
        [b"a", b"bc"],
        [b"vw33", b"vw44"],
    ]
    assert join_rows(found).equals(join_rows(pieces))


@pytest.mark.parametrize("piece", [binary(b"a", None), binary(b"x" * 65, b"y" * 65), binary(), b"c"])
def test_a_piece_that_is_not_merged(piece):
    assert merged([piece]) == [piece]
    assert merged([b"a", piece])[-1] is piece


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
    ("timestamp", "-1", "83ffffffffffffffff"),
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
