"""``pyspark-jms check --queue`` tells beforehand what a query then finds: the same messages come and stay away."""

import json
import os
import subprocess
import sys

import pytest
from streaming import left, read, stopping
from waiting import await_value, wait_until

from pyspark_jms.testing import EmbeddedArtemis, JmsClient, User

SECRET = "CHECK_PASSWORD"


def check(broker, queue, *options, user=None, password=None):
    """The command as users run it: its exit code and its findings by name."""
    command = [sys.executable, "-m", "pyspark_jms", "check", "--broker-url", broker.url, "--json"]
    command += ["--user", user or broker.user, "--password-env", SECRET, "--queue", queue, *options]
    environment = os.environ | {SECRET: password or broker.password}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert ended.stderr == ""
    return ended.returncode, {finding["name"]: finding for finding in json.loads(ended.stdout)["findings"]}


def send_mixed(broker, queue):
    with JmsClient(broker) as java:
        for body in ("text", b"bytes", {"a": 1}, [7], [7, "x"], broker.jvm.java.util.HashMap(), None):
            java.send(queue, body)


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
def test_the_check_and_the_query_agree(spark, broker, queue, tmp_path):
    send_mixed(broker, queue)
    code, reported = check(broker, queue, "--receive")
    assert code == 1
    assert reported["body types"]["details"]["bodyTypes"] == {
        "text": 1, "bytes": 1, "map": 1, "stream": 2, "object": 1, "message": 1
    }  # fmt: skip
    assert reported["received"]["details"]["received"] == 6
    assert reported["not received"]["details"]["bodyTypes"] == {"stream": 1}
    await_value(lambda: (broker.message_count(queue), broker.delivery_counts(queue)), (7, [0] * 7))

    frame = read(spark, broker, queue=queue)
    with stopping(
        frame.writeStream.format("memory").queryName("mixed").option("checkpointLocation", str(tmp_path)).start()
    ):
        wait_until(lambda: left(broker, queue, 1, 1) == 1, what="acknowledging what came")
        _, reported = check(broker, queue)
        assert reported["queue"]["details"] == {"messages": 1, "delivering": 1, "consumers": 1, "scheduled": 0}
        assert reported["in delivery"]["details"] == {"streamsAtStompReaders": 1}
    assert spark.table("mixed").count() == 6
    wait_until(lambda: broker.delivering_count(queue) == 0, what="the end of the subscription")
    with JmsClient(broker) as java:
        assert [value.value for value in java.receive(queue).body] == [7]


@pytest.mark.deep
@pytest.mark.broker
def test_a_user_who_may_not_manage():
    users = [User("worker", "pw", permissions={"send", "consume", "browse"})]
    with EmbeddedArtemis(users=users) as broker:
        broker.create_queue("orders")
        broker.create_queue("pyspark-jms.check")
        send_mixed(broker, "orders")
        code, reported = check(broker, "orders", user="worker", password="pw")
        assert code == 0
        assert reported["management"]["verdict"] == reported["queue"]["verdict"] == "note"
        assert reported["management"]["value"] == f"User worker may not use the management of {broker.url}."
        await_value(lambda: broker.delivery_counts("orders"), [0] * 7)
