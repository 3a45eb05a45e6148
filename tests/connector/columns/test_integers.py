import pyarrow as pa
import pytest

from pyspark_jms.columns.integers import integers

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
