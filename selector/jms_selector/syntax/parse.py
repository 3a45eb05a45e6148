"""Text to tree: the limits, prefixes and comments of a selector, and a cache.

The default grammar is the specification's; a named dialect is read by its broker's own grammar. The rest of the way
is :mod:`~jms_selector.syntax.grammar` (lark's tree) and :mod:`~jms_selector.syntax.build` (ours).
"""

import re
from functools import lru_cache

from jms_selector.errors import InvalidSelectorError, SelectorTooLargeError
from jms_selector.syntax.dialects import Dialect, dialect_of
from jms_selector.syntax.tree import Selector

__all__ = ["MAX_LENGTH", "parse"]

MAX_LENGTH = 1 << 18
"""Characters of a selector. 3,000 terms of 80 characters fit; a broker refuses far shorter STOMP headers."""

CACHED = 256
"""Parsed selectors kept: a query has one, a notebook a few."""

_CONVERT = "convert_string_expressions:"
_HYPHENS = "hyphenated_props:"
_NO = "no_"


def parse(text: str, *, strict: bool = False, dialect: str | Dialect = "spec") -> Selector:
    """Read a selector; ``InvalidSelectorError`` says where and why it is none.

    By default every form is read that some broker takes, with the specification's precedence.
    ``strict`` holds to the specification and to what its test suite demands. ``dialect`` artemis or
    classic reads as that broker does: NOT binds tighter than comparison, and prefixes are known.
    """
    return _parse(text, strict, dialect_of(dialect).name)


@lru_cache(CACHED)
def _parse(text: str, strict: bool, name: str) -> Selector:  # noqa: FBT001 - a cache wants positions
    # Imported here because they import lark, which takes longer than all of this package.
    from jms_selector.syntax.build import Builder
    from jms_selector.syntax.grammar import lark_tree
    from jms_selector.syntax.reading import Reading

    dialect = dialect_of(name)
    if len(text) > MAX_LENGTH:
        raise SelectorTooLargeError(
            text,
            MAX_LENGTH,
            f"The selector has {len(text):,} characters, more than {MAX_LENGTH:,}.",
            hint="Filter by fewer conditions, or in Spark.",
        )
    body, prefixes = _cut_prefixes(text, dialect)
    if not dialect.activemq and not body.strip(" \t\f\r\n"):
        return Selector(text, None)
    if strict:
        _refuse_comments(text)
    hyphens = prefixes.get(_HYPHENS, False)
    reading = Reading(text, len(text) - len(body), dialect, strict=strict, hyphens=hyphens)
    return Selector(text, Builder(reading).build(lark_tree(reading)), prefixes.get(_CONVERT, False))


def _cut_prefixes(text: str, dialect: Dialect) -> tuple[str, dict[str, bool]]:
    """ActiveMQ's switches, at offset 0 only, the last of a kind wins."""
    found: dict[str, bool] = {}
    many = len(dialect.prefixes) > 1
    while prefix := next((p for p in dialect.prefixes if text.startswith(p)), None):
        text = text.removeprefix(prefix)
        found[prefix.removeprefix(_NO)] = not prefix.startswith(_NO)
        if not many:
            break
    return text, found


_COMMENT = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|(?P<comment>/\*)")


def _refuse_comments(text: str) -> None:
    """§3.8.1.1 knows none; by default they are skipped, as ActiveMQ does."""
    for match in _COMMENT.finditer(text):
        if match["comment"]:
            raise InvalidSelectorError(
                text, match.start("comment"), "A comment cannot stand here", hint="A selector has no comments."
            )
