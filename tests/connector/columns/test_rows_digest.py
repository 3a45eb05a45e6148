"""The digest of messages of any protocol."""

import hashlib

import numpy as np
import pytest

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.columns.rows_digest import RowsDigest


def block(*messages):
    return MessageBlock(b"".join(messages), ends=index_of(np.cumsum([len(each) for each in messages])))


def digest(*blocks, version="v"):
    found = RowsDigest(version)
    found.add(blocks)
    return found.text()


def test_order_and_blocks_leave_no_trace():
    assert digest(block(b"a", b"bc", b"")) == digest(block(b""), block(b"bc"), block(b"a"))


@pytest.mark.parametrize("other", [(b"a",), (b"a", b"b", b"b"), (b"ab",), (b"a", b"c")])
def test_other_messages_have_another_digest(other):
    assert digest(block(b"a", b"b")) != digest(block(*other))


def test_the_version_of_its_form():
    assert digest(block(b"a"), version="a1").startswith("a1-")


def test_one_message_by_its_definition():
    lanes = hashlib.sha256(b"message").digest()
    assert digest(block(b"message")) == "v-" + hashlib.sha256(lanes + (1).to_bytes(8, "little")).hexdigest()[:32]
