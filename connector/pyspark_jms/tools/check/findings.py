"""The findings of a check: facts with a verdict, as a table for people, JSON for programs, or a report. Does no I/O."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pyspark_jms.errors import JMSError

__all__ = ["Finding", "Verdict", "as_json", "as_markdown", "as_table", "failed", "note", "problem"]

_NAME_WIDTH, _LINE_WIDTH = 20, 110


class Verdict(StrEnum):
    FINE = "fine"
    NOTE = "note"
    """A limitation, or a fact that could not be found out. No query fails because of it."""
    PROBLEM = "problem"
    """A query would fail or lose messages. The exit code is 1."""
    ENDED = "ended"
    """The tests ended early, and not because of the broker. The exit code is 1."""


_MARKS = {Verdict.FINE: " ", Verdict.NOTE: "-", Verdict.PROBLEM: "!", Verdict.ENDED: "!"}
_RESULTS = {
    Verdict.FINE: "as assumed",
    Verdict.NOTE: "note",
    Verdict.PROBLEM: "**problem**",
    Verdict.ENDED: "**ended**",
}
_LEGEND = (
    "*as assumed*: the broker does what the dialect of this connector says. *note*: the broker lacks something, or the"
    " connector does not use something that works. *problem*: a query would lose or change messages, or fail. *ended*:"
    " the broker was not the reason why the tests ended."
)


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    value: str
    verdict: Verdict = Verdict.FINE
    advice: str = ""
    details: Mapping[str, object] = field(default_factory=dict, hash=False)
    """The numbers in ``value``, for programs."""

    @classmethod
    def of_error(cls, name: str, error: JMSError, verdict: Verdict = Verdict.NOTE, remedy: str = "") -> "Finding":
        return cls(name, error.fact, verdict, remedy or error.remedy)

    @classmethod
    def of_end(cls, name: str, error: JMSError) -> "Finding":
        """Make a finding of an error that has ended a trial, with its code, by which the pages explain it."""
        return problem(name, f"[{error.code}] {error.fact}", error.remedy)


def note(name: str, value: str, advice: str = "", details: Mapping[str, object] | None = None) -> Finding:
    return Finding(name, value, Verdict.NOTE, advice, details or {})


def problem(name: str, value: str, advice: str = "", details: Mapping[str, object] | None = None) -> Finding:
    return Finding(name, value, Verdict.PROBLEM, advice, details or {})


def failed(findings: Iterable[Finding]) -> bool:
    return any(finding.verdict in {Verdict.PROBLEM, Verdict.ENDED} for finding in findings)


def as_table(findings: Iterable[Finding]) -> str:
    return "\n".join(line for finding in findings for line in _lines(finding))


def _lines(finding: Finding) -> list[str]:
    """Return the lines of a finding. A name that is longer than its column moves the value to the right."""
    indent = " " * (_NAME_WIDTH + 4)
    first = f"{_MARKS[finding.verdict]} {finding.name:{_NAME_WIDTH}}  "
    lines = textwrap.wrap(finding.value, _LINE_WIDTH, initial_indent=first, subsequent_indent=indent)
    advice = textwrap.wrap(finding.advice, _LINE_WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [line.rstrip() for line in lines + advice]


def as_json(findings: Sequence[Finding], *, ascii_only: bool = False) -> str:
    entries = [
        {
            "name": finding.name,
            "verdict": str(finding.verdict),
            "value": finding.value,
            "advice": finding.advice,
            **({"details": dict(finding.details)} if finding.details else {}),
        }
        for finding in findings
    ]
    return json.dumps({"ok": not failed(findings), "findings": entries}, indent=2, ensure_ascii=ascii_only)


def as_markdown(title: str, facts: Mapping[str, str], findings: Iterable[Finding]) -> str:
    """Return a report that an owner of the broker can attach to an issue."""
    tests = [
        (finding.name, _RESULTS[finding.verdict], " ".join(filter(None, (finding.value, finding.advice))))
        for finding in findings
    ]
    tables = (*_table(("", ""), [*facts.items()]), "", *_table(("test", "result", "seen"), tests))
    return "\n".join([f"# {title}", "", *tables, "", _LEGEND, ""])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in cells]
