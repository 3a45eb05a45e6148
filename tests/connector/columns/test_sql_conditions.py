"""The subset of SQL that is read, and which part of any other text an error names."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pyspark_jms.columns.sql_conditions import MAX_LENGTH, column_name, constant, parse_condition
from pyspark_jms.errors import UnsupportedConditionError


def literal(text):
    """The value of the literal on the right of ``x =``."""
    condition = f"x = {text}"
    return constant(condition, parse_condition(condition).children[2])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("+ 7", 7),
        ("7L", 7),
        ("-127y", -127),
        ("9223372036854775807", (1 << 63) - 1),
        ("7.50", Decimal("7.50")),
        (".5", Decimal("0.5")),
        ("5.", Decimal(5)),
        ("1e2BD", Decimal(100)),
        ("1e3", 1000.0),
        ("2D", 2.0),
        ("TRUE", True),
        ("false", False),
        ("'it''s'", "it's"),
        ("''", ""),
        ("TIMESTAMP '2026-11-26 08:30:00Z'", datetime(2026, 11, 26, 8, 30, tzinfo=UTC)),
        ("timestamp '2026-11-26T08:30:00.5+01:00'", datetime(2026, 11, 26, 7, 30, 0, 500_000, tzinfo=UTC)),
        ("TIMESTAMP '2026-11-26 08:30 UTC'", datetime(2026, 11, 26, 8, 30, tzinfo=UTC)),
    ],
)
def test_literals_have_the_types_of_spark(text, value):
    found = literal(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("9223372036854775808", "9223372036854775808"),
        ("300Y", "300Y"),
        ("0.1F", "0.1F"),
        ("1e400", "1e400"),
        ("1e3L", "1e3L"),
        ("0." + "1" * 39, "0.1111"),
        ("NULL", r"NULL \(at character 5\) .* IS NULL or IS NOT NULL"),
        (r"'a\nb'", r"'a\\nb' .* backslash"),
        ("DATE '2026-11-26'", "DATE '2026-11-26'"),
        ("X'1F'", "X'1F'"),
        ("r'a'", "r'a'"),
        ("TIMESTAMP '2026-11-26 08:30:00'", "TIMESTAMP '2026-11-26 08:30:00' .* time zone"),
        ("TIMESTAMP '2026-13-26 08:30:00Z'", "TIMESTAMP"),
        ("TIMESTAMP '0001-01-01 00:00:00+14:00'", "TIMESTAMP"),
    ],
)
def test_a_literal_that_cannot_be_compared_alike_is_refused(text, part):
    with pytest.raises(UnsupportedConditionError, match=rf"\[JMS_UNSUPPORTED_CONDITION\] .*: {part}"):
        literal(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("upper(region) = 'EU'", r"upper\( \(at character 1\) is a function"),
        ("JMSPriority > abs (n)", r"abs \( \(at character 15\) is a function"),
        ("CAST(n AS INT) = 7", r"CAST\( \(at character 1\) is a function"),
        ("n::int = 7", r":: \(at character 2\)"),
        ("n + 1 > 5", r"\+ \(at character 3\) calculates"),
        ("n - 1 > 5", r"- \(at character 3\) calculates"),
        ("n / 2 = 3", r"/ \(at character 3\) calculates"),
        ("n = 7 % 2", r"% \(at character 7\) calculates"),
        ("n <=> 7", r"<=> \(at character 3\)"),
        ("a || b = 'x'", r"\|\| \(at character 3\)"),
        ("n & 1 = 1", r"& \(at character 3\)"),
        ("a RLIKE 'x'", r"RLIKE \(at character 3\)"),
        ("a ILIKE 'x'", r"ILIKE \(at character 3\)"),
        ("a IS TRUE", r"TRUE \(at character 6\)"),
        ("a IS DISTINCT FROM 5", r"DISTINCT \(at character 6\)"),
        ("n IN (SELECT x FROM t)", r"SELECT \(at character 7\) begins a subquery"),
        ("n = (SELECT 1)", r"SELECT \(at character 6\) begins a subquery"),
        ("EXISTS (SELECT 1)", r"EXISTS \(at character 1\) begins a subquery"),
        ("CASE WHEN a THEN b END", r"CASE \(at character 1\) begins a CASE expression"),
        ("n > INTERVAL 5 DAY", r"INTERVAL \(at character 5\) begins an interval"),
        ("properties.region = 'EU'", r"\. \(at character 11\) reads a part of a column"),
        ("properties['region'] = 'EU'", r"\[ \(at character 11\) reads a part of a column"),
        ('region = "EU"', r'"EU" \(at character 10\) is in double quotes'),
        ("n = 1 -- comment", r"-- \(at character 7\)"),
        ("n = :parameter", r": \(at character 5\)"),
        ("n = 1;", r"; \(at character 6\)"),
        ("n = 1 = TRUE", r"= \(at character 7\)"),
        ("n = 'a", r"' \(at character 5\)"),
        ("n >", "incomplete"),
        ("(n = 1", "incomplete"),
        (" \n", "empty"),
        ("a" * (MAX_LENGTH + 1), "more than 65,536 characters"),
    ],
)
def test_an_error_names_the_part_outside_of_the_subset(text, part):
    with pytest.raises(UnsupportedConditionError, match=rf"\[JMS_UNSUPPORTED_CONDITION\] .*{part}"):
        parse_condition(text)


def test_a_name_in_backticks_may_be_any_text():
    assert column_name(str(parse_condition("`a``b-c`").children[0])) == "a`b-c"
    assert column_name("plain") == "plain"
