"""Docstrings begin with a verb or are sentences, and tell in a clause what None means."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAGMENT = re.compile(r"(Whether|What|For|How|Where|Who|When|The same|None|Of|In|With|If|Without|Only|From|Until|As)\b")


def docstrings():
    for file in (*(ROOT / "connector").rglob("*.py"), *(ROOT / "selector").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield f"{file.name}:{getattr(node, 'lineno', 1)}", isinstance(node, ast.FunctionDef), text


def test_a_docstring_is_a_sentence():
    found = list(docstrings())
    assert len(found) > 1_000
    assert not [where for where, is_function, text in found if is_function and FRAGMENT.match(text)]
    assert not [where for where, _, text in found if "None: " in text.replace("\n", " ")]
