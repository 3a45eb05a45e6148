from pyspark_jms.blocks.block import MessageBlock, block_of
from pyspark_jms.blocks.dead_letter import DeadLetter
from pyspark_jms.jms.model import Destination


def test_a_dead_letter_has_one_message_of_a_block_with_its_id():
    three = block_of(b"a", b"secret", b"c")
    block = MessageBlock(three.data, ends=three.ends, ids=[b"1", None, b"3"])
    letter = DeadLetter.of(block, 1, "why", Destination.parse("queue://q"))
    assert (letter.reason, letter.source) == ("why", "queue://q")
    assert (len(letter.message), letter.message.message(0), letter.message.ids) == (1, b"secret", [None])
    assert DeadLetter.of(block, 2, "why", "q").message.ids == [b"3"]
    assert "secret" not in repr(letter)
