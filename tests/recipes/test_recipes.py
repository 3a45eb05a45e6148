"""Each recipe runs as its page says, and prints what the page shows."""

import os
import re
import shutil
import sys
from pathlib import Path

import own_process
import pages
import pytest
from rawstomp import RawStomp
from session import kill_session
from waiting import await_count, wait_until

from pyspark_jms.tools.testing.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RECIPES = Path(__file__).parent


def own(stdout, lines):
    """The last lines: Spark prints before them where it resolves packages."""
    return "".join(f"{line}\n" for line in stdout.splitlines()[-lines:])


def prints(run, page, program, *arguments, **options):
    expected = pages.output(page, program)
    assert own(run(program, *arguments, **options), len(expected.splitlines())) == expected


@pytest.mark.parametrize(("body", "queue"), [("json", "orders.dead"), ("xml", "orders.xml.dead")])
def test_dead_letters(run, recipes_broker, body, queue):
    empty(recipes_broker, queue)
    prints(run, "bad-messages.md", f"{body}_dead_letters.py")


@pytest.mark.parametrize(
    ("body", "queue", "order_5"), [("json", "orders.dead", "ada"), ("xml", "orders.xml.dead", "Zoë")]
)
def test_dead_letters_after_a_kill(run, start, recipes_broker, tmp_path, body, queue, order_5):
    """Killed after both writes of its batch: nothing is lost, and no row and no dead letter is duplicated."""
    empty(recipes_broker, queue)
    killed = start(sys.executable, RECIPES / f"{body}_dead_letters.py")
    wait_until(lambda: waiting(recipes_broker, queue) == 3, 400, "the first batch's dead letters")
    kill_session(killed.pid)
    assert (tmp_path / "data/orders/batch=0/_SUCCESS").exists()
    again = run(f"{body}_dead_letters.py")  # sends the examples again, too
    assert again.count("order 1: ada 12.50") == again.count(f"order 5: {order_5} 7.25") == 2, again
    assert again.count("dead letter: ") == waiting(recipes_broker, queue) == 6, again


def empty(broker, queue):
    if broker.has_queue(queue):
        broker.purge(queue)


def waiting(broker, queue):
    return broker.message_count(queue) if broker.has_queue(queue) else 0


def test_late_rows(run):
    prints(run, "recipes/several-queues.md", "late_rows.py")


def test_several_queues(run):
    prints(run, "recipes/several-queues.md", "several_queues.py")


def test_blue_green(run):
    prints(run, "upgrading.md", "blue_green.py")


def test_request_reply(run, start, recipes_broker):
    start(sys.executable, RECIPES / "request_reply.py")
    wait_until(lambda: recipes_broker.has_queue("prices"), 400, "the service")
    prints(run, "recipes/several-queues.md", "request_reply_ask.py")


def test_spark_connect(run, start, tmp_path):
    (script,) = [name for name in pages.files("batch-and-sql.md") if name.endswith(".sh")]
    log = tmp_path / "server"
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.connect.grpc.binding.port {(port := free_port('127.0.0.1'))}\n"
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    start("bash", pages.ROOT / script, log="server", PATH=path, SPARK_CONF_DIR=str(tmp_path))
    wait_until(lambda: "Spark Connect server started" in log.read_text(), 400, "the server")
    prints(run, "batch-and-sql.md", "connect_client.py", SPARK_REMOTE=f"sc://localhost:{port}")


@pytest.fixture
def pipeline(environment, recipes_broker, tmp_path):
    """``pipeline()``: one run of the pipeline."""
    folder = Path(shutil.copytree(RECIPES / "pipeline", tmp_path / "pipeline"))
    spec = folder / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/tmp/orders-pipeline", str(tmp_path)))
    page = (pages.FOLDER / "recipes/several-queues.md").read_text()
    (command,) = re.findall(r"^spark-pipelines .*$", page, re.MULTILINE)
    program, *arguments = command.split()
    password = tmp_path / "password"
    password.write_text(recipes_broker.password)

    def pipeline():
        variables = environment(JMS_PASSWORD_FILE=str(password), SPARK_TESTING="1")  # a free port instead of 15002
        words = [Path(sys.executable).with_name(program), *arguments]
        ended = own_process.run(words, seconds=550, cwd=folder, env=variables)
        assert "Run is COMPLETED." in ended.stdout + ended.stderr

    return pipeline


@pytest.mark.timeout(1200)
def test_pipelines(pipeline, recipes_broker):
    def run_with(*orders):
        with RawStomp(recipes_broker) as client:
            client.send("pipeline.orders", [([], order) for order in orders])
        pipeline()
        await_count(recipes_broker, "pipeline.orders", 0)
        with RawStomp(recipes_broker) as client:
            return sorted(f"{message.body.decode()}\n" for message in client.read("pipeline.large"))

    large = run_with('{"id": 1, "amount": 250.00}', '{"id": 2, "amount": 19.99}', '{"id": 3, "amount": 100.00}')
    assert "".join(large) == pages.output("recipes/several-queues.md", "pipeline.large")
    assert run_with('{"id": 4, "amount": 500.00}') == ['{"id":4,"amount":500.00}\n']
