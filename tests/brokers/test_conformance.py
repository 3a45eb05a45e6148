"""``pyspark-jms check --conformance`` finds no problem on the brokers that run here, over each of their protocols."""

import contextlib
import uuid

import pytest
from amqp_brokers import AMQP_BROKERS
from broker_rows import access_over
from broker_stage import require_rabbitmq
from commands import findings_of_check
from installed_rabbit import InstalledRabbit
from rabbit4 import Rabbit4, require_rabbit4

from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic

pytestmark = [pytest.mark.broker, pytest.mark.deep, pytest.mark.slow]  # minutes, and CI has an hour

WORKS = {
    "selector": "only the messages that match came",
    "browse": "messages are shown, come to other consumers meanwhile, and stay",
    "transactions": "an aborted one left nothing, a committed one arrived",
}
CASES = {
    "artemis": ("artemis", {"stomp": {"selector", "transactions"}, "amqp": set(WORKS)}),
    "classic": ("classic", {"stomp": set(WORKS), "amqp": set(WORKS)}),
    "broker-j": ("broker-j", {"amqp": set(WORKS)}),
    "rabbitmq 3": ("rabbitmq", {"stomp": set()}),
    "rabbitmq 4": ("rabbitmq", {"amqp": set(), "stomp": set()}),
}
"""Which features were seen to work."""


@contextlib.contextmanager
def running(name):
    if name == "rabbitmq 3":
        require_rabbitmq()
    if name == "rabbitmq 4":
        require_rabbit4("sid")
    brokers = {"artemis": EmbeddedArtemis, "classic": EmbeddedClassic, "rabbitmq 3": InstalledRabbit}
    brokers |= {"rabbitmq 4": lambda: Rabbit4("sid"), "broker-j": AMQP_BROKERS["broker-j"]}
    with brokers[name]() as broker:
        yield broker


@pytest.mark.parametrize("name", CASES)
def test_it_finds_no_problem(name, tmp_path, capsys):
    dialect, protocols = CASES[name]
    with running(name) as broker:
        for protocol, works in protocols.items():
            queue = f"scratch.{uuid.uuid4().hex[:8]}"
            if name == "rabbitmq 4":
                broker.create_queue(queue)
            access, report = access_over(broker, protocol), tmp_path / f"{protocol}.md"
            findings = findings_of_check(access, capsys, "--conformance", "--queue", queue, "--report", str(report))
            assert {feature for feature, value in WORKS.items() if findings[feature]["value"] == value} == works
            assert findings["acknowledgements"]["verdict"] == "fine"
            text = report.read_text()
            assert f"| dialect | `{dialect}` |" in text
            assert "**problem**" not in text
            assert access["brokerUrl"] not in text
