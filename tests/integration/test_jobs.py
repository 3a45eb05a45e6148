"""jobs/*.py as users run them: ``spark-submit``, its output, and a SIGTERM in the middle."""

import json
import re
import signal
import sys
from pathlib import Path

import own_process
import pyarrow.parquet as pq
import pytest
from own_process import spark_submit, started
from rawstomp import RawStomp
from streaming import left
from waiting import await_count, await_value, wait_until

JOBS = Path(__file__).parents[2] / "jobs"
SECRET = "JOB_PASSWORD"


@pytest.fixture
def run(broker, queue, tmp_path):
    """``run(name, *arguments)``: the ended job, which read the queue once and left what ``remains``."""

    def run(name, *arguments, password=("--password-env", SECRET), remains=0, ends=0, url=broker.url):
        where = ["--broker-url", url, "--user", broker.user, *password, "--queue", queue]
        command = spark_submit(JOBS / name, *where, "--available-now", *arguments)
        variables = own_process.environment(**{SECRET: broker.password})
        ended = own_process.run(command, ends=ends, cwd=tmp_path, env=variables)
        assert left(broker, queue, remains) == remains
        return ended

    return run


def rows(folder):
    """Of every file, whether Spark counts it or not."""
    return [row for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()]


@pytest.mark.parametrize("job", sorted(path.name for path in JOBS.glob("*.py")))
def test_help_needs_neither_spark_nor_broker(job):
    reported = own_process.run([sys.executable, JOBS / job, "--help"])
    for option in ("--broker-url", "--password-file", "--password-env", "--queue", "--checkpoint", "--available-now"):
        assert option in reported.stdout
    assert " --password " not in reported.stdout


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.spark
def test_console_shows_all_that_it_takes_and_a_peek_takes_nothing(broker, queue, run):
    numbers = [f"number {n} läuft" for n in range(130)]
    with RawStomp(broker) as client:
        client.send(queue, [([("colour", "red"), ("type", "kind")], numbers[0])])
        client.send(queue, [([], text if n % 2 else text.encode()) for n, text in enumerate(numbers[1:], 1)])
    peeked = run("jms_to_console.py", "--peek", "--max-messages", 70, remains=130).stdout
    assert [text for text in numbers if text in peeked] == numbers[:70]
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    taken = run("jms_to_console.py", "--max-messages", 50).stdout
    assert [text for text in numbers if text in taken] == numbers
    assert taken.count("Batch: ") >= 3
    first, second = (next(line for line in taken.splitlines() if text in line) for text in numbers[:2])
    assert first.startswith("|0 ")
    assert "colour -> red" in first
    assert "|kind" in first
    assert second.startswith("|1 ")


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.deep
def test_parquet_holds_every_message_once(broker, queue, run, tmp_path):
    with RawStomp(broker) as client:
        client.send(queue, [([("n", n)], f"text {n}" if n % 2 else f"bytes\0{n}".encode()) for n in range(500)])
    ended = run("jms_to_parquet.py", "--output", "out", "--checkpoint", "checkpoint", "--max-messages", 200)
    told = re.fullmatch(r"messages: 500, batches: (\d+), written to out", ended.stdout.splitlines()[-1])
    assert f"= the run has ended: 500 messages in {told[1]} batches, 0 left on " in ended.stderr
    found = {
        int(dict(row["properties"])["n"]): row["text"] if row["text"] is not None else row["bytes"]
        for row in rows(tmp_path / "out")
    }
    assert len(rows(tmp_path / "out")) == 500
    assert found == {n: f"text {n}" if n % 2 else f"bytes\0{n}".encode() for n in range(500)}


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.spark
def test_orders_are_enriched_and_routed(broker, queue, run, tmp_path):
    secret = tmp_path / "password"
    secret.write_text(broker.password + "\n")
    orders = {
        "europe": {"order": 1, "country": "DE", "quantity": 3, "price": 4.5},
        "world": {"order": 2, "country": "JP", "quantity": 1, "price": 999.99},
        "review": {"order": 3, "country": "DE", "quantity": 4, "price": 250},
        "invalid": {"order": 4, "country": "DE"},
    }
    totals = {"europe": "13.50", "world": "999.99", "review": "1000.00"}
    with RawStomp(broker) as client:
        client.send(
            queue,
            [([("channel", "web: 1"), ("correlation-id", name)], json.dumps(o)) for name, o in orders.items()],
        )
        client.send(queue, [([("correlation-id", "not JSON")], b"\xff\0not JSON")])
        # As stomp.py and many others send a text: with a content-length.
        binary = json.dumps(orders["review"]).encode()
        client.send(queue, [([("correlation-id", "bytes of JSON")], binary)])
    ended = run("jms_to_jms.py", "--checkpoint", "checkpoint", password=("--password-file", secret))
    assert ended.stdout.splitlines()[-1].startswith("messages: 6, batches: ")
    with RawStomp(broker) as client:
        wanted = {"europe": 1, "world": 1, "review": 2, "invalid": 2}
        found = {name: client.read(f"{queue}.{name}", wanted=wanted[name]) for name in orders}
    for name, order in orders.items():
        headers = found[name][0].headers
        assert json.loads(found[name][0].body) == order
        assert (headers["correlation-id"], headers["channel"]) == (name, "web: 1")
        assert headers.get("total") == totals.get(name)
    assert (found["invalid"][1].headers["correlation-id"], found["invalid"][1].body) == ("not JSON", b"\xff\0not JSON")
    found["review"].sort(key=lambda message: message.headers["correlation-id"])
    assert (found["review"][0].body, found["review"][0].headers["total"]) == (binary, totals["review"])


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.spark
def test_sigterm_loses_nothing_and_costs_no_delivery_attempt(broker, queue, run, tmp_path):
    with RawStomp(broker) as client:
        client.send(queue, [([("n", n)], f"text {n}") for n in range(3000)])
    dead = broker.message_count("DLQ")
    where = ["--broker-url", broker.url, "--user", broker.user, "--password-env", SECRET, "--queue", queue]
    what = ["--output", tmp_path / "out", "--checkpoint", tmp_path / "checkpoint"]
    command = spark_submit(JOBS / "jms_to_parquet.py", *where, *what, "--max-messages", 100)
    with started(command, tmp_path / "log", **{SECRET: broker.password}) as job:
        wait_until(lambda: broker.message_count(queue) <= 2700, 120, "the third acknowledged batch")
        job.terminate()
        assert job.wait(60) == 128 + signal.SIGTERM
        wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
    rest = broker.message_count(queue)
    assert 0 < rest <= 2700
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    run("jms_to_parquet.py", *what)
    assert {int(dict(row["properties"])["n"]) for row in rows(tmp_path / "out")} == set(range(3000))
    await_count(broker, "DLQ", dead)


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.spark
def test_parquet_refuses_a_new_checkpoint_on_an_old_output(broker, queue, run, tmp_path):
    """Spark's file sink would skip the batches, and the messages would be acknowledged."""
    with RawStomp(broker) as client:
        client.send(queue, [([], f"text {n}") for n in range(30)])
    run("jms_to_parquet.py", "--output", "out", "--checkpoint", "first")
    with RawStomp(broker) as client:
        client.send(queue, [([], f"text {n}") for n in range(30, 60)])
    refused = run("jms_to_parquet.py", "--output", "out", "--checkpoint", "second", remains=30, ends=1)
    assert "out was written with another checkpoint than second" in refused.stdout
    await_count(broker, queue, 30)
    run("jms_to_parquet.py", "--output", "out", "--checkpoint", "first")
    assert sorted(row["text"] for row in rows(tmp_path / "out")) == sorted(f"text {n}" for n in range(60))
