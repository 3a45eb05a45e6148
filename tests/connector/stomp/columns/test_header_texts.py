from plain_decoder import block_of, message

from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.header_texts import HeaderTexts
from pyspark_jms.stomp.columns.layout import layout_of
from pyspark_jms.stomp.columns.lines import split_lines
from pyspark_jms.stomp.dialects import ARTEMIS


def headers_of(*frames):
    lines = split_lines(FrameBounds.of(block_of(frames)))
    return HeaderTexts(lines, layout_of(lines, ARTEMIS))


def test_one_header_in_all_frames():
    headers = headers_of(message("a:1", "type:t"), message("a:1"), message("type:u"))
    assert len(headers) == 3
    assert headers.line("JMSType").tolist() == [1, -1, 3]
    assert headers.text("JMSType").to_pylist() == ["t", None, "u"]
    assert headers.equals("JMSType", "u").tolist() == [False, False, True]
    assert headers.equals("JMSType", None).tolist() == [False] * 3


def test_a_header_that_no_frame_has():
    headers = headers_of(message("a:1"), message())
    assert headers.line("JMSType").tolist() == [-1, -1]
    assert headers.text("JMSType").to_pylist() == [None, None]
    assert headers.equals("JMSType", "").tolist() == [False, False]
