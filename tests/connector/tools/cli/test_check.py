import json
import sys

import pytest
from waiting import await_count

from pyspark_jms.testing import JmsClient
from pyspark_jms.tools import cli


def test_check_prints_a_table_or_json_and_returns_0_or_1(broker, queue, capsys, monkeypatch):
    monkeypatch.setenv("CHECK_PASSWORD", broker.password)
    command = ["check", "--broker-url", broker.url, "--user", broker.user, "--password-env", "CHECK_PASSWORD"]
    assert cli.main([*command, "--queue", queue, "--scratch-queue", f"{queue}.scratch"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert "  broker                ActiveMQ-Artemis/" in output.out
    assert broker.password not in output.out.replace("as artemis", "").replace("dialect artemis", "")
    with JmsClient(broker) as java:
        java.send(queue, {"a": 1})
    assert cli.main([*command, "--queue", queue, "--scratch-queue", f"{queue}.scratch", "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert output["ok"] is False
    (bodies,) = [finding for finding in output["findings"] if finding["name"] == "body types"]
    assert bodies["details"] == {"seen": 1, "bodyTypes": {"map": 1}}
    await_count(broker, queue, 1)
    assert broker.has_queue(f"{queue}.scratch")
    await_count(broker, f"{queue}.scratch", 0)


def test_check_refuses_wrong_options_before_it_connects(capsys):
    command = ["check", "--broker-url", "stomp://127.0.0.1:1"]
    assert cli.main([*command, "--option", "sslCafile=ca.pem"]) == 1
    assert "[JMS_OPTION_CONFLICT] Option sslCaFile " in capsys.readouterr().err
    assert cli.main([*command, "--option", "nope=1"]) == 1
    assert "[JMS_UNKNOWN_OPTION]" in capsys.readouterr().err
    assert cli.main(["check", "--broker-url", "tcp://x"]) == 1
    assert "[JMS_INVALID_OPTION] --broker-url" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--conformance", "--queue", "q", "--receive"], "[JMS_OPTION_CONFLICT] --conformance is given with --receive"),
        (["--report", "x.md"], "[JMS_OPTION_CONFLICT] --report is given without --conformance."),
        (
            ["--conformance", "--queue", "q", "--report", "/dev/null/x.md"],
            "[JMS_INVALID_OPTION] --report /dev/null/x.md cannot",
        ),
    ],
)
def test_check_refuses_wrong_options_of_conformance_before_it_connects(arguments, error, capsys):
    assert cli.main(["check", "--broker-url", "stomp://127.0.0.1:1", *arguments]) == 1
    assert error in capsys.readouterr().err


def test_check_of_an_unreachable_broker(capsys, monkeypatch):
    """And the Python that Spark would start is named if it lacks the package."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert cli.main(["check", "--broker-url", "stomp://127.0.0.1:1"]) == 1
    assert capsys.readouterr().out.startswith("! connection            [JMS_BROKER_UNREACHABLE] stomp://127.0.0.1:1 ")
    assert len(_findings(capsys)) == 1
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable + ".missing")
    assert sys.executable + ".missing, which cannot import pyspark_jms" in _findings(capsys)[-1]["value"]


def _findings(capsys):
    assert cli.main(["check", "--broker-url", "stomp://127.0.0.1:1", "--json"]) == 1
    return json.loads(capsys.readouterr().out)["findings"]
