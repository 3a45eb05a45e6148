"""Tells of a selector that matches nothing although its queues have messages, with the names that these have: once of a
query that runs, and at the end of a read without a row.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jms_selector
from jms_selector.syntax.dialects import CONVERT_PREFIX
from pyspark_jms.errors import JMSError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Reading
from pyspark_jms.source.missing_properties import describe_unmatched
from pyspark_jms.source.peek import peek

__all__ = ["UnmatchedSelector", "peek_or_tell", "warn_of_unmatched"]

_log = logging.getLogger("pyspark_jms.source")

_LOOKED_AT = 100
"""Messages of the queues whose names are read."""


class UnmatchedSelector:
    """Call it with the number of messages that the queues deliver to nobody, at each request for their counts."""

    def __init__(self, reading: Reading, received: Callable[[], int]) -> None:
        self._reading, self._received = reading, received
        self._times = 0
        self._done = reading.options.selector is None

    def __call__(self, undelivered: int) -> None:
        if self._done or self._received():
            self._done = True
            return
        self._times = self._times + 1 if undelivered > 0 else 0
        if self._times > 1:  # the first count may be older than the subscription
            self._done = True
            self._warn(undelivered)

    def _warn(self, undelivered: int) -> None:
        options = self._reading.options
        try:
            hint = _hint(options, _seen(self._reading)[1])
        except JMSError as error:
            hint = f"Their properties are not known: {error.fact}"
        _log.warning(
            "! no message has matched the selector since the query started; %d wait on %s. %s",
            undelivered,
            ", ".join(options.queues),
            hint,
        )


def peek_or_tell(reading: Reading, **how: str) -> Iterator[Any]:
    """``peek``, and a line if it shows no row for a selector."""
    rows = 0
    for batch in peek(reading, **how):
        rows += batch.num_rows
        yield batch
    if not rows:
        warn_of_unmatched(reading)


def warn_of_unmatched(reading: Reading) -> None:
    """Log a line when a read ends without a row, if it has a selector, and its queues have messages."""
    options = reading.options
    queues = options.queues
    if options.selector is None or not queues:
        return
    try:
        count, seen = _seen(reading)
    except JMSError as error:
        _log.debug("= it is not known whether the selector has left messages out: %s", error.fact)
        return
    if count:
        _log.warning(
            "! the read ends without a row, and no message of %s has matched the selector. %s",
            ", ".join(queues),
            _hint(options, seen),
        )


def _hint(options: SourceOptions, seen: set[str]) -> str:
    assert options.selector is not None
    selector = jms_selector.parse(options.selector.text.removeprefix(CONVERT_PREFIX))
    return describe_unmatched(selector, seen).sentence


def _seen(reading: Reading) -> tuple[int, set[str]]:
    """Return how many messages the queues show, up to a limit, and the names of their properties."""
    connection = replace(reading.options.connection, client_id=None)  # the query's connection uses it
    every = reading.with_options(
        connection=connection, selector=None, columns=None, max_messages=_LOOKED_AT, on_bad_message="keep"
    )
    count, names = 0, set[str]()
    for batch in peek(every, limits=None):
        count += batch.num_rows
        names.update(batch.column("properties").keys.unique().to_pylist())
    return count, names
