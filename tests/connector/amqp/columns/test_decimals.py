from decimal import Decimal

import pytest

from pyspark_jms.amqp.columns.decimals import decimal_text


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
