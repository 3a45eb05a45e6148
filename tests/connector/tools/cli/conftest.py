"""The commands as a user calls them: arguments in, exit code and output out."""

import json

import pytest
from streaming import access

from pyspark_jms.tools import cli

_QUICK = dict.fromkeys(("move", "peek"), ("--option", "idleTimeout=500ms"))
"""The default is 2 s, and a move waits for it twice."""


class Commands:
    """``commands("peek", "--queue", q)``: the exit code; ``commands.output`` and ``commands.errors`` after it."""

    def __init__(self, url, user, capsys):
        self.access = ["--broker-url", url, "--user", user, "--password-env", "CLI_PASSWORD"]
        self._capsys = capsys
        self.output = self.errors = ""

    def __call__(self, name, *arguments):
        self._capsys.readouterr()
        code = cli.main([name, *self.access, *_QUICK.get(name, ()), *arguments])
        self.output, self.errors = self._capsys.readouterr()
        return code

    def json(self, name, *arguments):
        """The lines of JSON of a command that succeeds."""
        assert self(name, *arguments, "--json") == 0, self.errors
        return [json.loads(line) for line in self.output.splitlines()]


@pytest.fixture
def commands_on(capsys, monkeypatch):
    def commands_on(running, url=None):
        monkeypatch.setenv("CLI_PASSWORD", running.password)
        return Commands(url or running.url, running.user, capsys)

    return commands_on


@pytest.fixture(params=[pytest.param("stomp", marks=pytest.mark.deep), "amqp"])
def commands(request, broker, commands_on):
    """On the session's broker, over each protocol. `tests/connector/source` has both protocols in `make test`."""
    return commands_on(broker, access(broker, request.param)["brokerUrl"])
