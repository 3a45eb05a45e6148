"""ActiveMQ Classic's functions on typed values: REGEX, INLIST, MAKELIST, SPLIT, REPLACE.

An argument on which the Java code throws (null, or a wrong type) yields a FAULT. Python's ``re`` compiles
Java's patterns, so only the syntax that Java and Python share works.
"""

import re
from collections.abc import Callable, Sequence

from jms_selector.meaning.conversions import java_text
from jms_selector.syntax.kinds import Kind, Value

__all__ = ["call"]

_FALSE = Value(Kind.BOOLEAN, value=False)


def call(function: str, arguments: Sequence[Value]) -> Value:
    fault = next((a for a in arguments if a.kind is Kind.FAULT), None)
    return fault or _FUNCTIONS[function](arguments)


def _regex(arguments: Sequence[Value]) -> Value:
    pattern, candidate = arguments
    if Kind.NULL in {pattern.kind, candidate.kind}:
        return _FALSE
    try:
        found = re.search(java_text(pattern), java_text(candidate))
    except re.error as error:
        return Value(Kind.FAULT, f"REGEX: {error}")
    return Value(Kind.BOOLEAN, found is not None)


def _in_list(arguments: Sequence[Value]) -> Value:
    values, candidate = arguments
    if values.kind is not Kind.LIST:
        return Value(Kind.FAULT, "INLIST: the first argument is not a list")
    return Value(Kind.BOOLEAN, candidate in values.value)


def _make_list(arguments: Sequence[Value]) -> Value:
    return Value(Kind.LIST, tuple(arguments))


def _split(arguments: Sequence[Value]) -> Value:
    """``String.split``. Without a limit, the list has no empty strings at its end."""
    text, pattern, *rest = arguments
    if not _are_strings(arguments[:2]) or any(argument.kind is not Kind.INT for argument in rest):
        return Value(Kind.FAULT, "SPLIT takes two strings and an int")
    limit = rest[0].value if rest else 0
    if limit == 1:
        return Value(Kind.LIST, (text,))
    try:
        parts = re.split(pattern.value, text.value, maxsplit=max(limit - 1, 0))
    except re.error as error:
        return Value(Kind.FAULT, f"SPLIT: {error}")
    while limit == 0 and len(parts) > 1 and not parts[-1]:
        parts.pop()
    return Value(Kind.LIST, tuple(Value(Kind.STRING, part or "") for part in parts))


def _replace(arguments: Sequence[Value]) -> Value:
    if not _are_strings(arguments):
        return Value(Kind.FAULT, "REPLACE takes three strings")
    text, pattern, replacement = (a.value for a in arguments)
    try:
        return Value(Kind.STRING, re.sub(pattern, re.sub(r"\$(\d)", r"\\\1", replacement), text))
    except re.error as error:
        return Value(Kind.FAULT, f"REPLACE: {error}")


def _are_strings(arguments: Sequence[Value]) -> bool:
    return all(a.kind is Kind.STRING for a in arguments)


_FUNCTIONS: dict[str, Callable[[Sequence[Value]], Value]] = {
    "REGEX": _regex,
    "INLIST": _in_list,
    "MAKELIST": _make_list,
    "SPLIT": _split,
    "REPLACE": _replace,
}
