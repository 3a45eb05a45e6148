import argparse

import pytest

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


def test_an_option_is_name_and_value(capsys):
    with pytest.raises(SystemExit):
        _parse("--broker-url", "stomp://h:1", "--option", "nope")
    assert "'nope' is not NAME=VALUE" in capsys.readouterr().err


def test_there_is_one_password(capsys):
    with pytest.raises(SystemExit):
        _parse("--broker-url", "stomp://h:1", "--password-env", "A", "--password-file", "b")
    assert "not allowed with" in capsys.readouterr().err
