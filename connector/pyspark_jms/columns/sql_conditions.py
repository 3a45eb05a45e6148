"""A condition of SQL → the tree of its parts: the subset that can be a selector, and errors that name any other part.

The grammar has only this subset. Another text fails at its first word or operator outside of it, which the error names.
Spark's session is not needed: parts whose meaning depends on a setting of the session are refused.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from jms_selector.errors import shortened
from pyspark_jms.errors import UnsupportedConditionError

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

__all__ = ["Constant", "column_name", "constant", "parse_condition", "refuse"]

Constant: TypeAlias = bool | int | float | Decimal | str | datetime
Part: TypeAlias = "Tree[Token] | Token"

MAX_LENGTH = 1 << 16
"""Maximum characters of a condition."""

_GRAMMAR = r"""
?start: disjunction
?disjunction: conjunction (_OR conjunction)*
?conjunction: negation (_AND negation)*
?negation: predicate
         | (NOT | "!") negation                                     -> negation
?predicate: operand
          | operand COMPARISON operand                              -> comparison
          | operand [NOT] _BETWEEN operand _AND operand             -> between
          | operand [NOT] _IN "(" operand ("," operand)* ")"        -> membership
          | operand [NOT] _LIKE operand [_ESCAPE STRING]            -> like
          | operand _IS [NOT] NULL                                  -> null_test
?operand: NAME                                                      -> column
        | QUOTED_NAME                                               -> column
        | STRING                                                    -> string
        | [SIGN] NUMBER                                             -> number
        | TRUE                                                      -> boolean
        | FALSE                                                     -> boolean
        | NULL                                                      -> null
        | NAME STRING                                               -> typed_literal
        | "(" disjunction ")"
        | OPERATOR | DOUBLE_QUOTED | OTHER

// No condition has these three: the lexer raises an error for them.
OPERATOR.3: /<=>|--|\/\*|\|\||&&|::|->|[*\/%&|^~.\[\]]/
COMPARISON.2: /==?|<>|!=|<=|>=|<|>/
SIGN: /[+-]/
STRING: /'(?:[^']|'')*'/
DOUBLE_QUOTED: /"[^"]*"/
NUMBER.4: /(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:BD|bd|[LlSsYyDdFf])?(?![\w.])/
QUOTED_NAME: /`(?:[^`]|``)*`/
NAME: /[^\W\d]\w*/
OTHER.-1: /[^\s]/

%declare _AND _OR NOT _BETWEEN _IN _LIKE _ESCAPE _IS NULL TRUE FALSE
%ignore /[ \t\r\n]+/
"""

_KEYWORDS = {word: f"_{word}" for word in ("AND", "OR", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS")} | {
    word: word for word in ("NOT", "NULL", "TRUE", "FALSE")
}
_LEADING_WORDS = {
    "SELECT": "a subquery",
    "EXISTS": "a subquery",
    "CASE": "a CASE expression",
    "INTERVAL": "an interval",
}


def refuse(text: str, start: int, end: int, reason: str, remedy: str | None = None) -> UnsupportedConditionError:
    """The error that names a part of the condition: its text, its position and why it cannot be in a selector."""
    part = shortened(text[start:end])
    return UnsupportedConditionError(
        f"The condition cannot be a selector: {part} (at character {start + 1}) {reason}.", remedy
    )


def parse_condition(text: str) -> Part:
    """Return lark's tree of a condition, with the positions of its parts."""
    from lark.exceptions import UnexpectedInput  # imported here: lark takes longer to import than this package

    if len(text) > MAX_LENGTH:
        raise UnsupportedConditionError(f"The condition has more than {MAX_LENGTH:,} characters.")
    if not text.strip():
        raise UnsupportedConditionError("The condition is empty.", "Leave out option selector to read all messages.")
    if (start := text.find("${")) >= 0:
        raise refuse(text, start, start + 2, "begins a variable, which Spark replaces by the value of a setting")
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        token: Any = getattr(error, "token", None)
        if token is None or token.type == "$END":
            raise UnsupportedConditionError(
                "The condition is incomplete: a part is missing at the end.", "Add it."
            ) from None
        raise _unexpected(text, token.start_pos, str(token), token.type) from None


@cache
def _parser() -> "Lark":
    from lark import Lark
    from lark.exceptions import UnexpectedToken

    def foreign(token: "Token") -> "Token":
        error: Any = UnexpectedToken
        raise error(token, set())

    def terminal(token: "Token") -> "Token":
        name = _KEYWORDS.get(token.upper()) if token.isascii() else None
        return token if name is None else type(token).new_borrow_pos(name, token.value, token)

    return Lark(
        _GRAMMAR,
        parser="lalr",
        lexer="basic",
        maybe_placeholders=True,
        propagate_positions=True,
        lexer_callbacks={"NAME": terminal} | dict.fromkeys(("OPERATOR", "DOUBLE_QUOTED", "OTHER"), foreign),
    )


def _unexpected(text: str, start: int, found: str, terminal: str) -> UnsupportedConditionError:
    before = re.search(r"(\w+)\s*$", text[:start])
    word = before[1] if before else ""
    if before and word.upper() in _LEADING_WORDS:
        return refuse(text, before.start(1), before.end(1), f"begins {_LEADING_WORDS[word.upper()]}")
    if before and found == "(" and word.upper() not in _KEYWORDS:
        return refuse(text, before.start(1), start + 1, "is a function, and selectors have no functions")
    if found in {"+", "-", "*", "/", "%"}:
        reason = "calculates, and a selector calculates otherwise: an overflow is no error, and 7 / 2 is 3"
    elif terminal == "DOUBLE_QUOTED":
        reason = "is in double quotes, which are a text or a name, by a setting of Spark"
        return refuse(text, start, start + len(found), reason, "Write texts as 'text' and names as `name`.")
    elif found in {".", "["}:
        reason = "reads a part of a column"
        return refuse(text, start, start + 1, reason, 'Read the property as a column: schema("region STRING").')
    elif terminal in {"OPERATOR", "NAME", "TRUE", "FALSE"}:
        reason = "is not a part that a selector can have"
    else:
        reason = "cannot stand here"
    return refuse(text, start, start + len(found), reason)


# --- names and constants ------------------------------------------------------------------------


def column_name(token: str) -> str:
    return token[1:-1].replace("``", "`") if token.startswith("`") else token


def constant(text: str, part: Any) -> Constant:
    """The value of a literal. Refuses literals that depend on Spark's session, and NULL."""
    start, end = part.meta.start_pos, part.meta.end_pos
    match part.data:
        case "boolean":
            return str(part.children[0]).upper() == "TRUE"
        case "string":
            return _string(text, part.children[0])
        case "number":
            return _number(text, start, end, part.children)
        case "typed_literal":
            word, literal = part.children
            if word.upper() != "TIMESTAMP":
                raise refuse(text, start, end, "is a literal that is compared with no header or property")
            return _timestamp(text, start, end, _string(text, literal))
    raise refuse(text, start, end, "is never equal or unequal to a value", "Test for null with IS NULL or IS NOT NULL.")


def _string(text: str, token: "Token") -> str:
    start = token.start_pos or 0
    if "\\" in token:
        raise refuse(
            text,
            start,
            start + len(token),
            "has a backslash, whose meaning depends on a setting of Spark",
            "Write LIKE '50!%' ESCAPE '!' for an escaped pattern, or filter in Spark, with where().",
        )
    return token[1:-1].replace("''", "'")


_INTEGER_LIMITS = {"": 1 << 63, "L": 1 << 63, "S": 1 << 15, "Y": 1 << 7}
_MAX_DIGITS = 38
"""Digits of Spark's decimals."""


def _number(text: str, start: int, end: int, children: list[Any]) -> Constant:
    """Spark's types: a whole number, a decimal with a point, a double with an exponent or the suffix D."""
    sign, token = "" if children[0] is None else str(children[0]), str(children[1]).upper()
    suffix = next((s for s in ("BD", "L", "S", "Y", "D", "F") if token.endswith(s)), "")
    digits = sign + token.removesuffix(suffix)
    whole = digits.lstrip("+-").isdecimal()
    if suffix in _INTEGER_LIMITS and whole:
        value = int(digits) if len(digits) <= _MAX_DIGITS else 1 << 64
        if abs(value) < _INTEGER_LIMITS[suffix]:
            return value
    elif suffix == "D" or (suffix == "" and "E" in digits):
        number = float(digits)
        if abs(number) != float("inf"):
            return number
    elif suffix in {"", "BD"} and len(re.sub(r"\D", "", digits.partition("E")[0])) <= _MAX_DIGITS:
        decimal = Decimal(digits)
        if abs(decimal.adjusted()) <= _MAX_DIGITS:
            return decimal
    raise refuse(text, start, end, "is a number that Spark and a selector do not compare alike")


_TIME = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?(?P<zone>Z|UTC|[+-]\d\d:\d\d)", re.ASCII
)


def _timestamp(text: str, start: int, end: int, literal: str) -> datetime:
    match = _TIME.fullmatch(literal.strip())
    try:
        if match:
            zone = "+00:00" if match["zone"] in {"Z", "UTC"} else match["zone"]
            return datetime.fromisoformat(match["time"] + zone).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise refuse(
        text,
        start,
        end,
        "is not a time with a time zone; without one, the time depends on the session of Spark",
        "Write it as TIMESTAMP '2026-11-26 08:30:00Z', with Z or an offset as +01:00.",
    )
