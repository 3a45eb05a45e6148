"""Files of cases: selector verdicts, and texts pushed to a broker. What ``jms-selector conformance`` runs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jms_selector.errors import EvaluationError, InvalidSelectorError
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.message import Message
from jms_selector.syntax.kinds import Kind, Value, to_float
from jms_selector.syntax.parse import parse

__all__ = ["Failure", "Report", "message_of", "run"]

CHECKED = ("artemis", "classic", "lenient")
"""Keys of a row that hold a verdict of their own, besides its owner's ``expect``."""


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


def run(path: str | Path, dialect: str | None = None) -> Report:
    """Check every verdict of a file of cases, or those of one dialect."""
    return report(failure for case in cases(path) for failure in check(case, dialect))


def report(results: Iterable[Failure | None]) -> Report:
    found = list(results)
    return Report(found.count(None), tuple(failure for failure in found if failure))


def cases(path: str | Path) -> Iterator[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield {"id": f"line {number}", **json.loads(line)}


def check(case: Mapping[str, Any], only: str | None = None) -> Iterator[Failure | None]:
    for dialect, expected in verdicts(case, only):
        found = verdict(case, dialect)
        agreed = _same(found, expected) or (_observed(case) and expected is False and found is None)
        yield None if agreed else Failure(case["id"], dialect, case["selector"], expected, found)


def verdicts(case: Mapping[str, Any], only: str | None) -> Iterator[tuple[str, Any]]:
    """(dialect, expected): the owner's and those stated apart; for one dialect also what it shares."""
    owner = case.get("spec_or_broker", "spec")
    if only is None:
        yield owner, case["expect"]
        yield from ((key, case[key]) for key in CHECKED if key in case and key != owner)
    elif only in case and only in CHECKED:
        yield only, case[only]
    elif only == owner or (owner == "spec" and only in CHECKED):
        # A key stands in a row only where that broker differs from `expect`.
        yield only, case["expect"]


def _observed(case: Mapping[str, Any]) -> bool:
    """Seen at a running broker, which delivers or does not: unknown cannot be told from false."""
    return str(case.get("source", "")).startswith("live ")


def verdict(case: Mapping[str, Any], dialect: str) -> Any:
    """What this library says: a truth value, ``error`` for an invalid selector, ``exception``."""
    broker = dialect in {"artemis", "classic"}
    # What was seen live at Classic went over STOMP, where the broker adds the prefix itself.
    convert = True if dialect == "classic" and _observed(case) else None
    try:
        selector = parse(case["selector"], strict=dialect == "spec", dialect=dialect if broker else "spec")
        rules = "spec" if dialect == "lenient" else dialect
        return evaluate(selector, message_of(case.get("message", {})), rules, convert=convert)
    except InvalidSelectorError:
        return "error"
    except EvaluationError:
        return "exception"


def _same(found: Any, expected: Any) -> bool:
    return type(found) is type(expected) and found == expected


def message_of(stated: Mapping[str, Any]) -> Message:
    """``{"headers": {name: value}, "properties": {name: {"type": …, "value": …}}}`` as a message."""
    headers = Message.of(stated.get("headers", {})).headers
    properties = {
        name: _value(Kind(entry["type"]), entry["value"]) for name, entry in stated.get("properties", {}).items()
    }
    return Message(headers, properties)


def _value(kind: Kind, value: Any) -> Value:
    """Numbers that JSON cannot hold ("NaN", "-0.0") are strings."""
    if kind in {Kind.FLOAT, Kind.DOUBLE}:
        number = float(value)
        return Value(kind, to_float(number) if kind is Kind.FLOAT else number)
    return Value(kind, value)
