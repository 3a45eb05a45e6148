"""What is compared is the same: raw sockets, Spark and Java send the same text and properties."""

from dataclasses import replace

import pytest
from rawstomp import RawStomp
from waiting import await_count

from bench import raw
from bench.java_side import JavaSide, JetSide
from bench.spark import message_columns

MESSAGES = 7


def wanted(job):
    return [(job.text_of(i).encode(), job.properties_of(i)) for i in range(job.messages)]


def arrived(broker, job):
    """Text and properties of what lies in the queue, in the order of the texts: two connections sent it."""
    with RawStomp(broker) as client:
        frames = client.read(job.queue, wanted=job.messages)
    names = job.properties_of(0)
    assert {frame.headers["persistent"] for frame in frames} == {str(job.persistent).lower()}
    return sorted((frame.body, {name: frame.headers[name] for name in names}) for frame in frames)


@pytest.mark.parametrize("send", [raw.send, raw.fill])
@pytest.mark.parametrize("persistent", [True, False])
def test_raw_sockets(broker, job, send, persistent):
    job = replace(job, persistent=persistent)
    send(job)
    assert arrived(broker, job) == wanted(job)


@pytest.mark.deep
@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("amqp", [True, False])
def test_java(broker, job, persistent, amqp):
    reason = JavaSide.missing()
    if reason:
        pytest.skip(reason)
    job = replace(job, persistent=persistent)
    broker.create_queue(job.queue)
    with JavaSide(broker, amqp=amqp) as java:
        java.send(job)
        assert arrived(broker, job) == wanted(job)
        for acknowledgement in ("individual", "transacted"):
            raw.send(job)
            assert java.drain(job, acknowledgement).messages == MESSAGES
            await_count(broker, job.queue, 0)


def test_spark(spark, job):
    rows = spark.range(0, MESSAGES).select(*message_columns(job)).collect()
    assert sorted((row.text.encode(), row.properties) for row in rows) == wanted(job)


@pytest.mark.deep
@pytest.mark.parametrize("guarantee", ["NONE", "AT_LEAST_ONCE", "EXACTLY_ONCE"])
def test_jet_reads_every_message(broker, job, guarantee):
    reason = JavaSide.missing()
    if reason:
        pytest.skip(reason)
    broker.create_queue(job.queue)
    with JavaSide(broker) as java, JetSide(broker) as jet:
        java.send(job)
        assert jet.read(job, guarantee, parallelism=2).messages == MESSAGES
