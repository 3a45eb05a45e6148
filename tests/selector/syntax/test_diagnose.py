import pytest

from jms_selector.errors import InvalidSelectorError
from jms_selector.syntax.diagnose import hint_at
from jms_selector.syntax.parse import parse

HINTS = [
    ("a == 1", 2, "one ="),
    ("a != 1", 2, "<>"),
    ("a && b", 2, "AND"),
    ("a || b", 2, "OR"),
    ('"x"', 0, "single quotes"),
    ("‘x’", 0, "straight single quotes"),
    ("'x", 0, "closing quote"),
    ("[1]", 0, "parentheses"),
    ("-- c", 0, "no comments"),
]


@pytest.mark.parametrize(("text", "place", "says"), HINTS)
def test_hints_for_usual_mistakes(text, place, says):
    assert says in hint_at(text, place)


def test_no_hint_for_what_is_no_mistake():
    assert hint_at("abc = 1", 0) == ""
    assert hint_at("'x'", 0) == ""


STATEMENTS = [
    ("SELECT * FROM orders WHERE color = 'red'", "and WHERE: color = 'red'"),
    ("  select a, b\nfrom q\nwhere n > 5 ;", "and WHERE: n > 5"),
    ("WHERE color = 'red'", "and WHERE: color = 'red'"),
    ("SELECT text FROM q", "without SELECT and FROM"),
    ("color = 'red' ORDER BY n", "no ORDER BY"),
    ("color = 'red' LIMIT 5", "no ORDER BY, GROUP BY, HAVING or LIMIT"),
]


@pytest.mark.parametrize(("text", "says"), STATEMENTS)
def test_a_statement_of_sql_is_told_to_be_one(text, says):
    with pytest.raises(InvalidSelectorError) as caught:
        parse(text)
    assert says in caught.value.hint


@pytest.mark.parametrize("text", ["where", "SELECT", "WHERE = 1", "select = 'a' AND from = 'b' AND limit > 5"])
def test_words_of_sql_are_names_of_properties(text):
    parse(text)


def test_a_property_called_where_is_no_statement():
    with pytest.raises(InvalidSelectorError) as caught:
        parse("where = 5 5")
    assert "SELECT" not in caught.value.hint


def expected(text, **options):
    with pytest.raises(InvalidSelectorError) as caught:
        parse(text, **options)
    return caught.value.expected


def test_expected_is_what_could_stand_there_and_each_once():
    assert expected("a IN (") == ("a string in single quotes",)
    assert expected("a IS x") == ("NULL", "NOT")
    words = expected("a = ")
    assert {"a property name", "a number", "("} <= set(words)
    assert len(set(words)) == len(words)


def test_found_is_named_where_it_cannot_be_seen():
    with pytest.raises(InvalidSelectorError, match="ZERO WIDTH SPACE"):
        parse("a = \u200b1")
    with pytest.raises(InvalidSelectorError) as caught:
        parse("a b" + "c" * 500)
    assert "c" * 100 not in caught.value.found
