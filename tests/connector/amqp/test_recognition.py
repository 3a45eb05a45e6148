from amqp_messages import annotations, block_of, int_, list_, properties, section, string, text_message, timestamp, uint

from pyspark_jms.amqp.dialects import ARTEMIS, RABBITMQ
from pyspark_jms.amqp.recognition import RECOGNITION, MessageAnswers, _may_be_redelivered, recognition_of

TRUE, FALSE, NULL = b"\x41", b"\x42", b"\x40"


def counted(count, body):
    return section(0x70, list_(TRUE, NULL, NULL, NULL, uint(count))) + body


def test_a_message_is_known_by_its_content_with_its_id():
    body = properties(message_id=string("ID:7")) + section(0x77, string("x"))
    other = properties(message_id=string("ID:7")) + section(0x77, string("y"))
    renamed = properties(message_id=string("ID:8")) + section(0x77, string("x"))
    block = block_of([counted(0, body), counted(1, body), counted(0, other), counted(0, renamed)])
    first, again, *different = (RECOGNITION.identity(block, index) for index in range(4))
    assert first == again
    assert len({first, *different}) == 3
    assert not RECOGNITION.by_broker


def test_a_count_in_the_annotations_is_not_content_on_rabbitmq():
    """A quorum queue adds it at the first redelivery."""
    body = properties(message_id=string("ID:7")) + section(0x77, string("x"))
    block = block_of([counted(0, body), counted(1, annotations(acquired_count=int_(1)) + body)])
    for dialect, is_same in ((RABBITMQ, True), (ARTEMIS, False)):
        found = recognition_of(dialect)
        assert (found.identity(block, 0) == found.identity(block, 1)) is is_same
        assert (found.fingerprint(block, 0) == found.fingerprint(block, 1)) is is_same


def test_an_equal_message_is_the_same_one_if_it_has_an_id():
    body = section(0x77, string("x"))
    ids = [string("ID:7"), string(""), b"\x40"]
    block = block_of([*(properties(message_id=each) + body for each in ids), body])
    assert [RECOGNITION.is_named(block, index) for index in range(4)] == [True, False, False, False]


def test_without_an_id_the_content_is_the_identity():
    body = section(0x77, string("x"))
    block = block_of([counted(0, body), counted(2, body), section(0x77, string("y"))])
    first, again, different = (RECOGNITION.identity(block, index) for index in range(3))
    assert first == again != different


def test_bytes_that_are_no_message_have_an_identity_too():
    block = block_of([b"\xff\xff", b"\xff\xff"])
    assert RECOGNITION.identity(block, 0) == RECOGNITION.identity(block, 1)


def test_redelivered_messages_are_counted():
    body = section(0x77, string("x"))
    wide = section(0x70, list_(TRUE, NULL, NULL, NULL, uint(2), wide=True)) + body
    block = block_of([counted(0, body), counted(3, body), text_message(), body, wide, b"\xff", b""])
    redelivered = MessageAnswers().redelivered
    assert redelivered(block) == 2
    assert redelivered(block_of([b""])) == redelivered(block_of([])) == 0


def test_usual_headers_are_not_read_one_by_one():
    body = section(0x77, string("x"))
    usual = [section(0x70, list_(TRUE, FALSE, wide=wide)) + body for wide in (False, True)]
    assert _may_be_redelivered(block_of([*usual, body, counted(1, body)])).tolist() == [3]


GOOD = properties(message_id=string("ID:7"), creation_time=timestamp(5)) + section(0x77, string("text"))
BAD = b"\x00\x53\x77\xff"
BLOCK = block_of([GOOD, BAD, GOOD])


def test_when_messages_were_sent():
    assert [MessageAnswers().sent_ms(BLOCK, index) for index in range(3)] == [5, None, 5]


def test_the_log_names_a_message_by_its_delivery():
    assert MessageAnswers().message_id(b"\0\0\1\0") == "delivery 256"
