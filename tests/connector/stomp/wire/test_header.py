import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.errors import MalformedFrameError
from pyspark_jms.stomp.wire.header import escape, header_of, unescape
from pyspark_jms.stomp.wire.scan import FrameScanner

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


def test_one_header_of_a_frame_in_a_block():
    scanner = FrameScanner(max_body_bytes=100)
    scanner.feed(
        b"MESSAGE\nx:1\nempty:\nx:2\nmessage-id:1,1\n\n\ny:3\n\0\nMESSAGE\ny:a\\cb\nmessage-id:1,2\nlast:5\n\nx:7\0\n"
    )
    block = scanner.take()
    names = (b"x", b"empty", b"y", b"last", b"message-id")
    assert [header_of(block, 0, name) for name in names] == [b"1", b"", None, None, b"1,1"]
    assert [header_of(block.slice(1, 2), 0, name) for name in names] == [None, None, b"a\\cb", b"5", b"1,2"]
