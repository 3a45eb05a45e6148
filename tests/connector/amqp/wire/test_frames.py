import pytest

from pyspark_jms.amqp.wire.frames import EMPTY_FRAME, frame, frame_size
from pyspark_jms.amqp.wire.limits import Limits
from pyspark_jms.amqp.wire.types import Close
from pyspark_jms.errors import MalformedFrameError


def test_a_frame_of_the_specification():
    assert frame(0, Close()) == bytes.fromhex("0000000c0200000000531845")
    assert frame(1, Close(), b"x", sasl=True) == bytes.fromhex("0000000d020100010053184578")
    assert bytes.fromhex("0000000802000000") == EMPTY_FRAME


def test_the_size_of_a_frame():
    assert frame_size(bytearray(b"xx" + frame(0, Close())), 2, Limits()) == 12


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("0000000701000000", "whose body begins"),
        ("0000000c01000000", "whose body begins"),
        ("0000000c04000000", "whose body begins"),
        ("0002000102000000", "131,072 are allowed"),
    ],
)
def test_frames_that_cannot_be(header, reason):
    with pytest.raises(MalformedFrameError, match=reason):
        frame_size(bytearray(bytes.fromhex(header)), 0, Limits())
