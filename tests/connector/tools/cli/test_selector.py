import sys

from pyspark_jms.tools.cli.selector import main


def test_the_command_knows_the_headers(monkeypatch, capsys):
    for text, code in (("JMSPriority = b", 0), ("JMSReplyTo = 'r'", 1)):
        monkeypatch.setattr(sys, "argv", ["jms-selector", "explain", text, "--dialect", "classic", "--strict"])
        assert main() == code
    out, err = capsys.readouterr()
    assert "JMSPriority IS NOT NULL AND b IS NOT NULL AND JMSPriority = b\n" in out
    assert "JMSReplyTo cannot be used in a selector" in err
