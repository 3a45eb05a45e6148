"""A refused text -> an error a person can act on: what was found, what could stand there, the usual mistake."""

import re
import unicodedata
from collections.abc import Iterable

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from jms_selector.errors import InvalidSelectorError, shortened

__all__ = ["diagnose", "hint_at"]

_SPOKEN = {
    "NAME": "a property name",
    "QUOTED_NAME": "a property name",
    "STRING": "a string in single quotes",
    "NUMBER": "a number",
    "TRUE": "TRUE or FALSE",
    "FALSE": "TRUE or FALSE",
    "LPAR": "(",
    "RPAR": ")",
    "EQUALITY": "= or <>",
    "ORDER": "< <= > or >=",
    "PLUS": "+ - * or /",
    "MINUS": "+ - * or /",
    "STAR": "+ - * or /",
    "SLASH": "+ - * or /",
    "PERCENT": "+ - * or /",
    "COMMA": ",",
    "_NULL": "NULL",
    "$END": "the end of the selector",
    "PATH": "XPATH or XQUERY",
}
_ORDER = list(dict.fromkeys(_SPOKEN.values()))

_MISTAKES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (r"==", "Equality is written with one =."),
        (r"!=|\^=|¬=", "Inequality is written <>."),
        (r"!", "Negation is written NOT."),
        (r"&&|&", "Conjunction is written AND."),
        (r"\|\|", "Disjunction is written OR; strings cannot be joined."),
        (r"\|", "Disjunction is written OR."),
        (r'"', "Strings stand in single quotes: 'like this'."),
        (r"[‘’‚′“”„«»`´]", "Strings stand in straight single quotes: 'like this'; names stand without any."),
        (r"'[^']*$", "The string has no closing quote; a quote inside a string is written twice: 'it''s'."),
        (r";", "A selector ends without a semicolon."),
        (r"/\*|--|//|#", "A selector has no comments."),
        (r"[({\[]\s*\)", "A list has at least one string."),
        (r"[\[{]", "Only parentheses ( ) group."),
        (r"\.", "A name has no dots."),
        (r"[:?]", "A selector has no parameters and no conditional operator."),
        (r"(?i)null\b", "Compare with NULL by IS NULL or IS NOT NULL."),
        (r"(?i)(?:order|group)\s+by\b|(?:limit|having)\b", "A selector has no ORDER BY, GROUP BY, HAVING or LIMIT."),
    )
)
_STATEMENT = re.compile(r"(?is)\s*(?:select\s.*?\bfrom\b|where\s+(?![=<>]|(?:not|is|in|like|between)\b))")
_CONDITION = re.compile(r"(?is)\bwhere\s+(.+?)\s*;?\s*\Z")


def diagnose(text: str, error: UnexpectedInput, *, strict: bool) -> InvalidSelectorError:
    position = error.pos_in_stream if isinstance(error.pos_in_stream, int) else len(text)
    expected: Iterable[str] = ()
    if isinstance(error, UnexpectedToken):
        expected = error.accepts or error.expected
        if error.token.type == "$END":
            position = len(text)
            return InvalidSelectorError(
                text, position, "The selector ends too early", _spoken(expected), hint_at(text, position)
            )
        found = f"{_shown(str(error.token))} cannot stand here"
    else:
        assert isinstance(error, UnexpectedCharacters)
        found = f"{_shown(text[position])} cannot stand in a selector"
    hint = _hint_statement(text) or hint_at(text, position) or _hint_before(text, position)
    return InvalidSelectorError(text, position, found, _spoken(expected, strict=strict), hint)


def hint_at(text: str, position: int) -> str:
    """What people mean when they write what stands at ``position``."""
    return next((hint for pattern, hint in _MISTAKES if pattern.match(text, position)), "")


def _hint_statement(text: str) -> str:
    """For a whole SELECT, or its WHERE clause."""
    if not _STATEMENT.match(text):
        return ""
    condition = _CONDITION.search(text)
    if condition is None:
        return "A selector is only a condition, without SELECT and FROM."
    return f"A selector is only the condition, without SELECT, FROM and WHERE: {shortened(condition[1])}"


def _hint_before(text: str, position: int) -> str:
    """The mistake is often just before the place where it shows."""
    before = text[:position].rstrip()
    if text[position : position + 1] in {"=", ">"} and before.endswith(("=", "!", ">", "<")):
        return "The comparisons are = <> < <= > >=."
    if re.search(r"(?i)\bin\s*\($", before) or re.search(r"(?i)\bin\s*\([^)]*,$", before):
        return "IN takes strings in single quotes: IN ('a', 'b'). For numbers write x = 1 OR x = 2."
    if re.search(r"(?i)\b(?:like|escape)$", before):
        return "LIKE and ESCAPE take a string in single quotes."
    if re.search(r"(?:=|<>)\s*[A-Za-z_][\w$]*$", before) and re.match(r"[A-Za-z_]", text[position:]):
        return "Is this a string? Strings stand in single quotes: 'like this'."
    if before.endswith("'") and re.match(r"\w", text[position:]):
        return "A quote inside a string is written twice: 'it''s'."
    if re.search(r"(?i)\bis\s+(?:not)?$|\bis$", before):
        return "Only NULL and NOT NULL stand after IS."
    return ""


def _spoken(terminals: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
    words = {
        _SPOKEN.get(terminal, terminal.removeprefix("_"))
        for terminal in terminals
        if not (strict and terminal == "QUOTED_NAME")
    }
    rank = {word: place for place, word in enumerate(_ORDER)}
    return tuple(sorted(words, key=lambda word: (rank.get(word, len(rank)), word)))


def _shown(token: str) -> str:
    if len(token) == 1 and not (token.isascii() and token.isprintable()):
        return f"{token!r} ({unicodedata.name(token, f'U+{ord(token):04X}')})"
    return shortened(token)
