"""Every module has a test file of its own, and every such test file its module.

``connector/pyspark_jms/stomp/wire/scan.py`` is tested by ``tests/connector/stomp/wire/test_scan.py``,
``selector/jms_selector/syntax/parse.py`` by ``tests/selector/syntax/test_parse.py``.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"connector/pyspark_jms": "tests/connector", "selector/jms_selector": "tests/selector"}


def missing() -> list[str]:
    """The test files that should exist and do not, and those that test nothing."""
    found: list[str] = []
    for source, tests in PACKAGES.items():
        modules = {path.relative_to(ROOT / source) for path in (ROOT / source).rglob("*.py")}
        wanted = {path.parent / f"test_{_stem(path)}.py" for path in modules if _has_code(ROOT / source / path)}
        present = {path.relative_to(ROOT / tests) for path in (ROOT / tests).rglob("test_*.py")}
        found += [f"missing:  {tests}/{path}" for path in sorted(wanted - present)]
        found += [f"orphaned: {tests}/{path}" for path in sorted(present - wanted)]
    return found


def _stem(path: Path) -> str:
    return "package" if path.name == "__init__.py" else path.stem


def _has_code(path: Path) -> bool:
    """Whether a package's ``__init__`` has more than a docstring."""
    if path.name != "__init__.py":
        return True
    return any(line.startswith(("def ", "class ", "if ")) for line in path.read_text().splitlines())


if __name__ == "__main__":
    problems = missing()
    print("\n".join(problems) or "every module has its test file")
    sys.exit(bool(problems))
