"""LIKE patterns: pattern and escape -> tokens -> regular expression.

The wildcards match code points, including line ends (``Pattern.DOTALL``). The escape character escapes only
``%``, ``_`` and itself. Before any other character it matches itself, as in ActiveMQ; §3.8.1.1 does not specify it.
"""

import re
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from itertools import groupby
from string import hexdigits

__all__ = ["ANY", "ONE", "Token", "choose_portable_escape", "compile_like", "matcher", "to_regex"]


class Wildcard(Enum):
    ONE = "_"
    ANY = "%"


ONE, ANY = Wildcard.ONE, Wildcard.ANY
Token = str | Wildcard


def compile_like(pattern: str, escape: str | None = None, *, activemq: bool = False) -> tuple[Token, ...]:
    r"""The pattern as runs of literal characters and wildcards.

    ``activemq`` reproduces a flaw: ActiveMQ writes an escaped escape character as ``\x`` and its hexadecimal digits
    into a Java regex, which reads two digits. If Java would find only one digit, a ValueError is raised.
    """
    return tuple(_merge_runs(_tokenize(pattern, escape, activemq=activemq)))


def _tokenize(pattern: str, escape: str | None, *, activemq: bool) -> Iterator[Token]:
    place = 0
    while place < len(pattern):
        character = pattern[place]
        following = pattern[place + 1 : place + 2]
        place += 1
        if character == escape and following and following in {"_", "%", escape}:
            place += 1
            if activemq:
                following, taken = _decode_java_hex_escape(following, pattern[place : place + 1])
                place += taken
            yield following
        elif character == "_":
            yield ONE
        elif character == "%":
            yield ANY
        else:
            yield character


def _decode_java_hex_escape(character: str, after: str) -> tuple[str, int]:
    r"""Return what Java reads from ``\x``, the digits of ``character`` and ``after``; and how much of ``after`` it
    reads.
    """
    digits = f"{ord(character):x}"
    if len(digits) > 1:
        return chr(int(digits[:2], 16)) + digits[2:], 0
    if after and after in hexdigits:
        return chr(int(digits + after, 16)), 1
    raise ValueError(f"ActiveMQ cannot compile a pattern that escapes {character!r}")


def _merge_runs(tokens: Iterator[Token]) -> Iterator[Token]:
    """Join the characters between wildcards. Several ``%`` beside each other are one."""
    for kind, run in groupby(tokens, lambda token: token if isinstance(token, Wildcard) else str):
        if kind is str:
            yield "".join(map(str, run))
        elif kind is ANY:
            yield ANY
        else:
            yield from run


_SPECIAL = re.compile(r"[\\.^$|?*+()\[\]{}]")


def to_regex(tokens: tuple[Token, ...]) -> str:
    r"""The body of a regular expression that Python, RE2 and Java read alike, for use in ``(?s)\A … \z``."""
    parts = {ONE: ".", ANY: ".*"}
    return "".join(_SPECIAL.sub(r"\\\g<0>", t) if isinstance(t, str) else parts[t] for t in tokens)


@lru_cache(1024)
def matcher(pattern: str, escape: str | None, activemq: bool) -> re.Pattern[str]:  # noqa: FBT001
    tokens = compile_like(pattern, escape, activemq=activemq)
    # A lazy wildcard avoids most of the backtracking.
    return re.compile(to_regex(tokens).replace(".*", ".*?") if ANY in tokens else to_regex(tokens), re.DOTALL)


_ESCAPES = "\\!#~|^"


def choose_portable_escape(tokens: tuple[Token, ...], preferred: str | None = None) -> tuple[str, str | None]:
    """Pattern and escape with the same meaning at every broker: an ASCII escape, used only where it is needed."""
    literal = "".join(t for t in tokens if isinstance(t, str))
    if not set(literal) & {"%", "_"}:
        return "".join(t if isinstance(t, str) else t.value for t in tokens), None
    choices = [c for c in (preferred, *_ESCAPES) if c and c not in "%_'" and " " <= c < "\x7f"]
    escape = next((c for c in choices if c not in literal), choices[0])
    special = re.compile(f"[%_{re.escape(escape)}]")
    escaped = (special.sub(lambda m: escape + m[0], t) if isinstance(t, str) else t.value for t in tokens)
    return "".join(escaped), escape
