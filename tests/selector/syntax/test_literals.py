import re

import pytest

from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.literals import LiteralError, check_name, decimal, is_plain_name, number, reserved_word, string
from jms_selector.syntax.tree import Literal

JAVA = [
    ("0", 0, Kind.INT),
    ("5L", 5, Kind.LONG),
    ("0L", 0, Kind.LONG),
    ("2147483648", 1 << 31, Kind.LONG),
    ("9223372036854775808", 1 << 63, Kind.BIG),
    ("010", 8, Kind.INT),
    ("0_7", 7, Kind.INT),
    ("0x1d", 29, Kind.INT),
    ("0XFFFFFFFF", 0xFFFFFFFF, Kind.LONG),
    ("0x5L", 5, Kind.LONG),
    ("0b101", 5, Kind.INT),
    ("1_000", 1000, Kind.INT),
    ("5.", 5.0, Kind.DOUBLE),
    (".5", 0.5, Kind.DOUBLE),
    ("1e3", 1000.0, Kind.DOUBLE),
    ("7E+3", 7000.0, Kind.DOUBLE),
    ("5d", 5.0, Kind.DOUBLE),
    ("0.1f", 0.10000000149011612, Kind.FLOAT),
    ("0x1.8p1", 3.0, Kind.DOUBLE),
]
BOTH_REFUSE = ["08", "0x", "1__", "1_", "0b12", "0x8000000000000001", "1e", "0x1.8", "5dd"]
ACTIVEMQ_REFUSES = ["0L", "05L", "0x5L", "1_000", "0b101", "5d", "5f", "0x8000000000000000", "0x1.8p1"]


@pytest.mark.parametrize(("token", "value", "kind"), JAVA)
def test_java_numbers(token, value, kind):
    assert number(token, activemq=False) == Literal(value, kind)


@pytest.mark.parametrize(
    ("token", "activemq"),
    [
        *((token, False) for token in (*BOTH_REFUSE, "1e400", "1e39f", "9223372036854775809")),
        *((token, True) for token in (*BOTH_REFUSE, *ACTIVEMQ_REFUSES)),
    ],
)
def test_invalid_numbers(token, activemq):
    with pytest.raises(LiteralError):
        number(token, activemq=activemq)


@pytest.mark.parametrize(
    ("token", "value", "kind"),
    [
        ("5L", 5, Kind.INT),
        ("2147483648", 1 << 31, Kind.LONG),
        ("9223372036854775808", 1 << 63, Kind.BIG),
        ("18446744073709551621", 5, Kind.INT),  # 2^64 + 5: the low 64 bits are an int
        ("99999999999999999999999999", 99999999999999999999999999, Kind.BIG),
        ("0", 0, Kind.INT),
        ("1e400", float("inf"), Kind.DOUBLE),
    ],
)
def test_activemq_numbers(token, value, kind):
    assert number(token, activemq=True) == Literal(value, kind)


def test_a_decimal_of_10_000_digits():
    assert decimal("1" * 10_000) % 1000 == 111


@pytest.mark.parametrize("name", ["a", "$a", "_", "été", "ключ", "€x", "a1", "漢字", "a\u0301", "NOTE", "Ⅷ"])
def test_java_names(name):
    check_name(name, activemq=False)
    assert is_plain_name(name, activemq=False)


@pytest.mark.parametrize("name", ["x²", "\u00a0", "a\u00a0", "a\u2028b", "😀"])
def test_an_invalid_java_name_is_refused_with_the_character(name):
    invalid = next(character for character in name if character not in {"a", "x"})
    with pytest.raises(LiteralError, match=re.escape(repr(invalid))):
        check_name(name, activemq=False)


def test_activemq_names_are_ascii():
    for name in ("été", "a-b"):
        with pytest.raises(LiteralError):
            check_name(name, activemq=True)
    check_name("a-b", activemq=True, hyphens=True)


def test_reserved_words_ignore_case():
    assert [reserved_word(w, activemq=False) for w in ("nOt", "Between", "true", "xpath", "noté", "note")] == [
        "_NOT", "_BETWEEN", "TRUE", None, None, None
    ]  # fmt: skip
    assert reserved_word("XPath", activemq=True) == "PATH"
    assert not is_plain_name("xpath", activemq=True)
    assert not is_plain_name("", activemq=False)


def test_strings():
    assert [string(token) for token in ("''", "'it''s'", '"a""b"', "'a\"b'")] == ["", "it's", 'a"b', 'a"b']
