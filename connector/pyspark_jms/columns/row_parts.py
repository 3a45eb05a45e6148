"""A RecordBatch of the sink → parts of some megabytes, and what is asked about all of its rows.

Which rows can be encoded (``good_rows``), whether a message is too large (``check_sizes``), and whether two attempts
encoded the same rows (``RowsDigest``). Does not know protocols.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock, index_of, part_starts, positions_of
from pyspark_jms.columns.arrays import Int64s, first_true, offsets_of
from pyspark_jms.columns.rows import Rows, WrongRows
from pyspark_jms.columns.schema import IGNORED_BY_SINK, check_columns, column_keys, is_bytes, is_text
from pyspark_jms.columns.sink_properties import property_values
from pyspark_jms.errors import JMSError, MessageTooLargeError

__all__ = ["BadRows", "RowsDigest", "blocks_of", "good_rows", "sink_columns"]

_ELEMENT_BYTES = 40
"""The approximate size of an element of a map or a stream in JSON, without its texts."""


def sink_columns(batch: pa.RecordBatch, property_columns: Sequence[str] = ()) -> dict[str, pa.Array]:
    """The columns of a batch by the sink's names. Ignored columns and columns of nulls are left out."""
    check_columns(batch.schema, property_columns)
    named = zip(column_keys(batch.schema.names, property_columns), batch.columns, strict=True)
    return {
        name: array
        for name, array in named
        if name is not None and name not in IGNORED_BY_SINK and array.null_count < len(array)
    }


def row_ends(columns: Mapping[str, pa.Array], count: int) -> Int64s:
    """The position of each row's end if the unescaped bytes of all its columns stood one after the other.

    Bytes under a null count, though they are not sent: so this is an estimate to divide batches by, and not the size
    of a message.
    """
    ends = np.zeros(count + 1, np.int64)
    for array in columns.values():
        if pa.types.is_map(array.type) or pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            ends += _entry_ends(array)
        elif is_text(array.type) or is_bytes(array.type):
            ends += offsets_of(array)
    return ends


def _entry_ends(lists: pa.Array) -> Int64s:
    """Return where the entries of a map or a list end. Typed values count with what JSON adds to each of them."""
    bounds = offsets_of(lists).astype(np.int64)
    parts = [lists.keys, lists.items] if pa.types.is_map(lists.type) else [lists.values]
    typed = pa.types.is_struct(parts[-1].type)
    ends = bounds * (_ELEMENT_BYTES if typed else 0)
    for text in parts[:-1] + (parts[-1].flatten() if typed else parts[-1:]):
        ends += offsets_of(text)[bounds]
    return ends


BUFFER_BYTES = 16 << 20
"""The size to which a block is filled; a larger row gets a block of its own. At this size the fixed cost of a block,
half a millisecond, is negligible."""

MAX_ROW_BYTES = (1 << 30) - (1 << 20)
"""The largest row, whatever the caller allows: Arrow's binary arrays have 31-bit offsets, and the escapes of STOMP 1.2
may double a header. (Artemis 2.44 with 1 GB of heap failed at 250 MB.)"""

_FIXED_BYTES = 512
"""The approximate size of a message beyond the bytes of its columns: names, numbers, the destination's type."""


def blocks_of(
    batch: pa.RecordBatch,
    messages_of: Callable[[Rows], pa.Array],
    max_message_bytes: int,
    *,
    property_columns: Sequence[str],
    first_row: int,
    numbers: Int64s | None,
) -> list[MessageBlock]:
    """Return what ``messages_of`` makes of parts of the rows, one block for each part.

    A row of more than ``MAX_ROW_BYTES`` is refused before it is copied. ``first_row`` is the number of the first row in
    the task, or ``numbers`` has each row's, when they do not follow each other.
    """
    limit = min(max_message_bytes, MAX_ROW_BYTES)
    parts = _parts_of(batch, property_columns, first_row, numbers)
    return [_block_of(rows, messages_of(rows), limit) for rows in parts]


def _parts_of(
    batch: pa.RecordBatch, property_columns: Sequence[str], first_row: int, numbers: Int64s | None
) -> Iterator[Rows]:
    """Rows of about ``BUFFER_BYTES``, at least one."""
    columns = sink_columns(batch, property_columns)
    ends = row_ends(columns, batch.num_rows)
    sizes = np.diff(ends) + _FIXED_BYTES
    bounds = [0, *part_starts(np.cumsum(sizes), BUFFER_BYTES), batch.num_rows] if batch.num_rows else []
    for start, stop in pairwise(bounds):
        part = {name: array.slice(start, stop - start) for name, array in columns.items()}
        own = None if numbers is None else numbers[start:stop]
        rows = Rows(columns=part, first=first_row + start, count=stop - start, numbers=own)
        check_sizes(rows, ends[stop : stop + 1] - ends[start], MAX_ROW_BYTES)  # only a row alone can reach it
        yield property_values(rows)


def check_sizes(rows: Rows, sizes: Int64s, limit: int) -> None:
    index = first_true(sizes > limit)
    if index is not None:
        error = MessageTooLargeError(
            f"{rows.label(index)} makes a message of {sizes[index]} bytes; the limit is {limit}.",
            "Send a smaller body, split it into several rows, or raise maxMessageBytes if the broker takes it.",
        )
        rows.fail(sizes > limit, error)


def _block_of(rows: Rows, messages: pa.Array, limit: int) -> MessageBlock:
    """The messages of these rows, a binary array, as a block. A larger one than ``limit`` is refused."""
    offsets = offsets_of(messages)
    check_sizes(rows, np.diff(offsets), limit)
    data = memoryview(messages.buffers()[2])[offsets[0] : offsets[-1]]
    return MessageBlock(data, ends=index_of((offsets[1:] - offsets[0]).astype(np.int64)))


# --- option onBadRow=drop ---------------------------------------------------------------------------

# Each round encodes the remaining rows and removes all rows that have the fault it found. So the number of rounds is
# the number of kinds of faults, not of rows. The caller encodes the good rows again. A repeated task keeps the same
# rows, because no check depends on the time.

Encode: TypeAlias = Callable[[pa.RecordBatch, Int64s], object]
"""Encodes a batch, given the number of each row in the task, or raises."""


@dataclass(frozen=True, slots=True)
class BadRows:
    """The number of rows with one kind of fault, and the error that names the first of them."""

    count: int
    first: JMSError


def good_rows(batch: pa.RecordBatch, first_row: int, encode: Encode) -> tuple[pa.RecordBatch, list[BadRows]]:
    """The rows that can be encoded, in order. An error that is not about certain rows is raised."""
    numbers = np.arange(first_row, first_row + batch.num_rows)
    bad: list[BadRows] = []
    while batch.num_rows:
        try:
            encode(batch, numbers)
        except JMSError as error:
            if not isinstance(error.__cause__, WrongRows):
                raise
            wrong = np.isin(numbers, error.__cause__.numbers)
            bad.append(BadRows(int(wrong.sum()), error))
            batch, numbers = batch.filter(pa.array(~wrong)), numbers[~wrong]
        else:
            break
    return batch, bad


# --- the digest of a task ---------------------------------------------------------------------------

# Each message's SHA-256 is read as four little-endian 64-bit numbers; these are added up over all messages, modulo
# 2**64 each. The 32 bytes of the sums and the number of messages as eight more are hashed once again, and the first 16
# bytes are shown in hexadecimal, after the version of the protocol's messages and a hyphen. So batches, buffers and the
# order of rows leave no trace, and a duplicate row counts again. What a message holds that is not the row's must be the
# same at every attempt, or be left out.

_DIGEST_VERSION = "a1"
"""Of the bytes that are compared: another way to encode rows needs another version."""
_SHOWN_BYTES = 16
_WORDS = 4  # of 64 bits, in a SHA-256
_digest_of = methodcaller("digest")


class RowsDigest:
    """``add`` what ``encode`` made of each batch; ``text`` is the digest of all of it so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._sums = np.zeros(_WORDS, np.uint64)

    def add(self, blocks: Iterable[MessageBlock]) -> None:
        for block in blocks:
            self.rows += len(block)
            ends = positions_of(block.ends).tolist()
            messages = map(memoryview(block.data).__getitem__, map(slice, [0, *block.ends[:-1]], ends))
            digests = b"".join(map(_digest_of, map(hashlib.sha256, messages)))
            self._sums += np.frombuffer(digests, "<u8").reshape(-1, _WORDS).sum(axis=0, dtype=np.uint64)

    def text(self) -> str:
        totals = self._sums.astype("<u8").tobytes() + self.rows.to_bytes(8, "little")
        return f"{_DIGEST_VERSION}-{hashlib.sha256(totals).digest()[:_SHOWN_BYTES].hex()}"
