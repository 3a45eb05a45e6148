import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jms_selector.meaning.conversions import java_double, java_float, java_integer, java_text, parse_java, readings
from jms_selector.syntax.kinds import Kind, Value, to_float

TEXTS = [  # a value and what Java's toString makes of it
    (Kind.DOUBLE, 1.0, "1.0"),
    (Kind.DOUBLE, -0.0, "-0.0"),
    (Kind.DOUBLE, 0.001, "0.001"),
    (Kind.DOUBLE, 0.0001, "1.0E-4"),
    (Kind.DOUBLE, 9999999.0, "9999999.0"),
    (Kind.DOUBLE, 1e7, "1.0E7"),
    (Kind.DOUBLE, 12345678.9, "1.23456789E7"),
    (Kind.DOUBLE, 1e10, "1.0E10"),
    (Kind.DOUBLE, 0.1, "0.1"),
    (Kind.DOUBLE, math.nan, "NaN"),
    (Kind.DOUBLE, -math.inf, "-Infinity"),
    (Kind.DOUBLE, 6.02e23, "6.02E23"),
    (Kind.DOUBLE, 5e-324, "4.9E-324"),
    (Kind.DOUBLE, 2e-323, "2.0E-323"),
    (Kind.DOUBLE, 2e23, "2.0E23"),
    (Kind.DOUBLE, 2.0**-44, "5.684341886080802E-14"),
    (Kind.FLOAT, to_float(0.1), "0.1"),
    (Kind.FLOAT, to_float(16777216.0), "1.6777216E7"),
    (Kind.FLOAT, to_float(3.4028235e38), "3.4028235E38"),
    (Kind.FLOAT, 2.0**-149, "1.4E-45"),
    (Kind.FLOAT, 2.0**-96, "1.2621775E-29"),
    (Kind.FLOAT, 2.0**23, "8388608.0"),
    (Kind.LONG, -5, "-5"),
    (Kind.BOOLEAN, True, "true"),
    (Kind.STRING, "é", "é"),
]


@pytest.mark.parametrize(("kind", "value", "text"), TEXTS)
def test_java_text_and_back(kind, value, text):
    assert java_text(Value(kind, value)) == text
    again = next(v for v in readings(text) if v.kind is kind)
    assert again.value == value or math.isnan(value)
    assert java_text(again) == text


@given(st.floats(allow_nan=False), st.sampled_from([Kind.DOUBLE, Kind.FLOAT]))
def test_a_number_is_among_the_readings_of_its_text(number, kind):
    number = to_float(number) if kind is Kind.FLOAT else number
    assert Value(kind, number) in readings(java_text(Value(kind, number)))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_an_integer_is_read_as_every_kind_that_holds_it(number):
    kinds = {value.kind for value in readings(str(number))}
    assert {Kind.STRING, Kind.LONG} <= kinds
    assert (Kind.INT in kinds) == (-(1 << 31) <= number < 1 << 31)


@pytest.mark.parametrize("text", ["05", "+5", "5d", "1e3", " 5", "TRUE", "-0", "9223372036854775808", "1.", "", "0x1"])
def test_a_text_of_no_other_java_value_is_only_a_string(text):
    assert readings(text) == [Value(Kind.STRING, text)]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 5.5 ", 5.5),
        ("5d", 5.0),
        ("1e3F", 1000.0),
        ("0x1.8p1", 3.0),
        ("-Infinity", -math.inf),
        (".5", 0.5),
        ("5.", 5.0),
    ],
)
def test_double_value_of_trims_and_takes_suffixes(text, number):
    assert java_double(text) == number


@pytest.mark.parametrize("text", ["", "x", "1_000", "inf", "nan", "0x5", "1e", "5L", "\u00a05", "1 2"])
def test_double_value_of_throws(text):
    assert java_double(text) is None


def test_integer_value_of_neither_trims_nor_leaves_its_range():
    assert java_integer("+5", Kind.INT) == 5
    assert java_integer("٣", Kind.INT) == 3  # Character.digit knows every decimal digit
    assert java_integer(" 5", Kind.INT) is None
    assert java_integer("128", Kind.BYTE) is None
    assert java_integer("2147483648", Kind.INT) is None
    assert java_integer("2147483648", Kind.LONG) == 2147483648


def test_integer_value_of_reads_digits_of_16_bits_and_any_number_of_zeros():
    assert java_integer("-" + "0" * 9000 + "128", Kind.BYTE) == -128
    assert java_integer("1" + "0" * 9000, Kind.LONG) is None
    assert java_integer("-١2", Kind.INT) == -12
    assert java_integer("\U0001d7d8", Kind.INT) is None  # a mathematical zero


HALF = "16777217"  # between two floats, of which 16777216 is the even one


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (HALF, 16777216.0),
        (f"{HALF}.{'0' * 40}1", 16777218.0),
        (f"-{HALF}.{'0' * 40}1f", -16777218.0),
        (f"{HALF}e0", 16777216.0),
        ("16777218.9" + "9" * 40, 16777218.0),
        ("16777219.0", 16777220.0),
        ("0x1000001p0", 16777216.0),
        (f"0x1000001.{'0' * 40}1p0", 16777218.0),
        ("NaN", math.nan),
        ("1e39", math.inf),
        ("340282356779733661637539395458142568448", math.inf),
        ("340282356779733661637539395458142568447", 3.4028234663852886e38),
        ("1e-999", 0.0),
    ],
)
def test_float_value_of_rounds_once(text, number):
    assert java_float(text) == number or math.isnan(number)


@pytest.mark.parametrize("text", ["1" * 200_000, "1" * 200_000 + "x", "0x" + "1" * 200_000, HALF + "." + "0" * 200_000])
def test_a_long_text_takes_linear_time(text):
    assert java_float(text) in {None, math.inf, 16777216.0}  # minutes, when digits could be read in two ways


def test_float_value_of_throws():
    assert java_float("1.5x") is None


def test_boolean_value_of_never_throws():
    assert [parse_java(text, Kind.BOOLEAN) for text in ("TRUE", "true", "banana", "")] == [True, True, False, False]
