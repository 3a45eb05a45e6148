"""The commands of ``pyspark-jms``, called as functions."""

import json
import sys

from pyspark_jms.tools import cli


def program(*arguments):
    """The command line of a process of its own."""
    return [sys.executable, "-m", "pyspark_jms", *arguments]


def run(access, name, *arguments):
    """Run a command (``check``, ``staging show``) at the broker of these options. Returns its exit code."""
    where = [
        "--broker-url",
        access["brokerUrl"],
        "--user",
        access["user"],
        "--option",
        f"password={access['password']}",
    ]
    return cli.main([*name.split(), *where, *arguments])


def findings_of_check(access, capsys, *arguments):
    """Require that ``check`` finds no problem. Returns its findings by name."""
    code = run(access, "check", *arguments, "--json")
    findings = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert code == 0, {name: each for name, each in findings.items() if each["verdict"] == "problem"}
    return findings
