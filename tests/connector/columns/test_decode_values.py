import datetime as dt

import pyarrow as pa
import pytest

from pyspark_jms.columns.decode_values import destinations, integers, stable_ids, times, truths

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


def test_times():
    moments, wrong = times(strings("0", "1", "253402300799999", "253402300800000", None, "soon"))
    assert moments.type == pa.timestamp("us", tz="UTC")
    assert moments.to_pylist() == [
        None,
        dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC),
        None,
        None,
        None,
    ]
    assert wrong == [5]


def test_only_true_is_true():
    texts = strings("true", "TRUE", "True", "false", "1", "", "truex", None)
    assert truths(texts).to_pylist() == [True, True, True, False, False, False, False, False]


def test_destinations():
    prefixes = {"queue://": "queue://", "temp-queue://": "queue://", "/topic/": "topic://"}
    texts = strings("queue://a", "temp-queue://b", "/topic/c", "/topic/", "d", "", "世://e", None)
    assert destinations(texts, prefixes).to_pylist() == [
        *("queue://a", "queue://b", "topic://c", None),
        *("queue://d", None, "queue://世://e", None),
    ]


def test_of_two_prefixes_the_dialects_first_counts():
    assert destinations(strings("/a/b"), {"/a/": "topic://", "/a": "queue://"}).to_pylist() == ["topic://b"]
    assert destinations(strings("/a/b"), {"/a": "queue://", "/a/": "topic://"}).to_pylist() == ["queue:///b"]


def test_stable_ids():
    ids = strings("1,2", "a,b,c", ",7", "8", "9,", "", None, "x世,y世")
    expected = ["q/2", "q/b,c", "q/7", None, None, None, None, "q/y世"]
    assert stable_ids(ids, ",", "q").to_pylist() == expected
    assert stable_ids(strings("1::2", "1:2"), "::", "世").to_pylist() == ["世/2", None]
