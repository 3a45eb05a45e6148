import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.compression import compress, compressed_share, decompress


@given(st.binary(max_size=300), st.integers(1, 300))
def test_what_was_compressed_comes_back(data, times):
    assert decompress(compress(memoryview(data * times)), len(data) * times) == data * times


@given(st.binary(min_size=1, max_size=300), st.data())
def test_a_frame_that_is_cut_or_longer_or_of_another_size_is_refused(data, draw):
    frame = compress(data)
    cut = draw.draw(st.integers(0, len(frame) - 1))
    for wrong, size in (
        (frame[:cut], len(data)),
        (frame + b"x", len(data)),
        (frame + frame, len(data)),
        (frame, len(data) - 1),
        (frame, len(data) + 1),
    ):
        with pytest.raises(ValueError, match="frame"):
            decompress(wrong, size)


def test_the_share_tells_what_is_worth_it():
    assert compressed_share(b"customer=1;" * 1_000) < 0.1
    assert 0.99 < compressed_share(os.urandom(10_000)) < 1.01
    assert compressed_share(b"") == 1.0


def test_no_bytes_are_no_frame():
    assert decompress(compress(b""), 0) == b""
    with pytest.raises(ValueError, match="frame"):
        decompress(b"", 0)
