"""``pyspark-jms check --conformance`` finds no problem on the brokers that run here, over each of their protocols."""

import contextlib
import json
import uuid

import pytest
from amqp_brokers import AMQP_BROKERS
from broker_stage import require_rabbitmq
from installed_rabbit import InstalledRabbit
from rabbit4 import Rabbit4, require_rabbit4

from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic
from pyspark_jms.tools import cli

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
            url = broker.url if protocol == "stomp" else broker.amqp_url
            where = ["--broker-url", url, "--user", broker.user, "--option", f"password={broker.password}"]
            report = tmp_path / f"{protocol}.md"
            code = cli.main(["check", *where, "--conformance", "--queue", queue, "--report", str(report), "--json"])
            findings = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
            assert code == 0, {name: each for name, each in findings.items() if each["verdict"] == "problem"}
            assert {feature for feature, value in WORKS.items() if findings[feature]["value"] == value} == works
            assert findings["acknowledgements"]["verdict"] == "fine"
            text = report.read_text()
            assert f"| dialect | `{dialect}` |" in text
            assert "**problem**" not in text
            assert url not in text
