"""The AMQP messages that the benchmark sends and drains: the same text and properties as over STOMP."""

from dataclasses import replace

import pytest
from waiting import await_count

from bench import raw, raw_amqp
from bench.job import Job
from pyspark_jms.amqp.columns.one_message import BlockContext, read_message
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.jms.model import Destination

MESSAGES = 7


def row_of(job, i):
    context = BlockContext(dialect=ARTEMIS, source=Destination.parse("queue://q"), body_type="auto")
    return read_message(raw_amqp.message(job, i), context)


@pytest.mark.parametrize(("properties", "persistent"), [(5, True), (0, False), (100, True)])
def test_a_message_has_the_text_and_the_properties_of_the_job(properties, persistent):
    job = Job(
        host="h", port=1, user="u", password="p", broker_pid=0, queue="q", messages=1, per_transaction=1,
        body_bytes=300, properties=properties, persistent=persistent,
    )  # fmt: skip
    row = row_of(job, 3)
    assert (row["text"], row["body_type"], row["JMSMessageID"]) == (job.text_of(3), "text", "ID:bench:3")
    assert {name: value for name, value in row["properties"] if name != "JMSXDeliveryCount"} == job.properties_of(3)
    assert row["JMSDeliveryMode"] == (2 if persistent else 1)


@pytest.mark.parametrize("send", [raw_amqp.send, raw_amqp.fill, raw.send])
def test_a_drain_leaves_nothing(broker, job, send):
    send(job)
    await_count(broker, job.queue, MESSAGES)
    assert raw_amqp.drain(job).messages == MESSAGES
    await_count(broker, job.queue, 0)


def test_a_stomp_client_reads_the_same_messages(broker, job):
    raw_amqp.send(job)
    assert raw.drain(job).messages == MESSAGES
    await_count(broker, job.queue, 0)


def test_a_message_larger_than_a_frame_is_one_message(broker, job):
    large = replace(job, body_bytes=300_000, messages=3)
    raw_amqp.fill(large)
    await_count(broker, job.queue, 3)
    assert raw_amqp.drain(large).messages == 3
    await_count(broker, job.queue, 0)
