"""The command is run as a user runs it: a process, its output, its exit code."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from pyspark_jms import cli


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
        r"stomp://(127\.0\.0\.1:\d+) amqp://\1 user=artemis password=artemis"
        r" \(ready in .* s, data in .*; Ctrl-C stops it\)\n",
        line,
    )
    assert _answer(line, "artemis").startswith("CONNECTED")
    process.terminate()
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0
    assert (tmp_path / "journal").is_dir()


@pytest.mark.broker
def test_broker_runs_until_ctrl_c_and_prints_only_the_default_password(run_broker):
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
    assert errors.startswith("[JMS_EMBEDDED_BROKER]")


def test_an_error_is_one_message_and_code_1(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.main(["broker", "--dir", str(tmp_path / "data")]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("[JMS_EMBEDDED_BROKER]")
    assert f"JAVA_HOME={tmp_path}" in output.err


def test_tls_options_without_a_certificate(capsys):
    assert cli.main(["broker", "--tls-key", "key.pem"]) == 1
    assert "--tls-cert." in capsys.readouterr().err
