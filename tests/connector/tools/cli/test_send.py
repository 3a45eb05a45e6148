import io
import json
import sys

import pytest
from waiting import await_count, await_value

from pyspark_jms.testing import JmsClient
from pyspark_jms.tools import cli

NOWHERE = ["send", "--broker-url", "stomp://127.0.0.1:1"]


def test_a_text_with_headers_and_properties_reaches_a_java_consumer(commands, broker, queue):
    assert commands(
        "send", "--queue", queue, "--text", "hello, 😀", "--header", "JMSType=greeting", "--header", "JMSPriority=7",
        "--property", "id:int=5", "--property", "note=a=b",
    ) == 0  # fmt: skip
    assert commands.output == f"sent 1 message to queue://{queue}\n"
    assert commands.errors == ""
    with JmsClient(broker) as java:
        message = java.receive(queue)
    assert (message.body, message.priority, message.type) == ("hello, 😀", 7, "greeting")
    assert message.properties["note"].value == "a=b"
    assert str(message.properties["id"].value) == "5"


def test_a_file_is_a_text_or_bytes(commands, broker, queue, tmp_path, monkeypatch):
    file = tmp_path / "body"
    file.write_bytes(b"\x00\xff\n")
    assert commands("send", "--queue", queue, "--file", str(file)) == 1
    assert commands.errors.startswith(f"[JMS_INVALID_OPTION] File {file} is not UTF-8.")
    assert not broker.has_queue(queue)
    assert commands("send", "--queue", queue, "--file", str(file), "--bytes") == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("ü\n".encode())))
    assert commands("send", "--queue", queue, "--file", "-") == 0
    with JmsClient(broker) as java:
        assert [java.receive(queue).body for _ in range(2)] == [b"\x00\xff\n", "ü\n"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_lines_of_json_on_standard_input_are_utf_8_on_every_terminal(commands, broker, queue, encoding, monkeypatch):
    typed = io.BytesIO('{"text": "ü🎉"}\n'.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(typed, encoding=encoding, errors="surrogateescape"))
    assert commands("send", "--queue", queue, "--json-lines", "-") == 0
    with JmsClient(broker) as java:
        assert java.receive(queue).body == "ü🎉"


def test_lines_of_json_go_where_the_command_or_the_line_says(commands, broker, queue, tmp_path):
    lines = [{"text": f"text {n}", "properties": {"n": n}} for n in range(2_500)]
    file = tmp_path / "lines.jsonl"
    file.write_text("\n\n".join(map(json.dumps, lines)))
    assert commands.json("send", "--queue", queue, "--json-lines", str(file)) == [
        {"sent": 2500, "dropped": 0, "destination": f"queue://{queue}"}
    ]
    await_count(broker, queue, 2_500)
    file.write_text("".join(json.dumps({"text": "x", "destination": f"queue://{queue}.{n}"}) + "\n" for n in "ab"))
    assert commands("send", "--json-lines", str(file)) == 0
    assert commands.output == "sent 2 messages to the destinations of their lines\n"
    await_value(lambda: [broker.message_count(f"{queue}.{n}") for n in "ab"], [1, 1])


def test_a_wrong_line_late_in_the_file_means_that_nothing_is_sent(commands, broker, queue, tmp_path):
    broker.create_queue(queue)
    file = tmp_path / "lines.jsonl"
    file.write_text('{"text": "x"}\n' * 3_000 + '{"text": 5}\n')
    assert commands("send", "--queue", queue, "--json-lines", str(file)) == 1
    assert commands.errors.startswith("[JMS_MESSAGE_FORMAT] Line 3001 cannot be sent: its text is not a text.")
    await_count(broker, queue, 0)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["--text", "x"], "[JMS_MISSING_OPTION] Neither --queue nor --topic is given."),
        (["--queue", "q", "--text", "x", "--bytes"], "[JMS_INVALID_OPTION] --bytes is given without --file."),
        (["--queue", "q", "--json-lines", "-", "--property", "a=b"], "[JMS_INVALID_OPTION] --header and --property"),
        (["--queue", "q", "--file", "/nowhere/x"], "[JMS_INVALID_OPTION] File /nowhere/x cannot be read: No such file"),
        (["--queue", "q", "--text", "x", "--option", "queu=x"], "[JMS_UNKNOWN_OPTION]"),
        (["--queue", "q", "--text", "x", "--header", "JMSPriority=high"], "its JMSPriority is not an integer"),
        (["--queue", "q", "--text", "x"], "[JMS_BROKER_UNREACHABLE]"),
    ],
)
def test_what_cannot_be_sent_is_refused(arguments, refusal, capsys):
    assert cli.main([*NOWHERE, *arguments]) == 1
    assert refusal in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--queue", "q"], ["--queue", "q", "--topic", "t", "--text", "x"]])
def test_arguments_that_exclude_each_other(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([*NOWHERE, *arguments])
    assert ended.value.code == 2
    assert "usage: pyspark-jms send" in capsys.readouterr().err


def test_standard_input_that_is_closed(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    for what in ("--file", "--json-lines"):
        assert cli.main([*NOWHERE, "--queue", "q", what, "-"]) == 1
        assert "[JMS_INVALID_OPTION] Standard input is closed" in capsys.readouterr().err


def test_bytes_that_are_no_text_of_the_terminal_are_refused(capsys, monkeypatch):
    monkeypatch.setenv("OTHER", "s3cr3t\udcff")
    given = {
        r"Argument '\udcff' is not a text": ("--queue", "\udcff", "--text", "x"),
        "The password in OTHER is not a text": ("--queue", "q", "--text", "x", "--password-env", "OTHER"),
    }
    for fact, arguments in given.items():
        assert cli.main([*NOWHERE, *arguments]) == 1
        shown = capsys.readouterr().err
        assert fact in shown
        assert "s3cr3t" not in shown


def test_a_file_of_another_encoding_is_refused(tmp_path, capsys):
    file = tmp_path / "lines.jsonl"
    file.write_bytes('{"text": "ü"}'.encode("latin-1"))
    assert cli.main([*NOWHERE, "--queue", "q", "--json-lines", str(file)]) == 1
    assert "is not UTF-8" in capsys.readouterr().err
