import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jms_selector.syntax.like import ANY, ONE, choose_portable_escape, compile_like, matcher, to_regex

MATCHES = [
    ("12%3", None, "12993", True),
    ("12%3", None, "1234", False),
    ("l_se", None, "loose", False),
    ("_", None, "😀", True),
    ("_", None, "é", True),
    ("a_b", None, "a\nb", True),
    ("a%", None, "a\n\nb", True),
    ("", None, "", True),
    ("%", None, "", True),
    ("a.c", None, "abc", False),
    ("[a-c]", None, "b", False),
    ("a\\b", None, "a\\b", True),
    ("!_%", "!", "_foo", True),
    ("!_%", "!", "foo", False),
    ("a!bc", "!", "a!bc", True),  # before an ordinary character the escape stands for itself
    ("abc!", "!", "abc!", True),
    ("a!!b", "!", "a!b", True),
    ("_x__", "_", "ax_", True),  # an escape that is a wildcard escapes only before _ % and itself
]


@pytest.mark.parametrize(("pattern", "escape", "text", "matches"), MATCHES)
def test_matches(pattern, escape, text, matches):
    assert (matcher(pattern, escape, False).fullmatch(text) is not None) == matches


def test_tokens_are_runs_and_wildcards():
    assert compile_like("ab%%c_") == ("ab", ANY, "c", ONE)
    assert compile_like("a!%b", "!") == ("a%b",)
    assert to_regex(("a.b", ANY, ONE)) == r"a\.b.*."


def test_activemq_writes_an_escaped_character_in_hexadecimal():
    assert compile_like("€€", "€", activemq=True) == (" ac",)
    assert compile_like("\t\ta", "\t", activemq=True) == ("\x9a",)
    with pytest.raises(ValueError, match=re.escape(repr("\t"))):
        compile_like("\t\t", "\t", activemq=True)


_patterns = st.text(alphabet="ab%_!\\#'", max_size=8)


@given(_patterns, st.sampled_from([None, "!", "\\", "%", "a", "€"]), st.text(alphabet="ab%_!\\#'", max_size=8))
def test_a_pattern_with_a_portable_escape_matches_the_same(pattern, escape, text):
    spelled = choose_portable_escape(compile_like(pattern, escape), escape)
    assert bool(matcher(*spelled, False).fullmatch(text)) == bool(matcher(pattern, escape, False).fullmatch(text))
    # A broker agrees: its flaw concerns escapes beyond ASCII only.
    assert bool(matcher(*spelled, True).fullmatch(text)) == bool(matcher(pattern, escape, False).fullmatch(text))


def test_an_escape_is_used_only_where_it_is_needed():
    assert choose_portable_escape(compile_like("a!b", "!"), "!") == ("a!b", None)
    assert choose_portable_escape(compile_like("a!_b", "!"), "!") == ("a!_b", "!")
    assert choose_portable_escape(compile_like("a€_b", "€"), "€") == ("a\\_b", "\\")
