"""Text -> tree: checks limits, prefixes and comments, and caches the result.

The default grammar is the specification's; a broker's dialect uses that broker's grammar.
:mod:`~jms_selector.syntax.build` builds the tree.
"""

import re
from functools import lru_cache

from jms_selector.errors import InvalidSelectorError, SelectorTooLargeError
from jms_selector.syntax.dialects import CONVERT_PREFIX, HYPHENS_PREFIX, NO_PREFIX, Dialect, dialect_of
from jms_selector.syntax.kinds import NO_HEADERS, Schema
from jms_selector.syntax.tree import Selector

__all__ = ["MAX_LENGTH", "parse"]

MAX_LENGTH = 1 << 18
"""Maximum characters of a selector: 3,000 terms of 80 characters. Brokers refuse far shorter STOMP headers."""

CACHED = 256
"""Maximum number of parsed selectors in the cache. A query has one selector, and a notebook has a few."""


def parse(text: str, *, strict: bool = False, dialect: str | Dialect = "spec", schema: Schema = NO_HEADERS) -> Selector:
    """Parse a selector. An ``InvalidSelectorError`` has the position and the reason.

    By default the parser accepts every form that some broker accepts, with the specification's precedence.
    ``strict`` accepts only what the specification and its test suite allow, and of headers those of ``schema``. In the
    dialects of ActiveMQ, the parser follows the broker: NOT binds tighter than comparison, and prefixes are recognised.
    """
    return _parse(text, strict, dialect_of(dialect).name, schema)


@lru_cache(CACHED)
def _parse(  # positional, so that equal calls share a cache entry
    text: str,
    strict: bool,  # noqa: FBT001
    name: str,
    schema: Schema = NO_HEADERS,
) -> Selector:
    # Imported here because it imports lark, which takes longer to import than this whole package.
    from jms_selector.syntax.build import Builder

    dialect = dialect_of(name)
    if len(text) > MAX_LENGTH:
        raise SelectorTooLargeError(
            text,
            MAX_LENGTH,
            f"The selector has {len(text):,} characters, more than {MAX_LENGTH:,}.",
            hint="Use fewer conditions, or filter in Spark.",
        )
    body, prefixes = _cut_prefixes(text, dialect)
    if not dialect.activemq and not body.strip(" \t\f\r\n"):
        return Selector(text, None)
    if strict:
        _refuse_comments(text)
    hyphens = prefixes.get(HYPHENS_PREFIX, False)
    builder = Builder(text, len(text) - len(body), dialect, strict=strict, hyphens=hyphens, schema=schema)
    return Selector(text, builder.build(), prefixes.get(CONVERT_PREFIX, False))


def _cut_prefixes(text: str, dialect: Dialect) -> tuple[str, dict[str, bool]]:
    """Remove the prefixes from the start of the text. Of several prefixes of a kind, the last one counts."""
    found: dict[str, bool] = {}
    many = len(dialect.prefixes) > 1
    while prefix := next((p for p in dialect.prefixes if text.startswith(p)), None):
        text = text.removeprefix(prefix)
        found[prefix.removeprefix(NO_PREFIX)] = not prefix.startswith(NO_PREFIX)
        if not many:
            break
    return text, found


_COMMENT = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|(?P<comment>/\*)")


def _refuse_comments(text: str) -> None:
    """Refuse comments, which §3.8.1.1 does not have. Without ``strict`` they are skipped, as in ActiveMQ."""
    for match in _COMMENT.finditer(text):
        if match["comment"]:
            raise InvalidSelectorError(
                text, match.start("comment"), "A comment cannot stand here", hint="A selector cannot have comments."
            )
