"""Reads a file of test cases, one JSON object on each line, and reports their results."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Failure", "Report", "cases", "report"]


@dataclass(frozen=True, slots=True)
class Failure:
    case: str
    dialect: str
    selector: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return (
            f"{self.case} [{self.dialect}] {self.selector}: "
            f"expected {json.dumps(self.expected)}, got {json.dumps(self.found)}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    passed: int
    failures: tuple[Failure, ...]

    def __str__(self) -> str:
        lines = [*map(str, self.failures), f"{self.passed} passed, {len(self.failures)} failed"]
        return "\n".join(lines)


def report(results: Iterable[Failure | None]) -> Report:
    found = list(results)
    return Report(found.count(None), tuple(failure for failure in found if failure))


def cases(path: str | Path) -> Iterator[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield {"id": f"line {number}", **json.loads(line)}
