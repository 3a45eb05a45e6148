"""Texts of JMS values: numbers, types and the forms of Java."""

import math
import struct

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typed_texts import FITTING, WRONG

from jms_selector.meaning.conversions import java_text as text_of_one
from jms_selector.syntax.kinds import Kind, Value
from pyspark_jms.columns.rows import BODY_TYPES
from pyspark_jms.columns.value_texts import BODY_TYPE_NAMES, integers, java_text, jms_types, misfits
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.rules import element_value_problem

INT64 = (-(2**63), 2**63 - 1)


def strings(*values):
    return pa.array(values, pa.string())


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("007", 7),
        ("42", 42),
        ("-42", -42),
        ("999999999999999999", 10**18 - 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("0" * 30 + "5", 5),
        ("-" + "0" * 30 + "5", -5),
        ("1" * 20, None),
        ("1" * 6000, None),
        (None, None),
    ],
)
def test_decimal_numbers_of_any_length(text, number):
    for neighbours in ([], ["1"], ["x"]):
        numbers, wrong = integers(strings(text, *neighbours), *INT64)
        assert numbers.to_pylist()[0] == number
        assert 0 not in wrong


@pytest.mark.parametrize(
    "text", ["", "-", "--1", "1-", "+1", "0x10", "-0x10", "1.0", " 1", "1 ", "1\n", "٣", "１", "1e3", "nan"]
)
def test_what_is_no_number_is_named(text):
    numbers, wrong = integers(strings("1", text, None, "-3"), *INT64)
    assert (numbers.to_pylist(), wrong) == ([1, None, None, -3], [1])


def test_numbers_outside_the_range_are_null_and_no_fault():
    assert integers(strings("-1", "0", "9", "10"), 0, 9)[0].to_pylist() == [None, 0, 9, None]
    assert integers(strings("-1", "0", "9", "10"), 0, 9)[1] == []


# As Java prints them since 19; before, some had a digit too many.
DOUBLES = [
    (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (-1.5, "-1.5"), (0.1, "0.1"), (100.0, "100.0"),
    (0.001, "0.001"), (0.00099, "9.9E-4"), (1e-4, "1.0E-4"), (1.5e-5, "1.5E-5"), (1e-6, "1.0E-6"), (1.25e-7, "1.25E-7"),
    (9999999.0, "9999999.0"), (1e7, "1.0E7"), (12345678.0, "1.2345678E7"), (12345678.9, "1.23456789E7"),
    (-120000000.0, "-1.2E8"), (9999999999.5, "9.9999999995E9"), (1e10, "1.0E10"), (2.0**53, "9.007199254740992E15"),
    (1e21, "1.0E21"), (1e22, "1.0E22"), (1.2345e300, "1.2345E300"), (1.7976931348623157e308, "1.7976931348623157E308"),
    (2.2250738585072014e-308, "2.2250738585072014E-308"), (5e-324, "4.9E-324"), (-1e-323, "-9.9E-324"),
    (2.0**-44, "5.684341886080802E-14"), (2e23, "2.0E23"), (1e23, "1.0E23"), (8.41e21, "8.41E21"),
    (9999999.999, "9999999.999"), (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"),
]  # fmt: skip
FLOATS = [
    (1.0, "1.0"), (0.1, "0.1"), (16777216.0, "1.6777216E7"), (3.4028234663852886e38, "3.4028235E38"),
    (1.401298464324817e-45, "1.4E-45"), (2.802596928649634e-45, "2.8E-45"), (-0.0, "-0.0"), (math.nan, "NaN"),
    (1.1754943508222875e-38, "1.1754944E-38"), (0.001, "0.001"), (1e10, "1.0E10"), (8.5e9, "8.5E9"),
    (33554432.0, "3.3554432E7"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "cases"), [(pa.float64(), DOUBLES), (pa.float32(), FLOATS)])
def test_numbers_are_written_as_java_does(kind, cases):
    numbers, texts = zip(*cases, strict=True)
    wanted = [text.encode() for text in texts]
    assert java_text(pa.array(numbers, kind)).to_pylist() == wanted
    for number, text in zip(numbers, wanted, strict=True):
        assert java_text(pa.array([number], kind)).to_pylist() == [text]
    mixed = pa.array([None, *numbers, None], kind)
    assert java_text(mixed).to_pylist() == [None, *wanted, None]
    assert java_text(mixed[2:]).to_pylist() == [*wanted[1:], None]


def test_no_numbers_and_nulls_alone():
    assert java_text(pa.array([], pa.float64())).to_pylist() == []
    assert java_text(pa.nulls(2, pa.float32())).to_pylist() == [None, None]


bits_of_doubles = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
bits_of_floats = st.integers(0, 2**32 - 1).map(lambda bits: struct.unpack("<f", bits.to_bytes(4, "little"))[0])
decimals = st.builds(
    lambda digits, point: float(f"{digits}e{point}"), st.integers(-(10**9), 10**9), st.integers(-20, 30)
)


@given(st.lists(st.floats() | bits_of_doubles | decimals, max_size=20))
@example([9.5e9, 1e9 + 0.5, 10.0**9, 10.0**11, 123e-6])
def test_doubles_agree_with_the_one_by_one_rendering(numbers):
    wanted = [text_of_one(Value(Kind.DOUBLE, number)).encode() for number in numbers]
    assert java_text(pa.array(numbers, pa.float64())).to_pylist() == wanted


@given(st.lists(st.floats(width=32) | bits_of_floats, max_size=20))
def test_floats_agree_with_the_one_by_one_rendering(numbers):
    wanted = [text_of_one(Value(Kind.FLOAT, number)).encode() for number in numbers]
    assert java_text(pa.array(numbers, pa.float32())).to_pylist() == wanted


def one_by_one(types, texts):
    return [
        kind is None or element_value_problem(kind, text) is not None for kind, text in zip(types, texts, strict=True)
    ]


def in_columns(types, texts):
    return misfits(pa.array(types, pa.string()), pa.array(texts, pa.string())).tolist()


@pytest.mark.parametrize("kind", list(FITTING))
def test_renderings_of_a_type(kind):
    texts = [*FITTING[kind], *WRONG[kind]]
    expected = [False] * len(FITTING[kind]) + [True] * len(WRONG[kind])
    assert one_by_one([kind] * len(texts), texts) == expected
    assert in_columns([kind] * len(texts), texts) == expected
    for text, wrong in zip(texts, expected, strict=True):
        assert in_columns(["string", kind, "int"], ["x", text, "1"]) == [False, wrong, False]


def test_a_null_fits_every_type_and_an_unknown_type_nothing():
    known = [kind.value for kind in ValueType]
    assert in_columns(known, [None] * len(known)) == [False] * len(known)
    assert in_columns(["INT", "", "integer", None, None], ["1", "1", "1", None, "1"]) == [True] * 5


def test_a_null_of_an_unknown_type_has_no_type_all_the_same():
    assert in_columns(["integer"], [None]) == [True]


def test_nothing_to_look_at():
    assert in_columns([], []) == []


TYPES = st.sampled_from([kind.value for kind in ValueType] + ["no type"])
TEXTS = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.text("+-0123456789.eExXpPfFdDNaInity_ \n=/A", max_size=12),
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from([text for table in (FITTING, WRONG) for texts in table.values() for text in texts]),
)


# A null says nothing of its type to the rule of one value.
PAIRS = st.tuples(TYPES, TEXTS).filter(lambda pair: pair[0] != "no type" or pair[1] is not None)


@given(st.lists(PAIRS, max_size=12))
def test_columns_and_single_values_are_judged_alike(pairs):
    types, texts = [kind for kind, _ in pairs], [text for _, text in pairs]
    assert in_columns(types, texts) == one_by_one(types, texts)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_types_of_amqp_become_those_that_hold_their_values(kind):
    words = ["uint", None, "int", "uuid", "ubyte", "described type", "nonsense"]
    found = jms_types(pa.array(words, pa.string()).view(kind), of_elements=True)
    assert found.view(pa.string()).to_pylist() == ["long", None, "int", "string", "short", "string", "nonsense"]
    assert found.type == kind


def test_a_char_is_an_element_of_jms_and_no_property():
    types = pa.array(["char", "uint"])
    assert jms_types(types, of_elements=True).to_pylist() == ["char", "long"]
    assert jms_types(types, of_elements=False).to_pylist() == ["string", "long"]


def test_others_stay_as_they_are():
    types = pa.array(["int", None])
    assert jms_types(types, of_elements=True) is types


def test_a_code_is_the_same_body_type_for_source_and_sink():
    assert BODY_TYPE_NAMES.to_pylist() == [kind.value for kind in BODY_TYPES]
