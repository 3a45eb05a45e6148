"""Tells once of names that no message has, with the names that messages have: a misspelled column reads NULL, and a
misspelled part of a selector that Spark evaluates drops all messages.

It looks at the first rows only. Does not know protocols.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
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


def look_for_missing(source: str, columns: tuple[str, ...], rows: Any, names: Callable[[], Collection[str]]) -> None:
    """Look at the property columns of a batch of rows. ``names`` reads the names of its messages' properties."""
    watch = _watch_of(source, columns)
    if not watch.done and rows.num_rows:
        watch.look(rows, names)


@dataclass(slots=True)
class _Watch:
    source: str
    missing: list[str]
    rows: int = 0
    done: bool = False
    seen: set[str] = field(default_factory=set)

    def look(self, rows: Any, names: Callable[[], Collection[str]]) -> None:
        self.rows += rows.num_rows
        self.missing = [name for name in self.missing if rows.column(name).null_count == rows.num_rows]
        if self.missing:
            self.seen.update(names())
        found = describe(self.missing, self.seen)
        enough = _FEWEST_ROWS if found.is_misspelled else FIRST_ROWS
        self.done = not self.missing or self.rows >= enough
        if self.done and self.missing:
            _log.warning(
                "! none of the first %d messages from %s has the property of column %s, so the column is NULL. %s",
                self.rows,
                self.source,
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
    watch = _residual_watch_of(source, residual.text)
    watch.done = watch.done or kept > 0
    if not watch.done and rows:
        watch.look(source, residual, rows, names(), ends=ends)


@dataclass(slots=True)
class _ResidualWatch:
    rows: int = 0
    done: bool = False
    seen: set[str] = field(default_factory=set)

    def look(
        self, source: str, residual: jms_selector.Selector, rows: int, names: Collection[str], *, ends: bool
    ) -> None:
        self.rows += rows
        self.seen.update(names)
        found = describe_unmatched(residual, self.seen)
        enough = _FEWEST_ROWS if found.is_misspelled else FIRST_ROWS
        self.done = self.rows >= enough or (ends and bool(found.missing))
        if self.done:
            _log.warning(
                "! the part of the selector that Spark evaluates has dropped all of the first %d messages from %s. %s",
                self.rows,
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


@lru_cache(64)
def _watch_of(source: str, columns: tuple[str, ...]) -> _Watch:
    """One for each read in this process: a task is short, and Spark keeps its process."""
    return _Watch(source, list(columns))


@lru_cache(64)
def _residual_watch_of(source: str, text: str) -> _ResidualWatch:  # noqa: ARG001  they are its key
    return _ResidualWatch()
