"""Tells once of a selector that matches nothing although its queues have messages, with the names that these have."""

import logging
from collections.abc import Callable
from dataclasses import replace

import jms_selector
from jms_selector.meaning.lenient import HEADERS
from jms_selector.syntax.dialects import CONVERT_PREFIX
from jms_selector.syntax.tree import names
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.jms.rules import SET_BY_PROVIDER
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.source.missing_properties import describe
from pyspark_jms.source.peek import peek

__all__ = ["UnmatchedSelector"]

_log = logging.getLogger("pyspark_jms.source")

_LOOKED_AT = 100
"""Messages of the queues whose names are read."""


class UnmatchedSelector:
    """Call it with the number of messages that the queues deliver to nobody, at each request for their counts."""

    def __init__(self, options: SourceOptions, protocol: SourceProtocol, received: Callable[[], int]) -> None:
        self._options, self._protocol, self._received = options, protocol, received
        self._times = 0
        self._done = options.selector is None

    def __call__(self, undelivered: int) -> None:
        if self._done or self._received():
            self._done = True
            return
        self._times = self._times + 1 if undelivered > 0 else 0
        if self._times > 1:  # the first count may be older than the subscription
            self._done = True
            self._warn(undelivered)

    def _warn(self, undelivered: int) -> None:
        queues = [each.name for each in self._options.destinations if each.kind is DestinationKind.QUEUE]
        _log.warning(
            "! no message has matched the selector since the query started; %d wait on %s. %s",
            undelivered,
            ", ".join(queues),
            self._hint(),
        )

    def _hint(self) -> str:
        try:
            seen = self._names_seen()
        except JMSError as error:
            return f"Their properties are not known: {error.fact}"
        assert self._options.selector is not None
        root = jms_selector.parse(self._options.selector.text.removeprefix(CONVERT_PREFIX)).root
        used = () if root is None else names(root)
        found = describe([name for name in used if name not in SET_BY_PROVIDER.union(HEADERS, seen)], seen)
        return f"None of the first ones has {found.missing}. {found.seen}" if found.missing else found.seen

    def _names_seen(self) -> set[str]:
        connection = replace(self._options.connection, client_id=None)  # the query's connection uses it
        every = replace(self._options, selector=None, columns=None, max_messages=_LOOKED_AT, on_bad_message="keep")
        batches = peek(replace(every, connection=connection), self._protocol)
        return {name for batch in batches for name in batch.column("properties").keys.unique().to_pylist()}
