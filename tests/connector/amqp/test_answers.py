from amqp_messages import block_of, properties, section, string, timestamp

from pyspark_jms.amqp.answers import MessageAnswers
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription


class Link(MessageAnswers):
    dialect = ARTEMIS
    subscription = Subscription(destination=Destination.parse("queue://q"), window_bytes=1)


GOOD = properties(message_id=string("ID:7"), creation_time=timestamp(5)) + section(0x77, string("text"))
BAD = b"\x00\x53\x77\xff"
BLOCK = block_of([GOOD, BAD, GOOD])


def test_when_messages_were_sent():
    assert [Link().sent_ms(BLOCK, index) for index in range(3)] == [5, None, 5]


def test_a_dead_letter_names_the_source_and_the_message():
    letter = Link().dead_letter(BLOCK, 0, "why")
    assert (letter.message, letter.reason, letter.source, letter.message_id) == (GOOD, "why", "queue://q", "ID:7")
    assert Link().message_id(b"\0\0\1\0") == "delivery 256"
