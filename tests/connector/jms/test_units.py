import pytest

from pyspark_jms.jms.units import parse_bytes, parse_seconds

SIZES = [
    ("0", 0),
    ("65536", 65536),
    ("1b", 1),
    ("64k", 64 << 10),
    ("64KB", 64 << 10),
    ("8m", 8 << 20),
    (" 8 mb ", 8 << 20),
    ("1g", 1 << 30),
    ("2GB", 2 << 30),
    ("1t", 1 << 40),
    ("1tb", 1 << 40),
]
TIMES = [
    ("500ms", 0.5),
    ("10s", 10),
    ("1.5S", 1.5),
    ("15m", 900),
    ("2min", 120),
    (" 1 h ", 3600),
    ("1d", 86400),
    ("0s", 0),
]


@pytest.mark.parametrize(("text", "value"), SIZES)
def test_sizes(text, value):
    assert parse_bytes(text) == value


@pytest.mark.parametrize(("text", "value"), TIMES)
def test_times(text, value):
    assert parse_seconds(text) == value


@pytest.mark.parametrize("text", ["", "m", "-1", "1.5m", "1 kilo", "1kk", "0x10", "٣m", "9" * 5000, "1m 1k"])
def test_texts_that_are_not_a_size(text):
    with pytest.raises(ValueError, match=r"65536, 64k, 64m .*1g"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "1 y", "1,5s", ".5s", "1e3s", "nans", "infs", "9" * 400 + "s"])
def test_texts_that_are_not_a_time(text):
    with pytest.raises(ValueError, match=r"500ms, 10s, 15m .*1h"):
        parse_seconds(text)
