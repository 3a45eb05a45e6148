"""Every error of the selector library. A constructor takes facts and composes the message.

SelectorError
├── InvalidSelectorError          [JMS_INVALID_SELECTOR]     InvalidSelectorException: the text is not a selector
│   └── SelectorTooLargeError     [JMS_SELECTOR_TOO_LARGE]   the text exceeds a limit of ``parse``
├── UnsupportedSelectorError      [JMS_UNSUPPORTED_SELECTOR] valid, but this dialect or target cannot express it
└── EvaluationError               [JMS_SELECTOR_EVALUATION]  the broker throws an exception on this message
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

MAX_WORD_LENGTH = 40
"""Maximum number of characters that an error text shows of one word."""

CONTEXT_LENGTH = 60
"""Maximum number of characters that an error text shows of the selector, on each side of the error's position."""


class SelectorError(Exception):
    code: ClassVar[str] = "JMS_SELECTOR"

    def __str__(self) -> str:
        return f"[{self.code}] {super().__str__()}"


class InvalidSelectorError(SelectorError):
    """The text is not a selector (``InvalidSelectorException``). The error has the position and what is valid there."""

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
        """The text around the error, and a caret under its position."""
        start = max(0, self.position - CONTEXT_LENGTH)
        end = self.position + CONTEXT_LENGTH
        before, after = self.text[start : self.position], self.text[self.position : end]
        # One column for each character: a character that cannot be printed is shown as a blank.
        line = "".join(c if c.isprintable() else " " for c in before + after)
        lead = "…" if start else ""
        tail = "…" if end < len(self.text) else ""
        return f"  {lead}{line}{tail}\n  {' ' * (len(lead) + len(before))}^"

    def __str__(self) -> str:
        parts = [f"[{self.code}] {self.found} (at character {self.position + 1})", self.context]
        if self.expected:
            parts.append(f"Expected {_join_alternatives(self.expected)}.")
        if self.hint:
            parts.append(self.hint)
        return "\n".join(parts)


class SelectorTooLargeError(InvalidSelectorError):
    """The text exceeds a limit of :mod:`jms_selector.syntax.parse`."""

    code = "JMS_SELECTOR_TOO_LARGE"

    def __str__(self) -> str:
        return f"[{self.code}] {self.found} {self.hint}"


class UnsupportedSelectorError(SelectorError, ValueError):
    """The selector is valid, but this dialect or target cannot express it."""

    code = "JMS_UNSUPPORTED_SELECTOR"


class EvaluationError(SelectorError):
    """The exception that the broker throws while it evaluates the selector on a message."""

    code = "JMS_SELECTOR_EVALUATION"


def shortened(word: str) -> str:
    return word if len(word) <= MAX_WORD_LENGTH else f"{word[:MAX_WORD_LENGTH]}…"


def _join_alternatives(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
