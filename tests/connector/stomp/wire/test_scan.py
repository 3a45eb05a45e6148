"""One table of streams, read whole, cut at every byte, byte by byte; a plain scanner as the oracle."""

import io
import itertools
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.errors import MalformedFrameError, MessageTooLargeError
from pyspark_jms.stomp.wire import scan
from pyspark_jms.stomp.wire.scan import FrameScanner

PLENTY = 1 << 20


class PlainScanner:
    """STOMP 1.2 frame ends, the slow way: one byte after the other, nothing shared with the code under test."""

    def __init__(self, raw):
        self.rest = raw
        self.messages = []  # (id, frame with NUL LF, length of its head)
        self.others = []
        while self._strip() and (frame := self._next()):
            if frame[0].startswith(b"MESSAGE\n"):
                self._message(*frame)
            else:
                self.others.append(frame[0] + b"\n" + frame[1] + b"\0")

    def _strip(self):
        while self.rest[:1] in (b"\n", b"\r"):
            self.rest = self.rest[1:]
        return self.rest

    def _next(self):
        lines, at = [], 0
        while (end := self.rest.find(b"\n", at)) >= 0:
            line = self.rest[at:end].removesuffix(b"\r")
            at = end + 1
            if not line:
                break
            lines.append(line)
        else:
            return None
        lengths = [int(line[15:]) for line in lines[1:] if line.startswith(b"content-length:")]
        end = at + lengths[0] if lengths else self.rest.find(b"\0", at)
        if end < 0 or end >= len(self.rest):
            return None
        body, self.rest = self.rest[at:end], self.rest[end + 1 :]
        return b"".join(line + b"\n" for line in lines), body

    def _message(self, head, body):
        ids = [line[11:] for line in head.split(b"\n")[1:] if line.startswith(b"message-id:")]
        self.messages.append((ids[0], head + b"\n" + body + b"\0\n", len(head) - 1))


def message(identifier=b"1,1", body=b"hello", *, headers=b"", length=True, end=b"\0\n"):
    size = b"content-length:%d\n" % len(body) if length else b""
    return b"MESSAGE\nmessage-id:" + identifier + b"\n" + headers + size + b"\n" + body + end


RECEIPT = b"RECEIPT\nreceipt-id:r1\n\n\0"
STREAMS = {
    "one": message(),
    "several": message(b"1,1") + message(b"1,2", b"") + message(b"1,3", b"x"),
    "no LF after the NUL": message(end=b"\0") + message(b"1,2", end=b"\0"),
    "heart-beats between": b"\n" + message() + b"\n\n\r\n" + message(b"1,2", end=b"\0") + b"\r\n\n",
    "NULs in the body": message(body=b"\0\0MESSAGE\n\n\0\n") + message(b"1,2", b"\n\n\0\n"),
    "without content-length": message(length=False) + message(b"1,2", b"", length=False),
    "blank lines in the body": message(body=b"\n\n\r\n\r\n", length=False) + message(b"1,2"),
    "NUL in a header value": message(headers=b"x:a\0b\n") + message(b"1,2", headers=b"y:\0\n", length=False),
    "CRLF lines": message().replace(b"\n", b"\r\n") + message(b"1,2"),
    "CRLF lines, CRLF in the body": b"MESSAGE\r\nmessage-id:7\r\ncontent-length:8\r\n\r\n\r\n\r\n\r\n\r\n\0\r\n"
    + message(),
    "CRLF lines, LF LF in the body": b"MESSAGE\r\nmessage-id:7\r\ncontent-length:3\r\n\r\n\n\n\n\0" + message(),
    "LF lines, CRLF blank line": b"MESSAGE\nmessage-id:7\ncontent-length:2\n\r\nab\0\n" + message(b"1,2"),
    "LF lines, CRLF blank line, LF LF in the body": b"MESSAGE\nmessage-id:7\n\r\na\n\nb\0\n" + message(b"1,2"),
    "a CRLF line among LF lines": b"MESSAGE\nmessage-id:7\r\nx:1\n\na\n\nb\0\n" + message(b"1,2"),
    "CRLF lines, LF blank line": b"MESSAGE\r\nmessage-id:7\r\ncontent-length:2\r\n\nab\0\n" + message(b"1,2"),
    "CR LF in the body of LF frames": message(body=b"a\r\n\r\nb") + message(b"1,2", b"\r\n\0\r"),
    "CRLF lines, without content-length": (
        b"MESSAGE\r\nmessage-id:7\r\nx:\r\nx:\r\n\r\n\0RECEIPT\nreceipt-id:r1\n\n\0" + message(length=False)
    ),
    "first content-length wins": message(body=b"abc", headers=b"content-length:3\n", length=True) + message(b"1,2"),
    "a wrong second content-length": b"MESSAGE\nmessage-id:1\ncontent-length:1\ncontent-length:9\n\nx\0\n" + message(),
    "first message-id wins": message(b"real", headers=b"message-id:forged\n"),
    "ack of a producer": message(headers=b"ack:forged\nack:1,1\n"),
    "content-length only in the body": b"MESSAGE\nmessage-id:1\n\n\ncontent-length:900\n\0\n" + message(),
    "content-length in the body, pointing at another end": (
        b"MESSAGE\nmessage-id:1\n\n\ncontent-length:%d\n\0\n" % (21 + len(message()) - 2) + message()
    ),
    "a property that ends so": message(headers=b"my-content-length:900\nmy-message-id:2\n"),
    "receipts between": RECEIPT + message() + RECEIPT + RECEIPT + message(b"1,2") + RECEIPT,
    "an ERROR with a body": message() + b"ERROR\nmessage:no\ncontent-length:3\n\na\0b\0\n" + message(b"1,2"),
    "CONNECTED": b"CONNECTED\nversion:1.2\nserver:A:B\\x\n\n\0\n" + message(),
    "a name that begins alike": b"MESSAGES\nx:1\n\n\0" + message(),
    "trailing beginning": message() + message(b"1,2")[:-5],
    "trailing head": message() + b"MESSAGE\nmessage-id:1,2\ncontent-",
    "trailing command": message() + b"MESS",
    "nothing": b"",
    "only heart-beats": b"\n\r\n\n\n",
}


def pieces(raw, cuts):
    cuts = sorted(cuts)
    return [raw[a:b] for a, b in itertools.pairwise([0, *cuts, len(raw)])]


def check(raw, cuts):
    """The scanner, fed in these pieces, finds what the plain one finds."""
    scanner, others = FrameScanner(max_body_bytes=PLENTY), []
    for piece in pieces(raw, cuts):
        others += scanner.feed(piece)
    plain = PlainScanner(raw)
    assert others == plain.others
    assert (scanner.messages, scanner.size) == (len(plain.messages), sum(len(m[1]) for m in plain.messages))
    block = scanner.take()
    assert bytes(block.data) == b"".join(frame for _, frame, _ in plain.messages)
    assert block.ids == [identifier for identifier, _, _ in plain.messages]
    for index, (_, frame, head) in enumerate(plain.messages):
        assert block.message(index) == frame
        assert block.heads[index] - block.start(index) == head
        assert block.data[block.ends[index] - 2 : block.ends[index]] == b"\0\n"
    assert len(block) == len(block.heads) == len(block.ends) == len(plain.messages)
    assert (scanner.messages, scanner.size) == (0, 0)


@pytest.mark.parametrize("raw", STREAMS.values(), ids=STREAMS)
def test_cut_at_every_byte_and_byte_by_byte(raw):
    for cut in range(len(raw) + 1):
        check(raw, [cut])
    check(raw, range(1, len(raw)))


@pytest.mark.parametrize("raw", STREAMS.values(), ids=STREAMS)
def test_the_stream_goes_on(raw):
    """With bytes behind that begin a frame of their own, unless the stream itself is open."""
    if not PlainScanner(raw).rest:
        check(raw + message(b"9,9", b"last\0") + RECEIPT, [])


def test_the_table_holds_what_it_says():
    """The oracle is checked by hand, once."""
    plain = PlainScanner(STREAMS["receipts between"])
    assert [identifier for identifier, _, _ in plain.messages] == [b"1,1", b"1,2"]
    assert plain.others == [RECEIPT] * 4
    assert plain.messages[0] == (b"1,1", b"MESSAGE\nmessage-id:1,1\ncontent-length:5\n\nhello\0\n", 39)


def test_take_begins_a_new_block_in_the_middle_of_a_frame():
    scanner = FrameScanner(max_body_bytes=PLENTY)
    scanner.feed(message(b"1,1") + message(b"1,2")[:20])
    assert scanner.take().ids == [b"1,1"]
    scanner.feed(message(b"1,2")[20:] + message(b"1,3"))
    block = scanner.take()
    assert block.ids == [b"1,2", b"1,3"]
    assert block.message(0) == message(b"1,2")


@pytest.mark.parametrize("end", [b"\0\n", b"\0", b"\0\r\n"])
def test_where_ack_takes_another_header_an_id_is_both(end):
    scanner = FrameScanner(max_body_bytes=PLENTY)
    scanner.ack_header = b"ack"
    scanner.feed(message(b"a", headers=b"ack:7\n", end=end) + message(b"b", b"\nack:9\n", end=end))
    assert scanner.take().ids == [b"7,a", b",b"]


# --- what is wrong ---------------------------------------------------------------------------------

BROKEN = {
    "content-length too small": b"MESSAGE\nmessage-id:1\ncontent-length:1\n\nabc\0\n",
    "content-length no number": b"MESSAGE\nmessage-id:1\ncontent-length:abc\n\nabc\0\n",
    "content-length negative": b"MESSAGE\nmessage-id:1\ncontent-length:-1\n\nabc\0\n",
    "content-length empty": b"MESSAGE\nmessage-id:1\ncontent-length:\n\nabc\0\n",
    "content-length beyond 64 bits": b"MESSAGE\nmessage-id:1\ncontent-length:%s\n\nabc\0\n" % (b"9" * 5000),
    "no message-id": b"MESSAGE\nx:1\n\nabc\0\n",
    "no header": b"MESSAGE\n\nabc\0\n",
    "message-id only in the body": b"MESSAGE\nx:1\n\n\nmessage-id:1\n\0\n",
    "HTTP": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "an alert of TLS": b"\x15\x03\x03\x00\x02\x02\x46",
    "lower case": b"receipt\n\n\0",
    "a stray NUL": message() + b"\0",
    "a line that does not end": b"A" * 64,
    "content-length too small, before an LF": message(body=b"ab\n").replace(b"content-length:3", b"content-length:1"),
    "body longer than content-length": message(body=b"ab").replace(b"content-length:2", b"content-length:1"),
}


def feed_all(scanner, fed):
    for piece in fed:
        scanner.feed(piece)


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("one_by_one", [False, True])
def test_what_is_not_stomp_is_said_so(raw, one_by_one):
    fed = pieces(raw, range(1, len(raw)) if one_by_one else [])
    with pytest.raises(MalformedFrameError, match="JMS_MALFORMED_FRAME"):
        feed_all(FrameScanner(max_body_bytes=PLENTY), fed)


def test_a_header_block_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(scan, "MAX_HEADER_BYTES", 1000)
    scanner = FrameScanner(max_body_bytes=10)
    scanner.feed(b"MESSAGE\nmessage-id:1\nx:" + b"y" * 900)
    with pytest.raises(MalformedFrameError, match="blank line"):
        scanner.feed(b"y" * 100)


@pytest.mark.parametrize("eol", [b"\r\n", b"\n"], ids=["CRLF", "LF"])
def test_a_header_block_in_small_pieces_costs_what_its_size_says(eol):
    """4 MB in pieces of 1 KB: 0.02 s of CPU, and 12 s when each piece was searched from the first byte on."""
    scanner = FrameScanner(max_body_bytes=PLENTY)
    piece = (b"a:" + b"b" * 500 + eol) * 2
    began = time.process_time()
    scanner.feed(b"MESSAGE" + eol + b"message-id:1" + eol)
    for _ in range(4000):
        scanner.feed(piece)
    scanner.feed(eol + b"body\0")
    assert time.process_time() - began < 2
    block = scanner.take()
    assert (len(block), block.heads[0]) == (1, len(b"MESSAGE\nmessage-id:1\n") + 4000 * 2 * 503 - 1)
    assert block.data.endswith(b"b\n\nbody\0\n")


def test_a_frame_that_is_no_message_has_its_own_limit(monkeypatch):
    monkeypatch.setattr(scan, "MAX_HEADER_BYTES", 1000)
    scanner = FrameScanner(max_body_bytes=10)
    error = b"ERROR\nmessage:no\n\n" + b"x" * 1000 + b"\0"
    assert scanner.feed(error) == [error]
    with pytest.raises(MalformedFrameError, match=r"\b1,001 bytes"):
        scanner.feed(b"ERROR\nmessage:no\ncontent-length:1001\n\n")


@pytest.mark.parametrize("length", [True, False], ids=["with content-length", "without"])
def test_the_largest_message(length):
    scanner = FrameScanner(max_body_bytes=1000)
    scanner.feed(message(body=b"x" * 1000, length=length, headers=b"h:%s\n" % (b"y" * 5000)))
    assert scanner.messages == 1
    assert scanner.refused is None


TOO_LARGE = r"JMS_MESSAGE_TOO_LARGE.*1,001 bytes.*maxMessageBytes \(1,000\)"


def test_a_message_too_large_without_its_length_is_an_error():
    with pytest.raises(MessageTooLargeError, match=TOO_LARGE):
        FrameScanner(max_body_bytes=1000).feed(message(body=b"x" * 1001, length=False))


@pytest.mark.parametrize("step", [1, 7, 100, 5000])
def test_a_message_too_large_that_says_its_length_is_passed_over(step):
    receipt = b"RECEIPT\nreceipt-id:r\n\n\0"
    large, larger = message(b"1,2", b"\0" * 1001, headers=b"destination:orders\n"), message(b"1,4", b"y" * 2000)
    raw = message() + large + b"\n" + receipt + message(b"1,3") + larger
    scanner = FrameScanner(max_body_bytes=1000)
    others = [frame for at in range(0, len(raw), step) for frame in scanner.feed(raw[at : at + step])]
    assert others == [receipt]
    assert scanner.take().ids == [b"1,1", b"1,3"]
    assert re.search(TOO_LARGE, str(scanner.refused))
    assert scanner.refused.fact.startswith("orders: ")


@pytest.mark.parametrize("step", [1, 7, 100, 5000])
@pytest.mark.parametrize("kept", [True, False])
def test_messages_too_large_are_kept_elsewhere_where_that_is_wanted(step, kept):
    receipt = b"RECEIPT\nreceipt-id:r\n\n\0"
    bodies = [b"\0" * 1001, b"z" * 1500, b"y" * 2000]
    large = [message(b"1,%d" % n, body, length=b"z" not in body) for n, body in enumerate(bodies, 2)]
    raw = message() + large[0] + b"\n" + large[1] + receipt + message(b"1,9") + large[2] + message(b"1,8")
    scanner = FrameScanner(max_body_bytes=1000, keep_oversized=io.BytesIO if kept else lambda: None)
    others = [frame for at in range(0, len(raw), step) for frame in scanner.feed(raw[at : at + step])]
    assert others == [receipt]
    assert scanner.take().ids == [b"1,1", b"1,9", b"1,8"]
    assert scanner.refused is None
    found = scanner.oversized
    assert [(one.identifier, one.size) for one in found] == [(b"1,2", 1001), (b"1,3", 1500), (b"1,4", 2000)]
    assert [one.head for one in found] == [frame.partition(b"\n\n")[0] for frame in large]
    assert [one.body.getvalue() if kept else one.body for one in found] == (bodies if kept else [None] * 3)


def test_a_message_too_large_waits_until_it_is_whole():
    scanner = FrameScanner(max_body_bytes=10, keep_oversized=io.BytesIO)
    raw = message(b"1,2", b"x" * 50).rstrip(b"\n")
    for at in range(len(raw) - 1):
        scanner.feed(raw[at : at + 1])
        assert scanner.oversized == []
    scanner.feed(raw[-1:])
    assert repr(scanner.oversized) == "[OversizedMessage(50 bytes)]"


def test_a_message_without_length_is_not_collected_beyond_the_limit():
    scanner = FrameScanner(max_body_bytes=1000)
    scanner.feed(b"MESSAGE\nmessage-id:1\n\n" + b"x" * 1000)
    with pytest.raises(MessageTooLargeError):
        scanner.feed(b"x")


def test_messages_before_the_broken_frame_are_kept():
    scanner = FrameScanner(max_body_bytes=PLENTY)
    with pytest.raises(MalformedFrameError):
        scanner.feed(message() + BROKEN["no message-id"])
    assert scanner.take().ids == [b"1,1"]


def test_errors_show_no_payload():
    for raw in BROKEN.values():
        with pytest.raises(MalformedFrameError) as error:
            FrameScanner(max_body_bytes=PLENTY).feed(raw.replace(b"abc", b"SECRET").replace(b"x:1", b"x:SECRET"))
        assert "SECRET" not in str(error.value)


# --- any stream, any cut ---------------------------------------------------------------------------

VALUES = st.binary(max_size=8).filter(lambda value: not set(value) & set(b"\r\n:\\"))
NAMES = st.sampled_from([b"x", b"ack", b"redelivered", b"content-type"]) | VALUES
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
BODIES = st.binary(max_size=20) | st.sampled_from([b"\0", b"\n\n", b"\0\nMESSAGE\n\n\0", b"\r\n\r\n", b"ERROR\n\n\0"])


@st.composite
def frames(draw):
    head = [name + b":" + value for name, value in draw(HEADERS)]
    command = draw(st.sampled_from([b"MESSAGE", b"MESSAGE", b"RECEIPT", b"ERROR"]))
    if command == b"MESSAGE":
        head.insert(draw(st.integers(0, len(head))), b"message-id:%d,7" % draw(st.integers(0, 99)))
    body = draw(BODIES)
    if b"\0" in body or draw(st.booleans()):
        at = draw(st.integers(0, len(head)))
        first = next((i for i, line in enumerate(head) if line.startswith(b"content-length:")), at)
        head.insert(min(at, first), b"content-length:%d" % len(body))
    eol = draw(st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"]))
    between = b"".join(draw(st.lists(st.sampled_from([b"\n", b"\r\n"]), max_size=3)))
    return eol.join([command, *head, b"", b""]) + body + b"\0" + between


@given(st.data(), st.lists(frames(), max_size=6))
def test_any_frames_in_any_pieces(data, stream):
    raw = b"".join(stream)
    raw = raw[: len(raw) - data.draw(st.integers(0, 3))]
    check(raw, data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))


@given(st.binary(max_size=60) | st.lists(frames(), max_size=3).map(b"".join), st.data())
def test_any_bytes_are_read_or_refused(raw, data):
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(0, 3)) if raw else 0):
        damaged[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    results = []
    for cuts in ([], range(1, len(damaged))):
        scanner = FrameScanner(max_body_bytes=1000)
        others, failure = [], None
        try:
            for piece in pieces(bytes(damaged), cuts):
                others += scanner.feed(piece)
        except (MalformedFrameError, MessageTooLargeError) as error:
            failure = type(error)
        block = scanner.take()
        results.append((bytes(block.data), block.ids, failure, None if failure else others))
    assert results[0] == results[1]
