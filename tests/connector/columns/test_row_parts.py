"""Batches of the sink: columns, parts, rows that can be encoded, and the digest of the messages."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.columns import row_parts
from pyspark_jms.columns.row_parts import RowsDigest, blocks_of, check_sizes, good_rows, row_ends, sink_columns
from pyspark_jms.columns.rows import Rows, WrongRows
from pyspark_jms.columns.schema import IGNORED_BY_SINK, TYPED_VALUE
from pyspark_jms.errors import MessageFormatError, MessageTooLargeError, UnsupportedError

TEXT_MAP = pa.map_(pa.string(), pa.string())


def test_columns_come_under_their_own_name_without_the_ignored_and_the_empty():
    batch = pa.record_batch(
        {"TEXT": pa.array(["a"]), "jmsType": pa.array([None], pa.string()), "bytes": pa.nulls(1)}
        | {name: pa.array(["x"]) for name in IGNORED_BY_SINK}
    )
    assert {name: array.to_pylist() for name, array in sink_columns(batch).items()} == {"text": ["a"]}


def test_row_ends_count_what_can_come_into_a_frame():
    columns = {
        "text": pa.array(["skipped", "ab", None, "é"])[1:],
        "bytes": pa.array([b"abc", None, b""], pa.large_binary()),
        "properties": pa.array([[("x" * 9, "y")], [("k", "v"), ("k2", None)], None, []], TEXT_MAP)[1:],
        "JMSPriority": pa.array([1, 2, 3]),
    }
    assert row_ends(columns, 3).tolist() == [9 + 7 + 1, *[17 + n for n in (2 + 3 + 4, 9, 9 + 2)]]


def test_row_ends_count_the_elements_of_maps_and_streams():
    element = {"type": "int", "value": "12"}
    columns = {
        "map": pa.array([[("x", element)], [("name", element)], None], pa.map_(pa.string(), TYPED_VALUE))[1:],
        "stream": pa.array([[element], [element, None]], pa.large_list(TYPED_VALUE)),
    }
    ends = row_ends(columns, 2)
    assert np.diff(ends).tolist() == [(40 + 4 + 3 + 2) + (40 + 3 + 2), (40 + 3 + 2) + 40]


# --- typed columns -----------------------------------------------------------------------------------


def test_a_property_has_its_name_as_the_option_spells_it():
    batch = pa.record_batch({"PRICE": pa.array([1]), "text": pa.array(["a"]), "none": pa.nulls(1)})
    assert set(sink_columns(batch, ["Price", "none"])) == {"properties.Price", "text"}


def test_every_other_column_comes_as_a_property_without_those_that_a_provider_sets():
    batch = pa.record_batch({"TEXT": ["a"], "n": [1], "none": pa.nulls(1), "JMSXDeliveryCount": [1], "sequence": [7]})
    assert set(sink_columns(batch, ("*",))) == {"text", "properties.n"}


@pytest.fixture
def blocks(monkeypatch):
    """What becomes of texts, whose messages are the texts themselves, and the rows of each part."""
    monkeypatch.setattr(row_parts, "BUFFER_BYTES", 2000)
    monkeypatch.setattr(row_parts, "MAX_ROW_BYTES", 10_000)

    def made(*texts, numbers=None, limit=1 << 20):
        parts = []

        def messages_of(rows):
            parts.append(rows)
            return rows.text("text")

        batch = pa.record_batch({"text": pa.array(("skipped", *texts), pa.string())}).slice(1)
        found = blocks_of(batch, messages_of, limit, property_columns=(), first_row=5, numbers=numbers)
        return found, parts

    return made


def test_blocks_are_cut_by_their_bytes_and_have_only_data_and_ends(blocks):
    found, parts = blocks("a" * 1000, "b", "c" * 5000, "d", "e")
    assert [(part.first, part.count) for part in parts] == [(5, 1), (6, 1), (7, 1), (8, 2)]
    assert [bytes(block.data) for block in found] == [b"a" * 1000, b"b", b"c" * 5000, b"de"]
    assert [list(block.ends) for block in found] == [[1000], [1], [5000], [1, 2]]
    assert all(block.data.contiguous and not block.ids and not len(block.heads) for block in found)


def test_rows_keep_their_numbers(blocks):
    _, (part,) = blocks("a", "b", numbers=np.array([3, 9]))
    assert part.label(1) == "Row 9 of the task"


def test_no_rows_are_no_blocks(blocks):
    assert blocks() == ([], [])


@pytest.mark.parametrize(("size", "limit"), [(10_001, 1 << 20), (9, 8)])
def test_an_error_in_the_last_block_returns_none(blocks, size, limit):
    """A row that is too large for Arrow is refused before it is copied."""
    with pytest.raises(MessageTooLargeError, match=rf"Row 6 .*\b{size} bytes.*\b{min(limit, 10_000)}\b"):
        blocks("a", "b" * size, limit=limit)


def test_all_rows_that_are_too_large_are_named():
    rows = Rows(columns={}, first=5, count=3)
    check_sizes(rows, np.array([1, 2, 3]), 3)
    with pytest.raises(MessageTooLargeError, match=r"Row 6 .*\b2 bytes.*\b1\b") as caught:
        check_sizes(rows, np.array([1, 2, 3]), 1)
    assert isinstance(caught.value.__cause__, WrongRows)
    assert caught.value.__cause__.numbers.tolist() == [6, 7]


def batch_of(*numbers):
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


class Encoder:
    """Refuses negative numbers, then odd ones, then 100 alone; ``rounds`` counts what was tried."""

    def __init__(self):
        self.rounds = 0

    def __call__(self, batch, numbers):
        self.rounds += 1
        assert len(numbers) == batch.num_rows
        found = batch["n"].to_numpy()
        rows = Rows(columns={}, first=0, count=batch.num_rows, numbers=numbers)
        rows.refuse_any(found < 0, "is negative", "")
        rows.refuse_any(found % 2 == 1, "is odd", "")
        for index in np.flatnonzero(found == 100).tolist():
            rows.refuse(index, "is 100", "")


def good(*numbers, first=0):
    encoder = Encoder()
    left, bad = good_rows(batch_of(*numbers), first, encoder)
    return left["n"].to_pylist(), [(rows.count, rows.first.fact) for rows in bad], encoder.rounds


def test_good_rows_are_kept_in_order_after_one_look():
    assert good(2, 4, 2) == ([2, 4, 2], [], 1)
    assert good() == ([], [], 0)


def test_each_fault_costs_a_round_and_names_its_first_row():
    negative, odd = (3, "Row 51 of the task is negative."), (2, "Row 50 of the task is odd.")
    assert good(1, -1, 2, -2, -3, 3, 4, first=50) == ([2, 4], [negative, odd], 3)
    assert good(100, 2, 100) == (
        [2],
        [(1, "Row 0 of the task is 100."), (1, "Row 2 of the task is 100.")],
        3,
    )
    assert good(*[-1] * 10_000) == ([], [(10_000, "Row 0 of the task is negative.")], 1)


@pytest.mark.parametrize("error", [MessageFormatError("It is."), UnsupportedError("It is."), ValueError("no")])
def test_an_error_about_no_row_in_particular_is_raised(error):
    def encode(batch, numbers):
        raise error

    with pytest.raises(type(error)) as caught:
        good_rows(batch_of(1), 0, encode)
    assert caught.value is error


def block(*messages):
    return MessageBlock(b"".join(messages), ends=index_of(np.cumsum([len(each) for each in messages])))


def digest(*blocks):
    found = RowsDigest()
    found.add(blocks)
    return found.text()


def test_order_and_blocks_leave_no_trace():
    assert digest(block(b"a", b"bc", b"")) == digest(block(b""), block(b"bc"), block(b"a"))


@pytest.mark.parametrize("other", [(b"a",), (b"a", b"b", b"b"), (b"ab",), (b"a", b"c")])
def test_other_messages_have_another_digest(other):
    assert digest(block(b"a", b"b")) != digest(block(*other))


def test_one_message_by_its_definition():
    words = hashlib.sha256(b"message").digest()
    assert digest(block(b"message")) == "a1-" + hashlib.sha256(words + (1).to_bytes(8, "little")).hexdigest()[:32]
