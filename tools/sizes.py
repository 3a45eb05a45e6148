"""No file or function of the two packages is longer than a reader can take in. Decorators do not count."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("connector/pyspark_jms", "selector/jms_selector")

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


def too_large(text: str) -> Iterator[str]:
    """What of this file's text exceeds a limit, with its size."""
    lines = len(text.splitlines())
    if lines > MAX_FILE_LINES:
        yield f"{lines} lines, the limit is {MAX_FILE_LINES}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > MAX_FUNCTION_LINES:
                yield f"line {node.lineno}: {node.name} has {size} lines, the limit is {MAX_FUNCTION_LINES}"


def problems(root: Path = ROOT) -> list[str]:
    files = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    return [f"{path.relative_to(root)}: {problem}" for path in files for problem in too_large(path.read_text())]


if __name__ == "__main__":
    found = problems()
    print("\n".join(found) or "no file or function is too large")
    sys.exit(bool(found))
