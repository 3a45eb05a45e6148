"""The command is run as a user runs it: a process, its output, its exit code."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from pyspark_jms import __version__, cli
from pyspark_jms.testing import JmsClient


@pytest.fixture
def run_broker(tmp_path):
    """``run_broker(*options, **environment)``: a started process and the line it printed."""
    started = []

    def run_broker(*options, **environment):
        command = [sys.executable, "-m", "pyspark_jms.cli", "broker", "--dir", str(tmp_path), "--port", "0"]
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        started.append(process)
        return process, process.stdout.readline()

    yield run_broker
    for process in started:
        process.kill()
        process.communicate()


def _answer(line, passcode):
    host, port = re.search(r"stomp://([\d.]+):(\d+)", line).groups()
    with socket.create_connection((host, int(port)), timeout=10) as link:
        login = f"login:artemis\npasscode:{passcode}"
        link.sendall(f"CONNECT\naccept-version:1.2\nhost:x\n{login}\n\n\0".encode())
        return link.recv(4096).decode()


@pytest.mark.broker
def test_broker_runs_until_sigterm(run_broker, tmp_path):
    process, line = run_broker()
    assert re.fullmatch(
        r"stomp://127\.0\.0\.1:\d+ user=artemis password=artemis \(ready in .* s, data in .*; Ctrl-C stops it\)\n",
        line,
    )
    assert _answer(line, "artemis").startswith("CONNECTED")
    process.terminate()
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0
    assert (tmp_path / "journal").is_dir()


@pytest.mark.broker
def test_broker_runs_until_ctrl_c_and_does_not_print_a_password_of_ones_own(run_broker):
    process, line = run_broker(JMS_BROKER_PASSWORD="sesame")
    assert "password=" not in line
    assert "sesame" not in line
    assert _answer(line, "artemis").startswith("ERROR")
    assert _answer(line, "sesame").startswith("CONNECTED")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0


@pytest.mark.broker
def test_a_broker_that_ends_by_itself_is_an_error(run_broker):
    process, _ = run_broker("--heap", "64m")
    (java,) = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(java), signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert errors.startswith("[JMS_EMBEDDED_BROKER] The broker ended by itself.")


def test_errors_are_one_message_and_code_1(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.main(["broker", "--dir", str(tmp_path / "data")]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("[JMS_EMBEDDED_BROKER] No java found in JAVA_HOME=")


def test_tls_options_without_a_certificate(capsys):
    assert cli.main(["broker", "--tls-key", "key.pem"]) == 1
    assert "Give --tls-cert." in capsys.readouterr().err


@pytest.mark.broker
def test_check_is_a_table_or_json_and_0_or_1(broker, queue, capsys, monkeypatch):
    monkeypatch.setenv("CHECK_PASSWORD", broker.password)
    command = ["check", "--broker-url", broker.url, "--user", broker.user, "--password-env", "CHECK_PASSWORD"]
    assert cli.main([*command, "--queue", queue, "--scratch-queue", f"{queue}.scratch"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "  broker                ActiveMQ-Artemis/" in told.out
    assert broker.password not in told.out.replace("as artemis", "").replace("dialect artemis", "")
    with JmsClient(broker) as java:
        java.send(queue, {"a": 1})
    assert cli.main([*command, "--queue", queue, "--scratch-queue", f"{queue}.scratch", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    (bodies,) = [finding for finding in told["findings"] if finding["name"] == "body types"]
    assert bodies["figures"] == {"seen": 1, "bodyTypes": {"map": 1}}
    assert broker.message_count(queue) == 1
    assert broker.has_queue(f"{queue}.scratch")
    assert broker.message_count(f"{queue}.scratch") == 0


def test_check_says_what_is_wrong_before_it_connects(capsys):
    command = ["check", "--broker-url", "stomp://127.0.0.1:1"]
    assert cli.main([*command, "--option", "sslCafile=ca.pem"]) == 1
    assert "[JMS_OPTION_CONFLICT] Option sslCaFile is given, and no address" in capsys.readouterr().err
    assert cli.main([*command, "--option", "nope=1"]) == 1
    assert "[JMS_UNKNOWN_OPTION]" in capsys.readouterr().err
    assert cli.main(["check", "--broker-url", "tcp://x"]) == 1
    assert "[JMS_INVALID_OPTION] Option brokerUrl" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*command, "--option", "nope"])
    assert "'nope' is not NAME=VALUE" in capsys.readouterr().err


def test_check_of_a_broker_that_is_not_there(capsys):
    assert cli.main(["check", "--broker-url", "stomp://127.0.0.1:1"]) == 1
    assert capsys.readouterr().out.startswith("! connection            stomp://127.0.0.1:1 cannot be connected")


def test_unsubscribe_says_what_is_wrong_before_it_connects(capsys):
    command = ["unsubscribe", "--broker-url", "stomp://127.0.0.1:1", "--topic", "news", "--subscription-name", "s"]
    assert cli.main([*command, "--option", "broker=classic"]) == 1
    assert "[JMS_UNSUPPORTED] classic lets one connection" in capsys.readouterr().err
    assert cli.main(command) == 1
    assert "[JMS_BROKER_UNREACHABLE]" in capsys.readouterr().err


def test_help_and_version(capsys):
    for arguments in (["--help"], ["broker", "--help"], ["check", "--help"], ["unsubscribe", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 0
    told = capsys.readouterr().out
    assert "run a real Artemis broker on this machine" in told
    assert "folder of messages" in told
    assert "look at this queue, too" in told
    assert "that nobody reads fills the broker" in told
    assert " --password " not in told.partition("usage: pyspark-jms check")[2]
    assert f"pyspark-jms {__version__}\n" in told


def test_no_command(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
