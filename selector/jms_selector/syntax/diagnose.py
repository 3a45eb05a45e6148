"""A syntax error -> an error text: what was found, what is valid there, and a hint for a common mistake."""

import re
import unicodedata
from collections.abc import Iterable

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from jms_selector.errors import InvalidSelectorError, shortened

__all__ = ["diagnose", "hint_at"]

_DESCRIPTIONS = {
    **dict.fromkeys(("NAME", "QUOTED_NAME"), "a property name"),
    "STRING": "a string in single quotes",
    "NUMBER": "a number",
    **dict.fromkeys(("TRUE", "FALSE"), "TRUE or FALSE"),
    "LPAR": "(",
    "RPAR": ")",
    "EQUALITY": "= or <>",
    "ORDER": "< <= > or >=",
    **dict.fromkeys(("PLUS", "MINUS", "STAR", "SLASH", "PERCENT"), "+ - * or /"),
    "COMMA": ",",
    "_NULL": "NULL",
    "$END": "the end of the selector",
    "PATH": "XPATH or XQUERY",
}
_RANKS = {word: rank for rank, word in enumerate(dict.fromkeys(_DESCRIPTIONS.values()))}

_MISTAKES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (r"==", "Write equality with one =."),
        (r"!=|\^=|¬=", "Write inequality as <>."),
        (r"!", "Write negation as NOT."),
        (r"&&|&", "Write conjunction as AND."),
        (r"\|\|", "Write disjunction as OR; strings cannot be concatenated."),
        (r"\|", "Write disjunction as OR."),
        (r'"', "Write strings in single quotes: 'like this'."),
        (r"[‘’‚′“”„«»`´]", "Write strings in straight single quotes: 'like this', and names without quotes."),
        (r"'[^']*$", "The string has no closing quote. Write a quote inside a string twice: 'it''s'."),
        (r";", "Remove the semicolon."),
        (r"/\*|--|//|#", "A selector cannot have comments."),
        (r"[({\[]\s*\)", "A list needs at least one string."),
        (r"[\[{]", "Group with parentheses ( )."),
        (r"\.", "A name cannot contain a dot."),
        (r"[:?]", "A selector cannot have parameters or a conditional operator."),
        (r"(?i)null\b", "Test for NULL with IS NULL or IS NOT NULL."),
        (
            r"(?i)(?:order|group)\s+by\b|(?:limit|having)\b",
            "A selector cannot have ORDER BY, GROUP BY, HAVING or LIMIT.",
        ),
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
                text, position, "The selector ends too early", _describe_terminals(expected), hint_at(text, position)
            )
        found = f"{_show_token(str(error.token))} cannot stand here"
    else:
        assert isinstance(error, UnexpectedCharacters)
        found = f"{_show_token(text[position])} cannot stand in a selector"
    hint = _hint_for_statement(text) or hint_at(text, position) or _hint_before_position(text, position)
    return InvalidSelectorError(text, position, found, _describe_terminals(expected, strict=strict), hint)


def hint_at(text: str, position: int) -> str:
    """The hint for a common mistake at ``position``; empty if there is none."""
    return next((hint for pattern, hint in _MISTAKES if pattern.match(text, position)), "")


def _hint_for_statement(text: str) -> str:
    """The hint for a whole SELECT statement or a WHERE clause."""
    if not _STATEMENT.match(text):
        return ""
    condition = _CONDITION.search(text)
    if condition is None:
        return "A selector is a condition, without SELECT and FROM."
    return f"A selector is the condition, without SELECT, FROM and WHERE: {shortened(condition[1])}"


def _hint_before_position(text: str, position: int) -> str:
    """The hint for a mistake just before the position of the error."""
    before = text[:position].rstrip()
    if text[position : position + 1] in {"=", ">"} and before.endswith(("=", "!", ">", "<")):
        return "The comparison operators are = <> < <= > >=."
    if re.search(r"(?i)\bin\s*\($", before) or re.search(r"(?i)\bin\s*\([^)]*,$", before):
        return "IN takes strings in single quotes: IN ('a', 'b'). For numbers write x = 1 OR x = 2."
    if re.search(r"(?i)\b(?:like|escape)$", before):
        return "LIKE and ESCAPE take a string in single quotes."
    if re.search(r"(?:=|<>)\s*[A-Za-z_][\w$]*$", before) and re.match(r"[A-Za-z_]", text[position:]):
        return "Is this a string? Write strings in single quotes: 'like this'."
    if before.endswith("'") and re.match(r"\w", text[position:]):
        return "Write a quote inside a string twice: 'it''s'."
    if re.search(r"(?i)\bis\s+(?:not)?$|\bis$", before):
        return "IS takes NULL or NOT NULL."
    return ""


def _describe_terminals(terminals: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
    words = {
        _DESCRIPTIONS.get(terminal, terminal.removeprefix("_"))
        for terminal in terminals
        if not (strict and terminal == "QUOTED_NAME")
    }
    return tuple(sorted(words, key=lambda word: (_RANKS.get(word, len(_RANKS)), word)))


def _show_token(token: str) -> str:
    if len(token) == 1 and not (token.isascii() and token.isprintable()):
        return f"{token!r} ({unicodedata.name(token, f'U+{ord(token):04X}')})"
    return shortened(token)
