"""LZ4 for messages that a broker stores once more. Pure."""

import pyarrow as pa

from pyspark_jms.blocks.block import ByteArray

__all__ = ["compress", "compressed_share", "decompress"]

_LZ4 = pa.Codec("lz4")


def compress(data: ByteArray) -> bytes:
    """An LZ4 frame."""
    return bytes(_LZ4.compress(data, asbytes=True))


def compressed_share(sample: ByteArray) -> float:
    """What compression leaves of the bytes: 0.25 is a quarter. About 1, if they cannot be compressed."""
    return len(compress(sample)) / len(sample) if len(sample) else 1.0


def decompress(data: ByteArray, size: int) -> bytes:
    """``ValueError`` for bytes that are not the frame of so many bytes. Never makes many more than these."""
    if not len(data):
        raise ValueError("the bytes are not an LZ4 frame: there are none")  # a stream takes them for one of no bytes
    try:
        # As a stream: the codec's own function does not return the original size.
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "lz4") as stream:
            found = bytes(stream.read(size + 1))
    except OSError as error:
        raise ValueError(f"the bytes are not an LZ4 frame: {error}") from None
    if len(found) != size:
        raise ValueError("the LZ4 frame has another size than is stated")
    return found
