import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.errors import MalformedFrameError
from pyspark_jms.stomp.wire.header import escape, unescape

PAIRS = [
    ("", ""),
    ("plain", "plain"),
    ("a:b", r"a\cb"),
    ("a\nb", r"a\nb"),
    ("a\rb", r"a\rb"),
    ("a\\b", r"a\\b"),
    ("\\c", r"\\c"),  # looks like an escape, is not one
    ("\\\\c", r"\\\\c"),
    ("\r\n", r"\r\n"),
    (":\\\n\r", r"\c\\\n\r"),
    ("\tzürich 雪 🐘", "\tzürich 雪 🐘"),
    ("\x00\x85\u2028", "\x00\x85\u2028"),  # line ends elsewhere, not in STOMP
]


@pytest.mark.parametrize(("plain", "wire"), PAIRS)
def test_escapes(plain, wire):
    assert escape(plain) == wire


@pytest.mark.parametrize(("plain", "wire"), PAIRS)
def test_unescapes(plain, wire):
    assert unescape(wire) == plain


@pytest.mark.parametrize("wire", [r"a\tb", "a\\", "\\\n", r"\C", "\\\\\\", "\\é"])
def test_an_undefined_escape_is_fatal(wire):
    with pytest.raises(MalformedFrameError, match="JMS_MALFORMED_FRAME"):
        unescape(wire)


@given(st.text())
def test_any_text_survives_and_leaves_no_separator(plain):
    wire = escape(plain)
    assert not set(wire) & set(":\r\n")
    assert unescape(wire) == plain
