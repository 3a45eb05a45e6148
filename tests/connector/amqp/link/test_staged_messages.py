import pytest

from pyspark_jms.amqp.link.staged_messages import block_message, body_of, seen_block, stream_of, token_message
from pyspark_jms.amqp.wire.sections import APPLICATION_PROPERTIES, HEADER, PROPERTIES, sections
from pyspark_jms.amqp.wire.values import decode
from pyspark_jms.blocks.block import MessageBlock, index_of, positions_of
from pyspark_jms.blocks.staged import pack
from pyspark_jms.errors import DataLossError


def block(count):
    import numpy as np

    messages = MessageBlock(b"xy" * count, ends=index_of(2 * (np.arange(count) + 1)))
    return pack(messages, 0, count, source="queue://q", dialect="artemis")


def message_of(packed, **facts):
    return b"".join(block_message(packed, **facts))


def test_a_block_states_its_stream_and_numbers():
    message = message_of(block(3), stream="s", first=2**40, count=3, now_ms=7)
    seen = seen_block(message)
    assert (seen.stream, seen.first, seen.end) == ("s", 2**40, 2**40 + 3)
    assert (seen.block.source, list(positions_of(seen.block.messages.ends))) == ("queue://q", [2, 4, 6])
    assert stream_of(message[:-20]) == "s", "the data is not read"


@pytest.mark.parametrize(
    ("how", "properties"),
    [({}, None), ({"marked": True}, {"kind": "token"}), ({"duplicate_id": "x"}, {"_AMQ_DUPL_ID": "x"})],
)
def test_a_token_is_its_body(how, properties):
    message = token_message(b"body", **how)
    assert body_of(message) == b"body"
    assert stream_of(message) is None
    found = {each.code: decode(message, each.value, each.end)[0] for each in sections(message)}
    assert found.get(APPLICATION_PROPERTIES) == properties


@pytest.mark.parametrize("message", [b"", b"no message", b"\x00\x53\x77\x40"])
def test_a_message_that_is_no_token_has_no_body(message):
    assert body_of(message) == b""


@pytest.mark.parametrize("message", [token_message(b"t"), message_of(block(1), stream="s", first=0, count=1, now_ms=1)])
def test_they_are_durable_and_expire_in_the_year_9999(message):
    found = {each.code: decode(message, each.value, each.end)[0] for each in sections(message)}
    assert found[HEADER] == [True]
    assert found[PROPERTIES][8] == 253_402_300_799_000


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"no message",
        token_message(b"t"),
        message_of((b"not a ", b"block"), stream="s", first=0, count=1, now_ms=1),
        message_of(block(3), stream="s", first=0, count=2, now_ms=1),
    ],
)
def test_a_message_that_is_no_block_is_named(message):
    with pytest.raises(DataLossError, match="is not a staged block"):
        seen_block(message)
