import math
import struct

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jms_selector.meaning.conversions import java_text as text_of_one
from jms_selector.syntax.kinds import Kind, Value
from pyspark_jms.columns.java_numbers import java_text

# As Java prints them since 19; before, some had a digit too many.
DOUBLES = [
    (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (-1.5, "-1.5"), (0.1, "0.1"), (100.0, "100.0"),
    (0.001, "0.001"), (0.00099, "9.9E-4"), (1e-4, "1.0E-4"), (1.5e-5, "1.5E-5"), (1e-6, "1.0E-6"), (1.25e-7, "1.25E-7"),
    (9999999.0, "9999999.0"), (1e7, "1.0E7"), (12345678.0, "1.2345678E7"), (12345678.9, "1.23456789E7"),
    (-120000000.0, "-1.2E8"), (9999999999.5, "9.9999999995E9"), (1e10, "1.0E10"), (2.0**53, "9.007199254740992E15"),
    (1e21, "1.0E21"), (1e22, "1.0E22"), (1.2345e300, "1.2345E300"), (1.7976931348623157e308, "1.7976931348623157E308"),
    (2.2250738585072014e-308, "2.2250738585072014E-308"), (5e-324, "4.9E-324"), (-1e-323, "-9.9E-324"),
    (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"),
]  # fmt: skip
FLOATS = [
    (1.0, "1.0"), (0.1, "0.1"), (16777216.0, "1.6777216E7"), (3.4028234663852886e38, "3.4028235E38"),
    (1.401298464324817e-45, "1.4E-45"), (2.802596928649634e-45, "2.8E-45"), (-0.0, "-0.0"), (math.nan, "NaN"),
    (1.1754943508222875e-38, "1.1754944E-38"), (0.001, "0.001"), (1e10, "1.0E10"),
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
