import pytest

from pyspark_jms.tools import cli


def test_the_demo_has_no_arguments(capsys):
    """``tests/connector/tools/test_demo.py`` runs the command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo", "--fast"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --fast" in capsys.readouterr().err
