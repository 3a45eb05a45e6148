"""Writes and queries in a thread that did not create the Spark session: what fails in Spark, and what helps."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JJavaError
from rawstomp import RawStomp, take_texts
from streaming import access, read
from waiting import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def in_a_new_thread(call):
    """What the call returns or raises, from a thread that has done nothing before."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(120)


def write(spark, broker, queue):
    spark.range(3).selectExpr("concat('row ', id) text").write.format("jms").mode("append").options(
        **access(broker), queue=queue
    ).save()


def start(spark, broker, queue, checkpoint):
    """A query that writes messages of one queue to another."""
    orders = read(spark, broker, queue=queue).select("text")
    writer = orders.writeStream.format("jms").options(**access(broker), queue=f"{queue}.copies")
    return writer.option("checkpointLocation", str(checkpoint)).start()


def test_spark_does_not_find_the_sink_off_the_main_thread(spark, broker, queue, tmp_path):
    """If this fails, Spark has mended it: take the workaround out of README.md and docs/errors.md."""
    for call in (lambda: write(spark, broker, queue), lambda: start(spark, broker, queue, tmp_path)):
        with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
            in_a_new_thread(call)


def test_reading_works_in_any_thread(spark, broker, queue):
    with RawStomp(broker) as client:
        client.send(queue, [([], "there")])
    rows = in_a_new_thread(lambda: spark.read.format("jms").options(**access(broker), queue=queue).load().collect())
    assert [row.text for row in rows] == ["there"]


@pytest.mark.deep
def test_a_pool_of_threads_that_each_make_the_session_theirs(spark, broker, queue, tmp_path):
    """The lines of README.md. Each thread needs them once, however much it writes afterwards."""
    barrier = threading.Barrier(2)

    def use(number):
        barrier.wait(30)  # both threads of the pool have one
        for _ in range(2):
            write(spark, broker, f"{queue}.{number}")
        return start(spark, broker, f"{queue}.{number}", tmp_path / str(number))

    with ThreadPoolExecutor(2, initializer=lambda: spark.createDataFrame([], "ready int")) as pool:
        queries = list(pool.map(use, range(2)))
    for number, query in enumerate(queries):
        copies = f"{queue}.{number}.copies"
        wait_until(lambda name=copies: broker.message_count(name) == 6, what="the copies")
        query.stop()
        assert take_texts(broker, copies) == sorted([f"row {n}" for n in range(3)] * 2)
