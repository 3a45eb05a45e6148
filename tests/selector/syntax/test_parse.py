import subprocess
import sys

import pytest
import selector_strategies
from hypothesis import given
from hypothesis import strategies as st
from selector_schema import parse

from jms_selector.errors import InvalidSelectorError, SelectorTooLargeError
from jms_selector.syntax.parse import MAX_LENGTH


def test_a_blank_text_selects_everything():
    assert parse(" \t\n").root is None
    for dialect in ("artemis", "classic"):
        with pytest.raises(InvalidSelectorError):
            parse(" ", dialect=dialect)


@pytest.mark.parametrize(
    ("text", "convert", "valid"),
    [
        ("convert_string_expressions:a = 1", True, {"artemis", "classic"}),
        ("convert_string_expressions:no_convert_string_expressions:a = 1", False, {"artemis"}),
        ("hyphenated_props:convert_string_expressions:a-b = 1", True, {"artemis"}),
        (" convert_string_expressions:a = 1", False, set()),
    ],
)
def test_prefixes(text, convert, valid):
    for dialect in ("spec", "artemis", "classic"):
        if dialect in valid:
            assert parse(text, dialect=dialect).convert == convert
        else:
            with pytest.raises(InvalidSelectorError):
                parse(text, dialect=dialect)


REFUSED = [  # text, position of the error (from 1), a fact in the message
    ("a == 1", 4, "= <> < <= > >="),
    ("a != 1", 3, "<>"),
    ("a = 1 && b", 7, "AND"),
    ("a = 1 || b = 2", 7, "OR"),
    ("color = 'red", 9, "'it''s'"),
    ("color = red blue", 13, "'like this'"),
    ("x = 'it's'", 9, "'it''s'"),
    ("a IN (1, 2)", 7, "x = 1 OR x = 2"),
    ("a = NULL", 5, "IS NULL"),
    ("a LIKE b", 8, "LIKE"),
    ("a > 'x'", 5, "Expected a number."),
    ("a + 1", 1, "calculation"),
    ("3 IN ('x')", 1, "Expected a property name."),
    ("a LIKE 'x' ESCAPE 'ab'", 19, "'ab'"),
    ("a = 9223372036854775808", 5, "9223372036854775808"),
    ("a = 08", 5, "octal"),
    ("a = 5\u00a0", 6, "NO-BREAK SPACE"),
    ("x² = 1", 1, "SUPERSCRIPT TWO"),
    ("a = 1 OR", 9, "Expected a property name"),
    ("a = 5;", 6, "semicolon"),
    ("a.b = 1", 2, "dot"),
    ("(a = 1", 7, "Expected )"),
]


@pytest.mark.parametrize(("text", "position", "fact"), REFUSED)
def test_an_error_has_the_position_and_the_mistake(text, position, fact):
    with pytest.raises(InvalidSelectorError, match=r"\[JMS_INVALID_SELECTOR\]") as caught:
        parse(text)
    assert (caught.value.position + 1, fact in str(caught.value)) == (position, True), str(caught.value)


def test_strict_refuses_comments():
    text = "a = 1 /* c */"
    parse(text)
    with pytest.raises(InvalidSelectorError, match=r"\[JMS_INVALID_SELECTOR\].* 7\)"):
        parse(text, strict=True)


def test_size_is_limited():
    with pytest.raises(SelectorTooLargeError, match=r"\[JMS_SELECTOR_TOO_LARGE\].* 262,144"):
        parse("a = 1 OR " * (MAX_LENGTH // 9) + "a = 1")


def test_importing_the_package_imports_no_large_library():
    heavy = ["lark", "pyarrow", "numpy", "pyspark", "pandas"]
    code = f"import sys, jms_selector; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


_WORDS = """a b JMSType 'x' 'it''s' ' " 1 -5 0x1F 5. .5 1e3 5L 08 99999999999999999999 = <> < <= > >= + - * / % ( ) ,
. ; : ! AND OR NOT BETWEEN LIKE ESCAPE IN IS NULL TRUE FALSE and XPATH /* */ -- é ² 😀 || && == != REGEX
convert_string_expressions: hyphenated_props:"""
_TOKENS = st.sampled_from([*_WORDS.split(), "\n", "\t", "\u00a0", "\0"])
_dialects = st.sampled_from(["spec", "artemis", "classic", "ibm"])


@given(st.lists(_TOKENS, max_size=25), st.sampled_from(["", " "]), _dialects, st.booleans())
def test_any_tokens_are_a_selector_or_refused(tokens, space, dialect, strict):
    _parsed_or_refused(space.join(tokens), dialect, strict)


@given(st.text(max_size=40), _dialects, st.booleans())
def test_any_text_is_a_selector_or_refused(text, dialect, strict):
    _parsed_or_refused(text, dialect, strict)


@given(selector_strategies.selectors(), st.data())
def test_a_damaged_selector_is_a_selector_or_refused(text, data):
    place = data.draw(st.integers(0, len(text)))
    damage = data.draw(st.one_of(_TOKENS, st.characters(codec="utf-8")))
    cut = data.draw(st.integers(0, 3))
    _parsed_or_refused(text[:place] + damage + text[place + cut :], "spec", strict=False)


def _parsed_or_refused(text, dialect, strict):
    error = None
    try:
        parse(text, dialect=dialect, strict=strict)
    except InvalidSelectorError as refused:
        error = refused
    assert error is None or (0 <= error.position <= len(text) and len(error.context.splitlines()) == 2)


@given(selector_strategies.selectors())
def test_what_is_generated_is_valid(text):
    parse(text)
