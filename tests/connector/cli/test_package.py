import pytest

from pyspark_jms import __version__, cli


def test_help_and_version(capsys):
    names = [command.name for command in cli._COMMANDS]
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
