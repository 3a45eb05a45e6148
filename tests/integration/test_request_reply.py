"""jobs/jms_request_reply.py under ``spark-submit``, called by a Java client with temporary and fixed reply queues."""

import json
import signal
from pathlib import Path

import own_process
import pytest
from own_process import spark_submit, started
from rawstomp import RawStomp
from streaming import left
from waiting import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]

JOB = Path(__file__).parents[2] / "jobs" / "jms_request_reply.py"
SECRET = "JOB_PASSWORD"
REFUSED = {"error": "a request is JSON with quantity and price"}


@pytest.fixture
def command(broker, queue, tmp_path):
    where = ["--broker-url", broker.url, "--user", broker.user, "--password-env", SECRET, "--queue", queue]
    return spark_submit(JOB, *where, "--checkpoint", tmp_path / "checkpoint")


@pytest.fixture
def answer(broker, command):
    """``answer(*options)``: the job has answered what was there, and ended."""

    def answer(*options):
        variables = own_process.environment(**{SECRET: broker.password})
        own_process.run([*command, "--available-now", *options], env=variables)

    return answer


def request(quantity, price):
    return json.dumps({"quantity": quantity, "price": price})


def test_a_java_requester_gets_its_answers(broker, queue, java, answer):
    own, fixed, nobody = java.temporary_queue(), f"queue://{queue}.replies", f"queue://{queue}.answers"
    java.send(queue, request(3, 4.5), reply_to=own, correlation_id="at my own queue: 1")
    java.send(queue, request(2, 0.01), reply_to=own)
    java.send(queue, request(1000, 999999.99), reply_to=fixed, correlation_id="ID:like a message id")
    java.send(queue, "no request", reply_to=fixed, correlation_id="")
    java.send(queue, b"\xff\0", reply_to=fixed, correlation_id="bytes")
    java.send(queue, request(5, 1).encode(), reply_to=fixed, correlation_id="bytes of JSON")
    java.send(queue, request(1, 1), correlation_id="nobody waits")
    answer()
    assert left(broker, queue) == 0
    got = {name: [java.receive(name) for _ in range(count)] for name, count in ((own, 2), (fixed, 4), (nobody, 1))}
    reported = {
        name: sorted((message.correlation_id or "", json.loads(message.body).popitem()) for message in messages)
        for name, messages in got.items()
    }
    assert reported == {
        own: [("", ("total", 0.02)), ("at my own queue: 1", ("total", 13.5))],
        fixed: [
            ("", REFUSED.copy().popitem()),
            ("ID:like a message id", ("total", 999999990.0)),
            ("bytes", REFUSED.copy().popitem()),
            ("bytes of JSON", ("total", 5.0)),
        ],
        nobody: [("nobody waits", ("total", 1.0))],
    }
    assert all(message.expiration > message.timestamp for messages in got.values() for message in messages)


@pytest.mark.slow
def test_odd_reply_addresses_do_not_stop_the_service(broker, queue, answer):
    odd = ["queue://", "topic://", "", "queue://a\0b", "topic://\0", "a\nb", "queue://all.*", "queue://#", "no way"]
    bare = [f"{queue}.bare", f"http://{queue}/$x:1"]  # names of queues, if strange ones
    with RawStomp(broker) as client:
        client.send(
            queue, [([("reply-to", to), ("correlation-id", str(n))], request(1, n)) for n, to in enumerate(odd)]
        )
        client.send(queue, [([("reply-to", to), ("correlation-id", to)], request(1, 1)) for to in bare])
    answer("--answers", f"{queue}.nobody")
    with RawStomp(broker) as client:
        kept = client.read(f"{queue}.nobody", wanted=len(odd))
        answers = [client.read(name, wanted=1)[0] for name in bare]
    assert sorted(message.headers["correlation-id"] for message in kept) == [str(n) for n in range(len(odd))]
    assert [(message.headers["correlation-id"], message.body) for message in answers] == [
        (name, b'{"total":1.00}') for name in bare
    ]


@pytest.mark.slow
def test_a_running_service_answers_while_it_is_asked(broker, queue, java, command, tmp_path):
    own = java.temporary_queue()
    with started(command, tmp_path / "log", **{SECRET: broker.password}) as job:
        for n in range(5):
            java.send(queue, request(n, 2), reply_to=own, correlation_id=str(n))
            message = java.receive(own, 240 if n == 0 else 60)  # the first answer waits for Spark's start
            assert message is not None, (tmp_path / "log").read_text()[-4000:]
            assert (message.correlation_id, json.loads(message.body)) == (str(n), {"total": n * 2.0})
        job.terminate()
        assert job.wait(60) == 128 + signal.SIGTERM
        wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
