import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from jms_selector.cli import main
from jms_selector.conformance import pushed_texts, verdicts

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("name", "run", "options"),
    [("selector_cases", verdicts.run, []), ("selector_pushdown_cases", pushed_texts.run, ["--pushdown"])],
)
def test_conformance_prints_the_count(tmp_path, capsys, name, run, options):
    """Of the first cases: `conformance/` runs all of them."""
    path = tmp_path / "cases"
    path.write_text("".join((DATA / f"{name}.jsonl").read_text().splitlines(keepends=True)[:5]))
    assert main(["conformance", str(path), *options]) == 0
    passed = run(path).passed
    assert passed >= 5
    assert capsys.readouterr().out.endswith(f"{passed} passed, 0 failed\n")


def test_a_failed_case_is_printed_and_the_exit_status_is_1(tmp_path, capsys):
    path = tmp_path / "cases"
    path.write_text(json.dumps({"id": "x1", "selector": "TRUE", "expect": False}))
    assert main(["conformance", str(path), "--dialect", "spec"]) == 1
    assert capsys.readouterr().out == "x1 [spec] TRUE: expected false, got true\n0 passed, 1 failed\n"


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


@pytest.mark.parametrize("arguments", [["explain", "a =="], ["explain", 'a = "x"'], ["conformance", "no such file"]])
def test_an_error_is_printed_without_a_traceback(arguments, capsys):
    assert main(arguments) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_help(capsys):
    for command in ([], ["explain"], ["conformance"]):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--help"])
        assert ended.value.code == 0
    assert "--pushdown" in capsys.readouterr().out


def test_only_conformance_loads_the_runners():
    runners = "print([name for name in sys.modules if name.startswith('jms_selector.conformance')])"
    code = f"import sys; from jms_selector.cli import main; main(['explain', 'a = 1']); {runners}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert found.splitlines()[-1] == "[]"


def test_explain_prints_on_a_terminal_that_is_not_utf_8(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["explain", "name = '\xfc'"]) == 0
    out.flush()
    assert b"\\xfc" in out.buffer.getvalue()


def test_explain_portable(capsys):
    assert main(["explain", "NOT a = 1", "--portable"]) == 0
    shown = capsys.readouterr().out
    assert "Portable text\n  a IS NOT NULL AND NOT (a = 1)" in shown
    assert "NOT before a condition without parentheses: Artemis 2.55.0, Classic 6.3.1, FFMQ" in shown
    assert "otherwise\n  (nothing)" in shown
