import pytest

from pyspark_jms.options.table import OPTIONS, parse_bytes, parse_seconds


def test_no_two_options_differ_by_case_only():
    assert len({option.name.lower() for option in OPTIONS}) == len(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_default_is_a_value_and_every_row_says_what_it_means(option):
    if option.default is not None:
        option.parse(option.default)
    assert option.meaning
    assert option.scope in {"source", "sink", "both"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_what_cannot_be_parsed_is_a_value_error_that_says_what_would_do(option):
    if option.secret:
        assert option.parse("any \n text") == "any \n text"
        return
    with pytest.raises(ValueError, match=r"\w") as caught:
        option.parse("")
    assert "invalid literal" not in str(caught.value)


def test_a_password_is_a_secret_and_a_file_name_is_not():
    assert {option.name for option in OPTIONS if option.secret} == {"password", "sslKeyPassword"}


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
