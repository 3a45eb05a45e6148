import io
import os
import sys

import pytest

from jms_selector.cli import main


def test_explain(capsys):
    assert main(["explain", "NOT a > 1 AND b / 2 = 3", "--dialect", "artemis"]) == 0
    out = capsys.readouterr().out
    assert "AND\n    NOT\n      a > 1" in out
    assert "Pushed to artemis\n  NOT (a > 1)" in out
    assert "Stays in Spark\n  b / 2 = 3" in out
    assert "3.5" in out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["explain", " ", "--dialect", "classic"], "(nothing)"),
        (["explain", "a > 5", "--convert"], "convert_string_expressions:a > 5 OR a > 5.0"),
        (["explain", "5 = a", "--dialect", "spec"], "5 = a"),
    ],
)
def test_explain_prints(arguments, part, capsys):
    assert main(arguments) == 0
    assert part in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["explain", "a =="], ["explain", 'a = "x"']])
def test_an_error_is_printed_without_a_traceback(arguments, capsys):
    assert main(arguments) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_help(capsys):
    for command in ([], ["explain"]):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--help"])
        assert ended.value.code == 0
    assert "--portable" in capsys.readouterr().out


def test_explain_prints_on_a_terminal_that_is_not_utf_8(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["explain", "name = '\xfc'"]) == 0
    out.flush()
    assert b"\\xfc" in out.buffer.getvalue()


def test_an_output_that_is_full_or_whose_reader_has_ended(capsys, monkeypatch):
    theirs, ours = os.pipe()
    os.close(theirs)
    for output, code, shown in ((ours, 141, ""), (os.open("/dev/full", os.O_WRONLY), 1, "No space left on device")):
        with open(output, "w") as stream:  # noqa: PTH123 - a file descriptor
            monkeypatch.setattr(sys, "stdout", stream)
            assert main(["explain", "a = 1"]) == code
        assert shown in capsys.readouterr().err


def test_explain_portable(capsys):
    assert main(["explain", "NOT a = 1", "--portable"]) == 0
    shown = capsys.readouterr().out
    assert "Portable text\n  a IS NOT NULL AND NOT (a = 1)" in shown
    assert "NOT before a condition without parentheses: Artemis 2.55.0, Classic 6.3.1, FFMQ" in shown
    assert "otherwise\n  (nothing)" in shown
