import io

from pyspark_jms.blocks.block import MessageBlock, block_of
from pyspark_jms.blocks.dead_letter import DeadLetter, OversizedMessage
from pyspark_jms.jms.model import Destination


def test_counts_and_keeps_its_body_where_it_is_told_to():
    for body in (io.BytesIO(), None):
        message = OversizedMessage(b"MESSAGE\nmessage-id:1", b"1", body)
        message.add(memoryview(b"secret "))
        message.add(memoryview(b"text"))
        assert message.size == 11
        assert body is None or body.getvalue() == b"secret text"
        assert "secret" not in repr(message)


def test_a_dead_letter_has_one_message_of_a_block_with_its_id():
    three = block_of(b"a", b"secret", b"c")
    block = MessageBlock(three.data, ends=three.ends, ids=[b"1", None, b"3"])
    letter = DeadLetter.of(block, 1, "why", Destination.parse("queue://q"))
    assert (letter.reason, letter.source) == ("why", "queue://q")
    assert (len(letter.message), letter.message.message(0), letter.message.ids) == (1, b"secret", [None])
    assert DeadLetter.of(block, 2, "why", "q").message.ids == [b"3"]
    assert "secret" not in repr(letter)
