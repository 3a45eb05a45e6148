import argparse
import io
import json
import sys

import pytest

from pyspark_jms import __version__
from pyspark_jms.tools import cli


def commands():
    """The name and the parser of each command."""
    (action,) = (each for each in cli._parser()._actions if isinstance(each, argparse._SubParsersAction))
    return zip(action._choices_actions, action.choices.values(), strict=True)


def test_texts_are_sentences():
    for listed, parser in commands():
        assert listed.help[0].islower()
        assert parser.description.endswith(".")
        assert parser.epilog is None or parser.epilog.endswith(".")


def test_help_and_version(capsys):
    names = [listed.dest for listed, _ in commands()]
    for arguments in (["--help"], *([name, "--help"] for name in names), ["--version"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 0
    output = capsys.readouterr().out
    assert all(option in output for option in ("--dir", "--queue", "--subscription-name", "--broker-url"))
    assert " --password " not in output.partition("usage: pyspark-jms check")[2]
    assert f"pyspark-jms {__version__}\n" in output


def test_no_command(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


COMMANDS = (
    ("send", "--queue", "{q}", "--text", "gr\xfc\xdfe \U0001f389"),
    ("peek", "--queue", "{q}"),
    ("peek", "--queue", "{q}", "--json"),
    ("check", "--queue", "{q}", "--scratch-queue", "{q}.s", "--receive"),
    ("check", "--queue", "{q}", "--scratch-queue", "{q}.s", "--json"),
    ("move", "--queue", "{q}", "--to", "{q}.2"),
    ("subscribe", "--topic", "{q}.t", "--subscription-name", "\xfc"),
    ("unsubscribe", "--topic", "{q}.t", "--subscription-name", "\xfc"),
    ("staging", "show", "--queue", "{q}"),
    ("peek", "--queue", "{q}", "--selector", "\xfc ="),
)


@pytest.mark.deep
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_every_command_prints_on_a_terminal_of_another_encoding(broker, queue, encoding, monkeypatch):
    monkeypatch.setenv("CLI_PASSWORD", broker.password)
    access = ["--broker-url", broker.amqp_url, "--user", broker.user, "--password-env", "CLI_PASSWORD"]
    for name, *rest in COMMANDS:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        words = [each.format(q=f"{queue}.\xfc\U0001f389") for each in rest]
        first = 1 if name == "staging" else 0
        code = cli.main([name, *words[:first], *access, *words[first:]])
        out.flush()
        shown = out.buffer.getvalue().decode(encoding)
        if "--json" in rest:
            assert f"{queue}.\xfc\U0001f389" in str(json.loads(shown))
        err.flush()
        assert (code == 0) == (not err.buffer.getvalue().decode(encoding).startswith("[JMS_")), (name, code)


def test_a_password_on_the_command_line_is_refused_with_the_reason(capsys):
    with pytest.raises(SystemExit):
        cli.main(["peek", "--broker-url", "amqp://x", "--queue", "q", "--password", "secret"])
    shown = capsys.readouterr().err
    assert "a password on the command line is visible in the process list; use --password-env" in shown
    assert "secret" not in shown
