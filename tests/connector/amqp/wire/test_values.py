"""Values and their bytes: one table in both directions, and bytes that are none."""

import random
import uuid

import generated
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_jms.amqp.wire.values import (
    MAX_DEPTH,
    Described,
    Symbol,
    TypedValue,
    decode,
    encode,
    encode_list,
    encode_map,
)
from pyspark_jms.errors import MalformedFrameError

UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")
TABLE = [
    (None, None, "40"),
    (True, True, "41"),
    (False, False, "42"),
    (TypedValue("uint", 0), 0, "43"),
    (TypedValue("uint", 255), 255, "52ff"),
    (TypedValue("uint", 256), 256, "7000000100"),
    (TypedValue("ulong", 0), 0, "44"),
    (TypedValue("ulong", 7), 7, "5307"),
    (TypedValue("ulong", 1 << 32), 1 << 32, "800000000100000000"),
    (TypedValue("ubyte", 5), 5, "5005"),
    (TypedValue("ushort", 258), 258, "600102"),
    (TypedValue("byte", -1), -1, "51ff"),
    (TypedValue("short", -2), -2, "61fffe"),
    (TypedValue("int", -3), -3, "71fffffffd"),
    (-4, -4, "81fffffffffffffffc"),
    (TypedValue("float", 1.5), 1.5, "723fc00000"),
    (1.5, 1.5, "823ff8000000000000"),
    (TypedValue("char", "é"), "é", "73000000e9"),
    (TypedValue("timestamp", 1), 1, "830000000000000001"),
    (TypedValue("uint", None), None, "40"),
    (UUID, UUID, "98" + UUID.hex),
    (b"ab", b"ab", "a0026162"),
    ("é", "é", "a102c3a9"),
    (Symbol("ab"), "ab", "a3026162"),
    ([], [], "45"),
    ([True, None], [True, None], "c003024140"),
    ({"a": True}, {"a": True}, "c10502a1016141"),
    (TypedValue("symbols", ("a", "bc")), ["a", "bc"], "f00000001000000002b30000000161000000026263"),
    (Described(0x24, []), Described(0x24, []), "00532445"),
    (Described("a:b", None), Described("a:b", None), "00a303613a6240"),
]


@pytest.mark.parametrize(("value", "decoded", "wire"), TABLE, ids=[row[2] for row in TABLE])
def test_a_value_and_its_bytes_of_which_every_beginning_is_refused(value, decoded, wire):
    data = bytes.fromhex(wire)
    assert encode(value) == data
    assert decode(data, 0, len(data)) == (decoded, len(data))
    assert decode(b"x" + data + b"yz", 1, len(data) + 1) == (decoded, len(data) + 1)
    for size in range(len(data)):
        with pytest.raises(MalformedFrameError, match="JMS_MALFORMED_FRAME"):
            decode(data, 0, size)


@pytest.mark.parametrize("size", [255, 256, 70_000])
def test_long_texts_have_four_bytes_of_size(size):
    data = encode("x" * size)
    assert data[0] == (0xA1 if size < 256 else 0xB1)
    assert decode(data, 0, len(data)) == ("x" * size, len(data))


@pytest.mark.parametrize("count", [254, 255, 300])
def test_long_lists_and_maps(count):
    for data, value in (
        (encode_list([b"\x41"] * count), [True] * count),
        (encode_map([encode(n) for pair in enumerate(range(count)) for n in pair]), {n: n for n in range(count)}),
    ):
        assert decode(data, 0, len(data)) == (value, len(data))


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("99", "0x99 is not a constructor"),
        ("a102ff", "cut off"),
        ("a101ff", "not UTF-8"),
        ("a301ff", "not ASCII"),
        ("c0020241", "more items"),
        ("c0050140", "cut off"),
        ("c003014140", "does not end"),
        ("d0000000087fffffff41414141", "more items than bytes"),
        ("c1020141", "key and no value"),
        ("c104024541", "cut off|list, map or array as a key"),
        ("c103024541", "list, map or array as a key"),
        ("e0030240", "cut off"),
        ("f000000005ffffffff40", "more elements than bytes"),
        ("e00101", "without a constructor"),
        ("7300110000", "above U"),
        ("00404041", "neither a number nor a symbol"),
        ("00", "missing"),
    ],
)
def test_malformed_values(wire, reason):
    data = bytes.fromhex(wire)
    with pytest.raises(MalformedFrameError, match=reason):
        decode(data, 0, len(data))


@pytest.mark.parametrize("outer", [b"\x00\x53\x01", None])
def test_depth_is_limited(outer):
    data = b"\x40"
    for _ in range(MAX_DEPTH + 2):
        data = outer + data if outer else encode_list([data])
    with pytest.raises(MalformedFrameError, match="nested"):
        decode(data, 0, len(data))


def test_what_is_no_value_is_a_type_error():
    with pytest.raises(TypeError):
        encode(object())


TEXTS = st.text(st.characters(codec="utf-8"), max_size=300)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary(max_size=300)
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=8)
    ),
    max_leaves=20,
)


@settings(max_examples=generated.examples(100), deadline=None)
@given(VALUES)
def test_any_value_comes_back(value):
    data = encode(value)
    assert decode(data, 0, len(data)) == (value, len(data))


@settings(max_examples=generated.examples(50), deadline=None)
@given(VALUES)
def test_proton_reads_what_we_write_and_we_read_what_it_writes(value):
    proton = pytest.importorskip("proton")
    ours, theirs = encode(value), proton.Data()
    theirs.decode(ours)
    theirs.rewind()
    theirs.next()
    assert theirs.get_object() == value
    again = proton.Data()
    again.put_object(value)
    data = again.encode()
    decoded, end = decode(data, 0, len(data))
    assert (decoded, end) == (value, len(data))


def test_mutated_bytes_are_values_or_refused(examples):
    chance = random.Random(7)
    seeds = [bytes.fromhex(row[2]) for row in TABLE]
    for _ in range(examples(40_000)):
        data = bytearray(chance.choice(seeds) + chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            _, end = decode(data, 0, len(data))
            assert end <= len(data)
        except MalformedFrameError:
            pass
