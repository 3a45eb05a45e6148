import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.errors import MalformedFrameError
from pyspark_jms.stomp.wire.frame import Frame, ack_frames, encode_frame, escape, header_of, parse_frame, unescape
from pyspark_jms.stomp.wire.scan import FrameScanner

BOTH_WAYS = [
    (Frame("BEGIN", (("transaction", "t"),)), b"BEGIN\ntransaction:t\n\n\0"),
    (Frame("DISCONNECT"), b"DISCONNECT\n\n\0"),
    (Frame("SEND", (("content-length", "0"),)), b"SEND\ncontent-length:0\n\n\0"),
    (Frame("SEND", (("content-length", "3"),), b"a\0b"), b"SEND\ncontent-length:3\n\na\0b\0"),
    (Frame("SEND", (("content-length", "2"),), b"\n\n"), b"SEND\ncontent-length:2\n\n\n\n\0"),
    (Frame("SEND", (("x", ""), ("", "y"), ("content-length", "1")), b"\r"), b"SEND\nx:\n:y\ncontent-length:1\n\n\r\0"),
    # STOMP 1.2 "Value Encoding": names and values are escaped …
    (Frame("SEND", (("a:b", "c:d\\e\r\n"),)), b"SEND\na\\cb:c\\cd\\\\e\\r\\n\n\n\0"),
    # … but not in CONNECT and CONNECTED; there the first colon ends the name
    (Frame("CONNECT", (("passcode", "a:b\\c"),)), b"CONNECT\npasscode:a:b\\c\n\n\0"),
    (Frame("CONNECTED", (("server", "A:B\\x"),)), b"CONNECTED\nserver:A:B\\x\n\n\0"),
    (Frame("STOMP", (("login", "a:b"),)), b"STOMP\nlogin:a\\cb\n\n\0"),
    (Frame("SEND", (("straße", "雪 🐘"),)), "SEND\nstraße:雪 🐘\n\n\0".encode()),
    (Frame("MESSAGE", (("x", "a\0b"), ("content-length", "1")), b"c"), b"MESSAGE\nx:a\0b\ncontent-length:1\n\nc\0"),
    (Frame("SEND", (("x", "1"), ("x", "2"))), b"SEND\nx:1\nx:2\n\n\0"),
]


@pytest.mark.parametrize(("frame", "raw"), BOTH_WAYS)
def test_encodes(frame, raw):
    assert encode_frame(frame) == raw


@pytest.mark.parametrize(("frame", "raw"), BOTH_WAYS)
@pytest.mark.parametrize(("before", "after"), [(b"", b""), (b"", b"\n"), (b"\n\r\n\n", b"\r\n\n"), (b"\r\n\r\n", b"")])
def test_parses_with_end_of_lines_around(frame, raw, before, after):
    assert parse_frame(before + raw + after) == frame


@pytest.mark.parametrize(
    ("raw", "frame"),
    [
        (b"SEND\r\nx:1\r\n\r\na\r\nb\0", Frame("SEND", (("x", "1"),), b"a\r\nb")),
        (b"\r\nSEND\r\nx:1\r\n\r\na\r\n\r\nb\0", Frame("SEND", (("x", "1"),), b"a\r\n\r\nb")),
        (b"SEND\r\nx:1\n\na\r\n\r\nb\0", Frame("SEND", (("x", "1"),), b"a\r\n\r\nb")),
        (b"SEND\nx:1\n\r\n\n\0", Frame("SEND", (("x", "1"),), b"\n")),
        (b"SEND\nx:1\n\na\r\n\r\nb\0", Frame("SEND", (("x", "1"),), b"a\r\n\r\nb")),
        (b"SEND\n\nno length\0", Frame("SEND", (), b"no length")),
    ],
)
def test_parses_what_we_would_not_write(raw, frame):
    assert parse_frame(raw) == frame


def test_the_first_of_repeated_headers_counts():
    assert Frame("MESSAGE", (("ack", "1"), ("ack", "2"))).header("ack") == "1"
    raw = b"SEND\ncontent-length:1\ncontent-length:5\n\nx\0"
    assert parse_frame(raw).body == b"x"


def test_a_body_gets_its_length():
    assert encode_frame(Frame("SEND", (("x", "1"),), b"a\0")) == b"SEND\nx:1\ncontent-length:2\n\na\0\0"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0",
        b"SEND\nx:1\n\0",
        b"SEND\nx:1\n\nbody",
        b"SEND\nx:1\n\nbody\0more",
        b"SEND\nx:1\n\nbody\0SEND\n\n\0",
        b"SEND\nno colon\n\n\0",
        b"SEND\nx:\\t\n\n\0",
        b"SEND\nx:\xff\n\n\0",
        b"SEND\ncontent-length:1\n\nab\0",
        b"SEND\ncontent-length:3\n\nab\0",
        b"SEND\ncontent-length:-1\n\n\0",
        b"SEND\ncontent-length:\n\n\0",
        "SEND\ncontent-length:٣\n\nabc\0".encode(),
        b"SEND\ncontent-length:" + b"9" * 5000 + b"\n\n\0",
        b"HTTP/1.1 200 OK\r\n\r\n\0",
        b"send\n\n\0",
    ],
)
def test_anything_else_is_malformed(raw):
    with pytest.raises(MalformedFrameError, match="JMS_MALFORMED_FRAME"):
        parse_frame(raw)


def test_repr_shows_no_payload():
    frame = Frame("SEND", (("passcode", "SECRET"),), b"SECRET")
    assert repr(frame) == "Frame(SEND, 1 headers, 6 bytes)"


def test_acks_are_one_frame_a_message_and_the_last_asks_for_the_receipt():
    raw = ack_frames([b"27,31", b"27,32", b"a\\cb"], "r7")
    frames = [parse_frame(part + b"\0") for part in raw.split(b"\0")[:-1]]
    assert frames == [
        Frame("ACK", (("id", "27,31"),)),
        Frame("ACK", (("id", "27,32"),)),
        Frame("ACK", (("id", "a:b"), ("receipt", "r7"))),
    ]


def test_acks_without_a_receipt():
    assert ack_frames(iter([b"1"])) == b"ACK\nid:1\n\n\0"


COMMANDS = st.sampled_from(["CONNECT", "CONNECTED", "SEND", "MESSAGE", "ERROR", "RECEIPT"])
PLAIN = st.text(st.characters(exclude_characters="\r\n:", exclude_categories=["Cs"]))
ESCAPED = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.data(), COMMANDS, st.binary())
def test_any_frame_survives(data, command, body):
    text = PLAIN if command.startswith("CONNECT") else ESCAPED
    headers = data.draw(st.lists(st.tuples(text.filter(lambda name: name != "content-length"), text)))
    frame = Frame(command, (*headers, ("content-length", str(len(body)))), body)
    assert parse_frame(encode_frame(frame)) == frame


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
def test_escapes_both_ways(plain, wire):
    assert escape(plain) == wire
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
