from amqp_messages import block_of, properties, section, string, timestamp

from pyspark_jms.amqp.answers import MessageAnswers

GOOD = properties(message_id=string("ID:7"), creation_time=timestamp(5)) + section(0x77, string("text"))
BAD = b"\x00\x53\x77\xff"
BLOCK = block_of([GOOD, BAD, GOOD])


def test_when_messages_were_sent():
    assert [MessageAnswers().sent_ms(BLOCK, index) for index in range(3)] == [5, None, 5]


def test_the_log_names_a_message_by_its_delivery():
    assert MessageAnswers().message_id(b"\0\0\1\0") == "delivery 256"
