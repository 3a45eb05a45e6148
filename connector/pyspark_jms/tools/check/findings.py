"""The findings of a check: facts with a verdict, as a table for people or as JSON for programs. Does no I/O."""

import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from pyspark_jms.errors import JMSError

__all__ = ["Finding", "Trial", "Verdict", "as_json", "as_table", "failed"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    name: str
    value: str
    verdict: Verdict = Verdict.FINE
    advice: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    """The numbers in ``value``, for programs."""

    @classmethod
    def of_error(cls, name: str, error: JMSError, verdict: Verdict = Verdict.NOTE, remedy: str = "") -> "Finding":
        return cls(name=name, value=error.fact, verdict=verdict, advice=remedy or error.remedy)

    @classmethod
    def of_end(cls, name: str, error: JMSError) -> "Finding":
        """Make a finding of an error that has ended checks, with its code, by which the pages explain it."""
        return cls(name=name, value=f"[{error.code}] {error.fact}", verdict=Verdict.PROBLEM, advice=error.remedy)


class Trial(NamedTuple):
    feature: str
    needs: Sequence[str]
    """Fields of the subject: the trial is left out if one of them is empty."""
    run: Callable[[Any], Iterable[Finding]]

    def findings(self, subject: Any) -> Iterable[Finding]:
        return self.run(subject) if all(getattr(subject, each) for each in self.needs) else ()


def failed(findings: Iterable[Finding]) -> bool:
    return any(finding.verdict in {Verdict.PROBLEM, Verdict.ENDED} for finding in findings)


def as_table(findings: Iterable[Finding]) -> str:
    return "\n".join(line for finding in findings for line in _lines(finding))


def _lines(finding: Finding) -> list[str]:
    """The lines of a finding. A name that is longer than its column moves the value to the right."""
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
