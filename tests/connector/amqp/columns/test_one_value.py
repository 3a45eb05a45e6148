"""Single values and bodies."""

from decimal import Decimal
from uuid import UUID

import pytest
from amqp_messages import (
    FALSE,
    NULL,
    TRUE,
    binary,
    byte,
    int_,
    list_,
    long,
    map_,
    string,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
)

from pyspark_jms.amqp.columns.one_value import UnreadableValueError, decimal_text, element_text, number, property_text
from pyspark_jms.amqp.columns.one_value import string as string_of


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        ("3200007b", "12.3"),
        ("b200007b", "-12.3"),
        ("32800000", "0"),
        ("32800001", "1"),
        ("77f8967f", "9.999999E+96"),
        ("78000000", "Infinity"),
        ("f8000000", "-Infinity"),
        ("7c000000", "NaN"),
        ("31c0000000000001", "1"),
        ("31a000000000007b", "12.3"),
        ("5fe38d7ea4c67fff", "9.99999999999999E+383"),
        ("30400000000000000000000000000001", "1"),
        ("303c000000000000000000000000007b", "1.23"),
        ("6c000000000000000000000000000000", "0E-3082"),
    ],
)
def test_numbers_of_every_width(encoded, text):
    """Published encodings of Infinity, NaN, one and the largest numbers; a coefficient of too many digits is 0."""
    found = decimal_text(bytes.fromhex(encoded))
    assert found == text or Decimal(found) == Decimal(text)


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (NULL, ("string", None)),
        (string("é"), ("string", "é")),
        (b"\xb1\0\0\x01\x2c" + b"x" * 300, ("string", "x" * 300)),
        (TRUE, ("boolean", "true")),
        (FALSE, ("boolean", "false")),
        (b"\x56\x01", ("boolean", "true")),
        (b"\x56\x00", ("boolean", "false")),
        (byte(-128), ("byte", "-128")),
        (b"\x61\x80\x00", ("short", "-32768")),
        (int_(-1), ("int", "-1")),
        (int_(-(2**31)), ("int", "-2147483648")),
        (long(-1), ("long", "-1")),
        (long(-(2**63)), ("long", "-9223372036854775808")),
        (b"\x72\x3f\xc0\0\0", ("float", "1.5")),
        (b"\x82\x7f\xf0" + bytes(6), ("double", "Infinity")),
    ],
)
def test_types_of_jms(value, typed):
    assert (property_text(value, 0), element_text(value, 0)) == (typed, typed)


@pytest.mark.parametrize("value", [b"\xa1\x01\xff", b"\xa3\x01\xff", b"\x56\x02", b"\x73\0\0\xd8\0", b"\x73\0\x11\0\0"])
def test_values_that_are_none(value):
    for read in (property_text, element_text):
        with pytest.raises(UnreadableValueError):
            read(value, 0)


@pytest.mark.parametrize(
    ("value", "of_property", "of_element"),
    [
        (ubyte(200), ("ubyte", "200"), ("short", "200")),
        (b"\x60\xff\xff", ("ushort", "65535"), ("int", "65535")),
        (uint(0), ("uint", "0"), ("long", "0")),
        (uint(2**32 - 1), ("uint", "4294967295"), ("long", "4294967295")),
        (b"\x44", ("ulong", "0"), ("long", "0")),
        (ulong(2**63 - 1), ("ulong", "9223372036854775807"), ("long", "9223372036854775807")),
        (ulong(2**63), ("string", "9223372036854775808"), ("string", "9223372036854775808")),
        (timestamp(-1), ("timestamp", "-1"), ("long", "-1")),
        (b"\x98" + bytes(16), ("uuid", "00000000-0000-0000-0000-000000000000"), ("string", str(UUID(int=0)))),
        (symbol("é"), ("symbol", "é"), ("string", "é")),
        (binary(b"\0\xff"), ("binary", "AP8="), ("bytes", "AP8=")),
        (b"\x73\0\0\0A", ("char", "A"), ("char", "A")),
        (b"\x73\0\x01\xf4\x18", ("char", "🐘"), ("string", "🐘")),
        (b"\x74\x32\0\0\x7b", ("decimal32", "12.3"), ("string", "12.3")),
        (list_(int_(1)), ("list", None), ("list", None)),
        (b"\x45", ("list", None), ("list", None)),
        (map_([(string("k"), int_(1))]), ("map", None), ("map", None)),
        (b"\xe0\x03\x01\x51\x05", ("array", None), ("array", None)),
        (b"\0\x53\x01\x40", ("described type", None), ("described type", None)),
    ],
)
def test_types_that_jms_does_not_have(value, of_property, of_element):
    assert (property_text(value, 0), element_text(value, 0)) == (of_property, of_element)


def test_numbers_have_one_of_the_constructors():
    assert number(int_(-3), 0, b"\x54") == -3
    assert number(uint(300), 0, b"\x70\x52") == 300
    assert number(b"\x41", 0, b"\x41\x42") == 1
    assert number(int_(-3), 0, b"\x71") is None
    assert number(b"\x56\x02", 0, b"\x56") is None


def test_strings_and_symbols():
    assert [string_of(string("é"), 0), string_of(symbol("s"), 0, "symbol")] == ["é", "s"]
    for wrong in (symbol("s"), b"\xa1\x01\xff"):
        with pytest.raises(UnreadableValueError):
            string_of(wrong, 0)
