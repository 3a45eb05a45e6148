"""Tells once of names that no message has, with the names that messages have: a misspelled column reads NULL, and a
misspelled part of a selector that Spark evaluates drops all messages.

It looks at the first rows only. Does not know protocols.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jms_selector
from jms_selector.syntax.tree import names as names_of
from pyspark_jms.jms.headers import SELECTOR_SCHEMA
from pyspark_jms.jms.rules import SET_BY_PROVIDER

__all__ = ["describe_unmatched", "look_for_dropped", "look_for_missing"]

_log = logging.getLogger("pyspark_jms.source")

FIRST_ROWS = 1000
"""Without a similar name, a property that so many messages lack may still be one that few messages have."""

_FEWEST_ROWS = 20
"""A property with a similar name in the first message may be another one, as fromDate beside toDate."""

_SHOWN_NAMES, _SHOWN_CHARACTERS = 20, 60
"""What the line shows of the names that producers have given."""


@dataclass(slots=True)
class _Watch:
    """Of one read in this process: a task is short, and Spark keeps its process."""

    rows: int = 0
    done: bool = False
    seen: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    """The columns that a row had."""

    def look(
        self, rows: int, names: Collection[str], describe: Callable[[Collection[str]], "Description"]
    ) -> "Description":
        """Add so many rows, and the names of their properties. It is done when they are enough."""
        self.rows += rows
        self.seen.update(names)
        found = describe(self.seen)
        self.done = self.rows >= (_FEWEST_ROWS if found.is_misspelled else FIRST_ROWS)
        return found


@lru_cache(64)
def _watch_of(source: str, asked: tuple[str, ...] | str) -> _Watch:  # noqa: ARG001  they are its key
    return _Watch()


def look_for_missing(source: str, columns: tuple[str, ...], rows: Any, names: Callable[[], Collection[str]]) -> None:
    """Look at the property columns of a batch of rows. ``names`` reads the names of its messages' properties."""
    watch = _watch_of(source, columns)
    if watch.done or not rows.num_rows:
        return
    watch.given.update(name for name in columns if rows.column(name).null_count < rows.num_rows)
    missing = [name for name in columns if name not in watch.given]
    found = watch.look(rows.num_rows, names() if missing else (), partial(describe, missing))
    watch.done = watch.done or not missing
    if watch.done and missing:
        _log.warning(
            "! none of the first %d messages from %s has the property of column %s, so the column is NULL. %s",
            watch.rows,
            source,
            found.missing,
            found.seen,
        )


def look_for_dropped(
    source: str,
    residual: jms_selector.Selector,
    rows: int,
    kept: int,
    names: Callable[[], Collection[str]],
    *,
    ends: bool,
) -> None:
    """Look at how many of a batch of rows the residual kept. ``ends``: more messages may never come, so tell of the
    first ones.
    """
    watch = _watch_of(source, residual.text)
    watch.done = watch.done or kept > 0
    if watch.done or not rows:
        return
    found = watch.look(rows, names(), partial(describe_unmatched, residual))
    watch.done = watch.done or (ends and bool(found.missing))
    if watch.done:
        _log.warning(
            "! the part of the selector that Spark evaluates has dropped all of the first %d messages from %s. %s",
            watch.rows,
            source,
            found.sentence,
        )


class Description(NamedTuple):
    missing: str
    seen: str
    is_misspelled: bool

    @property
    def sentence(self) -> str:
        return f"None of them has {self.missing}. {self.seen}" if self.missing else self.seen


def describe(missing: Iterable[str], seen: Collection[str]) -> Description:
    """Words for names that no message has, with the similar names that messages have."""
    seen = set(seen) - SET_BY_PROVIDER
    near = {name: get_close_matches(name, seen - {name}, n=1) for name in missing}
    guesses = [f"{name} (did you mean {_shown(found[0])}?)" if found else name for name, found in near.items()]
    listed = ", ".join(map(_shown, sorted(seen)[:_SHOWN_NAMES])) or "none"
    return Description(", ".join(guesses), f"Properties of these messages: {listed}", any(near.values()))


def describe_unmatched(selector: jms_selector.Selector, seen: Collection[str]) -> Description:
    """Words for the names of a selector that no message has."""
    used = () if selector.root is None else names_of(selector.root)
    return describe([name for name in used if name not in SET_BY_PROVIDER.union(SELECTOR_SCHEMA.kinds, seen)], seen)


def _shown(name: str) -> str:
    return name if name.isprintable() and len(name) <= _SHOWN_CHARACTERS else repr(name[:_SHOWN_CHARACTERS])
