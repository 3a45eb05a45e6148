"""docs/operations.md has every log line of level WARNING and above, and no other."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations.md"
LEVELS = {"warning", "error", "critical", "exception", "warn", "log"}


def calls(tree):
    """The first argument of every call of ``_log.warning`` and the like."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _is_log(call.func):
            yield call.args[0]


def _is_log(function):
    return isinstance(function, ast.Attribute) and function.attr in LEVELS and ast.unparse(function.value) == "_log"


def texts(tree):
    """The log lines of a module, with … for each value."""
    for argument in calls(tree):
        if isinstance(argument, ast.Name):
            yield from _given_to(tree, argument.id)
        else:
            yield _text(argument)


def _given_to(tree, parameter):
    """What a helper that logs its parameter is called with."""
    helpers = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and parameter in {each.arg for each in node.args.args}
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in helpers:
            yield _text(call.args[0])


def _text(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    assert isinstance(node, ast.Constant), f"line {node.lineno}: a log line must be a literal"
    return re.sub(r"%[sdr]|%\.\d+f", "…", node.value)


def in_code():
    modules = map(Path.read_text, (ROOT / "connector" / "pyspark_jms").rglob("*.py"))
    return {text for module in modules if "_log." in module for text in texts(ast.parse(module))}


def in_page():
    own = PAGE.read_text().partition("### Reading")[2].partition("### Lines of Spark")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", own, re.MULTILINE))


def test_the_page_has_the_lines_of_the_code():
    code, page = in_code(), in_page()
    assert len(code) > 20
    assert sorted(code - page) == [], "not on the page"
    assert sorted(page - code) == [], "not in the code"


@pytest.mark.parametrize("line", sorted(in_page()))
def test_a_line_says_what_kind_it_is(line):
    assert line.startswith(("! ", "= "))


def test_every_row_says_what_to_do():
    own = PAGE.read_text().partition("### Reading")[2].partition("### Lines of Spark")[0]
    rows = [row.split(" | ") for row in own.splitlines() if row.startswith("| `")]
    assert rows
    assert all(len(row) == 3 and all(cell.strip(" |") for cell in row) for row in rows)
