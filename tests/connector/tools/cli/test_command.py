import argparse
import io
import os
import pty
import time

import pytest
from addresses import types_of

from pyspark_jms.tools import cli
from pyspark_jms.tools.cli.command import ProgressLine, add_access, source_options

SECRET = "s3cr3t"


# --- a line that shows how far a long command is -----------------------------------------------------


def test_a_pipe_gets_no_progress():
    stream = io.StringIO()
    with ProgressLine("sent", stream) as progress:
        progress._shown_at = 0.0
        progress.show(5)
    assert stream.getvalue() == ""


def _read(terminal, end):
    """What is written to a terminal up to and including ``end``."""
    shown = ""
    while end not in shown:
        shown += os.read(terminal, 1000).decode()
    return shown


def test_a_terminal_gets_one_line_that_is_removed_at_the_end():
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal:  # noqa: PTH123 - a file descriptor
        with ProgressLine("sent", terminal) as progress:
            assert terminal.isatty()
            progress.show(1)  # too early
            for messages in (12_345, 2):
                progress._shown_at = time.monotonic() - 1
                progress.show(messages)
        shown = _read(ours, " \r")
    os.close(ours)
    first, second, blanks, end = shown.split("\r")[1:]
    assert first.startswith("12,345 messages sent, ")
    assert second.startswith("2 messages sent, ")
    assert len(second) >= len(first)  # nothing of a longer line stays
    assert (blanks, end) == (" " * len(blanks), "")
    assert len(blanks) >= len(second.rstrip())


# --- the arguments of every command that connects to a broker ----------------------------------------


def _parse(*arguments):
    parser = argparse.ArgumentParser()
    add_access(parser)
    return parser.parse_args(arguments)


def test_arguments_become_options_of_the_source(monkeypatch):
    monkeypatch.setenv("BROKER_PASSWORD", "sesame")
    given = _parse(
        "--broker-url", "stomp://h:1", "--user", "u", "--password-env", "BROKER_PASSWORD", "--option", "heartbeat=7s"
    )
    settings = source_options(given, queue="q").connection
    assert (settings.addresses[0].host, settings.user, settings.heartbeat) == ("h", "u", 7.0)
    assert settings.password.reveal() == "sesame"
    assert source_options(given, queue="q").destinations[0].name == "q"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["peek", "--queue", "q", "--max", "0"], "--max cannot be '0'."),
        (["peek", "--queue", ""], "--queue cannot be ''."),
        (["peek", "--queue", "q", "--selector", " "], "--selector cannot be ' '."),
        (["check", "--scratch-queue", ""], "--scratch-queue cannot be ''."),
        (["subscribe", "--topic", "t", "--subscription-name", ""], "--subscription-name cannot be ''."),
        (["peek", "--queue", "q", "--password-env", "A"], "--password-env is given without user."),
        (["peek", "--queue", "q", "--option", "sslCaFile=x"], "Option sslCaFile is given, and no address of --broker-"),
        (["peek", "--queue", "q", "--option", "heartbeat=1"], "Option heartbeat cannot be '1'."),
        (["peek", "--queue", "q", "--option", "clientId=x"], "Option clientId is given without subscriptionName."),
        (
            ["send", "--queue", '["a", "b"]', "--text", "x"],
            "--queue of a sink is one name. To write to several queues, ",
        ),
    ],
)
def test_an_error_names_the_argument_that_the_user_wrote(command, shown, capsys, monkeypatch):
    monkeypatch.setenv("A", SECRET)
    assert cli.main([command[0], "--broker-url", "stomp://127.0.0.1:1", *command[1:]]) == 1
    assert capsys.readouterr().err.partition("] ")[2].startswith(shown)


def test_a_variable_that_is_not_set(capsys, monkeypatch):
    monkeypatch.delenv("NO_PASSWORD", raising=False)
    access = ["--broker-url", "stomp://127.0.0.1:1", "--user", "u", "--password-env", "NO_PASSWORD"]
    assert cli.main(["peek", *access, "--queue", "q"]) == 1
    reason = capsys.readouterr().err
    assert "[JMS_SECURITY] The environment variable NO_PASSWORD named by --password-env is not set." in reason
    assert "--password-file" in reason


def test_no_error_has_the_password_of_a_variable(capsys, monkeypatch):
    monkeypatch.setenv("A", SECRET)
    access = ["--broker-url", "stomp://127.0.0.1:1", "--user", "u", "--password-env", "A", "--option", "heartbeat=1"]
    assert cli.main(["peek", *access, "--queue", "q"]) == 1
    assert SECRET not in capsys.readouterr().err
    given = source_options(_parse("--broker-url", "stomp://h:1", "--user", "u", "--password-env", "A"), queue="q")
    assert SECRET not in repr(given)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["--option", "nope"], "'nope' is not NAME=VALUE"),
        (["--password-env", "A", "--password-file", "b"], "not allowed with"),
    ],
)
def test_wrong_arguments(arguments, refusal, capsys):
    with pytest.raises(SystemExit):
        _parse("--broker-url", "stomp://h:1", *arguments)
    assert refusal in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "send --queue {topic} --text x",
        "move --queue {queue} --to {topic} --yes",
        "check --scratch-queue {topic}",
        "check --conformance --queue {topic} --report {folder}/report.md",
    ],
)
def test_no_command_makes_a_queue_of_a_topic(commands, broker, queue, tmp_path, command):
    topic = f"{queue}.topic"
    broker.server.getActiveMQServerControl().createAddress(topic, "MULTICAST")
    broker.create_queue(queue)
    assert commands(*command.format(topic=topic, queue=queue, folder=tmp_path).split()) == 1
    printed = " ".join(f"{commands.output} {commands.errors}".split())
    assert f"{topic} is a topic on the broker, and no queue." in printed
    assert types_of(broker, topic) == "[MULTICAST]"
