"""Test cases: a selector, a message and the expected result. ``jms-selector conformance FILE`` runs them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jms_selector.conformance.cases import Failure, Report, cases, report
from jms_selector.errors import EvaluationError, InvalidSelectorError
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.message import Message
from jms_selector.syntax.kinds import Kind, Value, to_float
from jms_selector.syntax.parse import parse

__all__ = ["parse_message", "run"]

VERDICT_KEYS = ("artemis", "classic", "lenient")
"""Keys of a case that hold the expected result of one dialect; ``expect`` holds the result for the case's dialect."""


def run(path: str | Path, dialect: str | None = None) -> Report:
    """Check every expected result in a file of cases, or those of one dialect."""
    return report(failure for case in cases(path) for failure in check(case, dialect))


def check(case: Mapping[str, Any], only: str | None = None) -> Iterator[Failure | None]:
    for dialect, expected in verdicts(case, only):
        found = verdict(case, dialect)
        agreed = _same_type_and_value(found, expected) or (_is_live_case(case) and expected is False and found is None)
        yield None if agreed else Failure(case["id"], dialect, case["selector"], expected, found)


def verdicts(case: Mapping[str, Any], only: str | None) -> Iterator[tuple[str, Any]]:
    """(dialect, expected result) of a case. With ``only``, a broker without a key has the specification's result."""
    owner = case.get("spec_or_broker", "spec")
    if only is None:
        yield owner, case["expect"]
        yield from ((key, case[key]) for key in VERDICT_KEYS if key in case and key != owner)
    elif only in case and only in VERDICT_KEYS:
        yield only, case[only]
    elif only == owner or (owner == "spec" and only in VERDICT_KEYS):
        # A case has a key for a broker only if that broker's result differs from `expect`.
        yield only, case["expect"]


def _is_live_case(case: Mapping[str, Any]) -> bool:
    """Return whether the case was observed on a running broker, where unknown and false look the same: no delivery."""
    return str(case.get("source", "")).startswith("live ")


def verdict(case: Mapping[str, Any], dialect: str) -> Any:
    """Evaluate a case: a truth value, ``error`` for an invalid selector, or ``exception`` for an evaluation error."""
    broker = dialect in {"artemis", "classic"}
    # Live cases of Classic were sent over STOMP, where the broker adds the prefix itself.
    convert = True if dialect == "classic" and _is_live_case(case) else None
    try:
        selector = parse(case["selector"], strict=dialect == "spec", dialect=dialect if broker else "spec")
        rules = "spec" if dialect == "lenient" else dialect
        return evaluate(selector, parse_message(case.get("message", {})), rules, convert=convert)
    except InvalidSelectorError:
        return "error"
    except EvaluationError:
        return "exception"


def _same_type_and_value(found: Any, expected: Any) -> bool:
    return type(found) is type(expected) and found == expected


def parse_message(stated: Mapping[str, Any]) -> Message:
    """``{"headers": {name: value}, "properties": {name: {"type": …, "value": …}}}`` as a message."""
    headers = Message.of(stated.get("headers", {})).headers
    properties = {
        name: _value(Kind(entry["type"]), entry["value"]) for name, entry in stated.get("properties", {}).items()
    }
    return Message(headers, properties)


def _value(kind: Kind, value: Any) -> Value:
    """A value of a case. Numbers that JSON cannot represent ("NaN", "-0.0") are strings."""
    if kind in {Kind.FLOAT, Kind.DOUBLE}:
        number = float(value)
        return Value(kind, to_float(number) if kind is Kind.FLOAT else number)
    return Value(kind, value)
