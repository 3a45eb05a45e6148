from array import array

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.recognition import Recognition, other_content
from pyspark_jms.errors import OtherBrokerError


def test_says_what_happened_and_what_to_do():
    error = other_content()
    assert isinstance(error, OtherBrokerError)
    assert str(error).startswith("[JMS_OTHER_BROKER] ")
    assert "brokerUrl" in error.remedy


def test_is_two_questions_about_a_message():
    known = Recognition(
        identity=lambda block, index: block.ids[index][2:], fingerprint=lambda block, index: block.message(index)
    )
    block = MessageBlock(b"ab", ends=array("q", [1, 2]), ids=[b"1,6", b"1,7"])
    assert (known.identity(block, 1), known.fingerprint(block, 1)) == (b"7", b"b")
