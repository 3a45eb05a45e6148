"""The destinations that rows are sent to → ``InvalidDestinationError`` for one at which nothing would arrive."""

from collections.abc import Sequence

import pyarrow as pa

from pyspark_jms.columns.arrays import Int64s
from pyspark_jms.columns.row_parts import sink_columns
from pyspark_jms.columns.rows import Rows, distinct_destinations
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.links import SinkLink

__all__ = ["Targets"]

_MOST_ASKED = 100
"""New destinations of a batch that are asked for: rows may name as many as there are rows."""

_MOST_REMEMBERED = 10_000
_asked: set[tuple[ConnectionSettings, Destination]] = set()
"""Destinations that this process need not ask for again: Spark runs many tasks in a Python worker."""


class Targets:
    """The destinations of one task."""

    def __init__(self, options: SinkOptions, link: SinkLink) -> None:
        self._options, self._link = options, link
        self._refused: dict[Destination, InvalidDestinationError] = {}

    def require(self, batch: pa.RecordBatch, first_row: int, numbers: Int64s | None = None) -> None:
        """Raise for rows that would not arrive. If they name the destination themselves, they are the error's cause.

        Nothing is known without the permission ``manage``.
        """
        column = sink_columns(batch, self._options.property_columns).get("destination")
        columns = {} if column is None else {"destination": column}
        rows = Rows(columns=columns, first=first_row, count=batch.num_rows, numbers=numbers)
        default = self._options.destination
        found = distinct_destinations(rows, default, lambda destination, _: destination).distinct
        self._ask([each for each in found if not each.temporary])
        if self._refused:
            distinct_destinations(rows, default, self._usable)

    def _usable(self, destination: Destination, _: bool) -> None:  # noqa: FBT001
        if destination in self._refused:
            raise self._refused[destination]

    def _ask(self, destinations: Sequence[Destination]) -> None:
        settings = self._options.connection
        new = [each for each in destinations if (settings, each) not in _asked][:_MOST_ASKED]
        if not new:
            return
        try:
            self._link.require_destinations(new)
        except InvalidDestinationError:
            self._refused |= {each: error for each in new if (error := self._error_of(each)) is not None}
        if len(_asked) > _MOST_REMEMBERED:
            _asked.clear()
        _asked.update((settings, each) for each in new if each not in self._refused)

    def _error_of(self, destination: Destination) -> InvalidDestinationError | None:
        try:
            self._link.require_destinations([destination])
        except InvalidDestinationError as error:
            return error
        return None
