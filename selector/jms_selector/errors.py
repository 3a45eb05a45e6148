"""Every error of the selector library. Facts in, one message out.

SelectorError
├── InvalidSelectorError          [JMS_INVALID_SELECTOR]     InvalidSelectorException: the text is no selector
│   └── SelectorTooLargeError     [JMS_SELECTOR_TOO_LARGE]   a named limit of ``parse`` is crossed
├── UnsupportedSelectorError      [JMS_UNSUPPORTED_SELECTOR] valid, but not for this dialect or target
└── EvaluationError               [JMS_SELECTOR_EVALUATION]  the broker throws on this message
"""

from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "EvaluationError",
    "InvalidSelectorError",
    "SelectorError",
    "SelectorTooLargeError",
    "UnsupportedSelectorError",
    "shortened",
]

SHOWN = 40
"""Characters of a word that a message repeats."""

CONTEXT = 60
"""Characters shown on each side of the place an error is about."""


class SelectorError(Exception):
    code: ClassVar[str] = "JMS_SELECTOR"


class InvalidSelectorError(SelectorError):
    """``InvalidSelectorException``: where the text stops being a selector, and what could stand there."""

    code = "JMS_INVALID_SELECTOR"

    def __init__(self, text: str, position: int, found: str, expected: Iterable[str] = (), hint: str = "") -> None:
        super().__init__(text, position, found, tuple(expected), hint)
        self.text = text
        self.position = position
        self.found = found
        self.expected = tuple(expected)
        self.hint = hint

    @property
    def context(self) -> str:
        """The line the error is in, cut around it, and a caret under the place."""
        start = max(0, self.position - CONTEXT)
        end = self.position + CONTEXT
        before, after = self.text[start : self.position], self.text[self.position : end]
        # One column for one character: what would break the line is shown as a blank.
        line = "".join(c if c.isprintable() else " " for c in before + after)
        lead = "…" if start else ""
        tail = "…" if end < len(self.text) else ""
        return f"  {lead}{line}{tail}\n  {' ' * (len(lead) + len(before))}^"

    def __str__(self) -> str:
        parts = [f"[{self.code}] {self.found} (at character {self.position + 1})", self.context]
        if self.expected:
            parts.append(f"Expected {_either(self.expected)}.")
        if self.hint:
            parts.append(self.hint)
        return "\n".join(parts)


class SelectorTooLargeError(InvalidSelectorError):
    """The text crosses a limit of :mod:`jms_selector.syntax.parse`."""

    code = "JMS_SELECTOR_TOO_LARGE"

    def __str__(self) -> str:
        return f"[{self.code}] {self.found} {self.hint}"


class UnsupportedSelectorError(SelectorError, ValueError):
    """The selector is valid, but this dialect or target has no form for it."""

    code = "JMS_UNSUPPORTED_SELECTOR"

    def __str__(self) -> str:
        return f"[{self.code}] {super().__str__()}"


class EvaluationError(SelectorError):
    """What the broker throws while it evaluates the selector on a message."""

    code = "JMS_SELECTOR_EVALUATION"

    def __str__(self) -> str:
        return f"[{self.code}] {super().__str__()}"


def shortened(word: str) -> str:
    return word if len(word) <= SHOWN else f"{word[:SHOWN]}…"


def _either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
