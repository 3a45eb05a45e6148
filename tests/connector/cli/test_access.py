import argparse

import pytest

from pyspark_jms import cli
from pyspark_jms.cli.access import add_access, source_options


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
def test_an_error_names_the_argument_that_the_user_wrote(command, shown, capsys):
    assert cli.main([command[0], "--broker-url", "stomp://127.0.0.1:1", *command[1:]]) == 1
    assert capsys.readouterr().err.partition("] ")[2].startswith(shown)


def test_an_option_is_name_and_value(capsys):
    with pytest.raises(SystemExit):
        _parse("--broker-url", "stomp://h:1", "--option", "nope")
    assert "'nope' is not NAME=VALUE" in capsys.readouterr().err


def test_there_is_one_password(capsys):
    with pytest.raises(SystemExit):
        _parse("--broker-url", "stomp://h:1", "--password-env", "A", "--password-file", "b")
    assert "not allowed with" in capsys.readouterr().err
