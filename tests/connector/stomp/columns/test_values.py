import datetime as dt

import pyarrow as pa

from pyspark_jms.stomp.columns.values import destinations, stable_ids, times, truths


def strings(*values):
    return pa.array(values, pa.string())


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
    expected = ["q/2", "q/b,c", "q/7", "q/8", None, None, None, "q/y世"]
    assert stable_ids(ids, ",", "q").to_pylist() == expected
    assert stable_ids(strings("1::2", "1:2"), "::", "世").to_pylist() == ["世/2", "世/1:2"]
