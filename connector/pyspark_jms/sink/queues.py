"""The queues that rows are sent to → ``InvalidDestinationError`` for a topic, which such a send would change for good.

Artemis 2.55 confirms the send, over both protocols, and refuses later STOMP subscriptions to the topic.
"""

from collections.abc import Sequence

import pyarrow as pa

from pyspark_jms.columns.arrays import Int64s
from pyspark_jms.columns.row_parts import sink_columns
from pyspark_jms.columns.rows import Rows, distinct_destinations
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.links import SinkLink

__all__ = ["TargetQueues"]

_MOST_ASKED = 100
"""New names of a batch that are asked for: rows may name as many queues as there are rows."""

_MOST_REMEMBERED = 10_000
_asked: set[tuple[ConnectionSettings, str]] = set()
"""The queues that this process need not ask for again: Spark runs many tasks in a Python worker."""


class TargetQueues:
    """The queues of one task."""

    def __init__(self, options: SinkOptions, link: SinkLink) -> None:
        self._options, self._link = options, link
        self._refused: dict[str, InvalidDestinationError] = {}

    def require(self, batch: pa.RecordBatch, first_row: int, numbers: Int64s | None = None) -> None:
        """Raise for rows that are sent to the name of a topic. If they name it themselves, they are the error's cause.

        Nothing is known without the permission ``manage``.
        """
        column = sink_columns(batch, self._options.property_columns).get("destination")
        columns = {} if column is None else {"destination": column}
        rows = Rows(columns=columns, first=first_row, count=batch.num_rows, numbers=numbers)
        default = self._options.destination
        found = distinct_destinations(rows, default, lambda destination, _: destination).distinct
        self._ask([each.name for each in found if each.kind is DestinationKind.QUEUE and not each.temporary])
        if self._refused:
            distinct_destinations(rows, default, self._usable)

    def _usable(self, destination: Destination, _: bool) -> None:  # noqa: FBT001
        if destination.kind is DestinationKind.QUEUE and destination.name in self._refused:
            raise self._refused[destination.name]

    def _ask(self, names: Sequence[str]) -> None:
        settings = self._options.connection
        new = [name for name in dict.fromkeys(names) if (settings, name) not in _asked][:_MOST_ASKED]
        if not new:
            return
        try:
            self._link.require_queues(new)
        except InvalidDestinationError:
            self._refused |= {name: error for name in new if (error := self._error_of(name)) is not None}
        if len(_asked) > _MOST_REMEMBERED:
            _asked.clear()
        _asked.update((settings, name) for name in new if name not in self._refused)

    def _error_of(self, name: str) -> InvalidDestinationError | None:
        try:
            self._link.require_queues([name])
        except InvalidDestinationError as error:
            return error
        return None
