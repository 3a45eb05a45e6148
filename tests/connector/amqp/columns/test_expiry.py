"""All messages at once, and compared with one message at a time."""

import random

import pytest
from amqp_messages import NOW_MS, Messages, block_of, text_message, timestamp

from pyspark_jms.amqp.columns.expiry import unexpired
from pyspark_jms.amqp.wire.sections import time_ms
from pyspark_jms.jms.headers import PropertiesField


def expiring(at_ms):
    return text_message(absolute_expiry_time=timestamp(at_ms))


def messages_of(block):
    return [block.message(index) for index in range(len(block))]


def test_a_message_is_left_out_from_the_millisecond_of_its_expiry_on():
    messages = [expiring(NOW_MS - 1), text_message(), expiring(NOW_MS), expiring(NOW_MS + 1), expiring(0)]
    assert messages_of(unexpired(block_of(messages), NOW_MS)) == [messages[1], *messages[3:]]


def test_a_block_without_any_is_not_copied():
    for messages in ([], [text_message()]):
        block = block_of(messages)
        assert unexpired(block, NOW_MS) is block


@pytest.mark.parametrize(("oddness", "damage"), [(0, 0), (0.03, 0.02), (0.3, 1)])
def test_messages_of_many_kinds(examples, oddness, damage):
    made, chance = Messages(11, oddness), random.Random(11)
    messages = [made.damaged() if chance.random() < damage else made.message() for _ in range(examples(400))]
    living = [
        message
        for message in messages
        if not 0 < (time_ms(message, PropertiesField.ABSOLUTE_EXPIRY_TIME) or 0) <= NOW_MS
    ]
    assert messages_of(unexpired(block_of(messages), NOW_MS)) == living
    assert len(living) < len(messages) or damage == 1
