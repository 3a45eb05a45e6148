import pytest

from jms_selector.errors import InvalidSelectorError
from jms_selector.syntax.diagnose import hint_at
from jms_selector.syntax.parse import parse

HINTS = [
    ("a == 1", 2, " ="),
    ("a != 1", 2, "<>"),
    ("a && b", 2, "AND"),
    ("a || b", 2, "OR"),
    ('"x"', 0, "'like this'"),
    ("‘x’", 0, "'like this'"),
    ("'x", 0, "'it''s'"),
    ("[1]", 0, "( )"),
    ("-- c", 0, "comment"),
]


@pytest.mark.parametrize(("text", "position", "fact"), HINTS)
def test_a_common_mistake_has_a_hint(text, position, fact):
    assert fact in hint_at(text, position)


def test_valid_text_has_no_hint():
    assert hint_at("abc = 1", 0) == ""
    assert hint_at("'x'", 0) == ""


STATEMENTS = [
    ("SELECT * FROM orders WHERE color = 'red'", ": color = 'red'"),
    ("  select a, b\nfrom q\nwhere n > 5 ;", ": n > 5"),
    ("WHERE color = 'red'", ": color = 'red'"),
    ("SELECT text FROM q", "SELECT"),
    ("color = 'red' ORDER BY n", "ORDER BY"),
    ("color = 'red' LIMIT 5", "LIMIT"),
]


@pytest.mark.parametrize(("text", "fact"), STATEMENTS)
def test_an_sql_statement_has_a_hint(text, fact):
    with pytest.raises(InvalidSelectorError) as caught:
        parse(text)
    assert fact in caught.value.hint


@pytest.mark.parametrize("text", ["where", "SELECT", "WHERE = 1", "select = 'a' AND from = 'b' AND limit > 5"])
def test_sql_keywords_are_valid_property_names(text):
    parse(text)


def test_a_property_named_where_has_no_sql_hint():
    with pytest.raises(InvalidSelectorError) as caught:
        parse("where = 5 5")
    assert "SELECT" not in caught.value.hint


def expected(text, **options):
    with pytest.raises(InvalidSelectorError) as caught:
        parse(text, **options)
    return caught.value.expected


def test_expected_has_each_valid_token_once():
    assert expected("a IN (") == ("a string in single quotes",)
    assert expected("a IS x") == ("NULL", "NOT")
    words = expected("a = ")
    assert {"a property name", "a number", "("} <= set(words)
    assert len(set(words)) == len(words)


def test_an_invisible_character_is_named():
    with pytest.raises(InvalidSelectorError, match="ZERO WIDTH SPACE"):
        parse("a = \u200b1")
    with pytest.raises(InvalidSelectorError) as caught:
        parse("a b" + "c" * 500)
    assert "c" * 100 not in caught.value.found
