"""Cases of a selector, a message and the verdict on it. ``jms-selector conformance FILE`` runs them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jms_selector.conformance.cases import Failure, Report, cases, report
from jms_selector.errors import EvaluationError, InvalidSelectorError
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.message import Message
from jms_selector.syntax.kinds import Kind, Value, to_float
from jms_selector.syntax.parse import parse

__all__ = ["message_of", "run"]

CHECKED = ("artemis", "classic", "lenient")
"""Keys of a row that hold a verdict of their own, besides its owner's ``expect``."""


def run(path: str | Path, dialect: str | None = None) -> Report:
    """Check every verdict of a file of cases, or those of one dialect."""
    return report(failure for case in cases(path) for failure in check(case, dialect))


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
