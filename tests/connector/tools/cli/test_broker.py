"""The command is run as a user runs it: a process, its output, its exit code."""

import os
import re
import signal
import socket
import subprocess

import pytest
from commands import program

from pyspark_jms.tools import cli
from pyspark_jms.tools.testing.ports import free_port, is_free


@pytest.fixture
def run_broker(tmp_path):
    """``run_broker(*options, **environment)``: a started process and the line it printed."""
    started = []

    def run_broker(*options, **environment):
        process = subprocess.Popen(
            program("broker", "--dir", str(tmp_path), "--port", "0", *options),
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


_AMQP = bytes.fromhex("414d515003010000")
"""The AMQP header that asks for SASL. A port that accepts AMQP answers with the same bytes."""


def _speaks_amqp(host, port):
    with socket.create_connection((host, port), timeout=10) as link:
        link.sendall(_AMQP)
        return link.recv(8) == _AMQP


@pytest.mark.broker
def test_the_default_is_a_port_for_each_protocol_and_a_second_broker_says_that_the_amqp_port_is_in_use(
    run_broker, tmp_path
):
    host = "127.0.61.13"  # an address of the loopback interface on which no other program listens by its name
    if not is_free(host, 5672):
        pytest.skip("another program listens on port 5672 of all addresses")
    ports = free_port(host), free_port(host)
    _, line = run_broker("--host", host, "--port", str(ports[0]))
    assert line.startswith(f"stomp://{host}:{ports[0]} amqp://{host}:5672 user=artemis")
    assert _speaks_amqp(host, 5672)
    assert _speaks_amqp(host, ports[0])

    second, line = run_broker("--host", host, "--port", str(ports[1]), "--dir", str(tmp_path / "second"))
    assert line.startswith(f"stomp://{host}:{ports[1]} amqp://{host}:{ports[1]} user=artemis")
    assert _speaks_amqp(host, ports[1])
    second.terminate()
    note = f"Port 5672 of {host} is in use: AMQP clients connect to port {ports[1]}.\n"
    assert second.communicate(timeout=30) == ("", note)


@pytest.mark.broker
def test_an_amqp_port_that_was_asked_for_and_is_in_use_is_an_error(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = ["broker", "--dir", str(tmp_path), "--port", "0", "--amqp-port", str(port)]
        assert cli.main(command) == 1
    assert f"[JMS_EMBEDDED_BROKER] Port {port} of 127.0.0.1 is in use." in capsys.readouterr().err


@pytest.mark.broker
def test_two_equal_ports_are_an_error(capsys, tmp_path):
    port = str(free_port("127.0.0.1"))
    certificate = ["--tls-cert", "cert.pem", "--amqp-port", port, "--plain-port", port]
    assert cli.main(["broker", "--dir", str(tmp_path), "--port", "0", *certificate]) == 1
    assert f"{port} are equal. Choose different ports." in capsys.readouterr().err


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


def test_the_demo_has_no_arguments(capsys):
    """``tests/connector/tools/test_demo.py`` runs the command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo", "--fast"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --fast" in capsys.readouterr().err
