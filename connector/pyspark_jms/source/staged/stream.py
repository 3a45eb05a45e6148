"""A staged read: Spark's calls on the driver, in their order → the owner of the stream and the parts of each batch."""

import json
import logging
import time
from typing import Any

from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.owner_table import Plan, Read
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.management.missing_queues import warn_of_missing_queues
from pyspark_jms.management.queue_watch import QueueWatch
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.commit_order import CommitOrder
from pyspark_jms.source.draining import Drain
from pyspark_jms.source.driver_heap import driver_heap, warn_of_small_heap
from pyspark_jms.source.progress import Counts, compared
from pyspark_jms.source.staged.intake import Intake
from pyspark_jms.source.staged.links import StagedProtocol
from pyspark_jms.source.staged.owner import StreamOwner
from pyspark_jms.source.staged.progress import figures
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.task_inputs import TaskInput, TaskInputs

__all__ = ["StagedSource"]

_log = logging.getLogger("pyspark_jms.source")


class StagedSource:
    """In the streaming runner. Offsets are the dictionaries that Spark logs (``delivery.staging.offset``)."""

    def __init__(self, options: SourceOptions, protocol: StagedProtocol) -> None:
        self._options = options
        self._protocol = protocol
        self._stop = StopRequest()
        self._stop.install()
        warn_of_small_heap(options.connection.max_message_bytes, driver_heap())
        self._draining = False
        self._counts = Counts()
        self._reached = 0
        """The end of the last batch in the commit log."""
        self._owner: StreamOwner | None = None
        self._intake: Intake | None = None
        self._watch: QueueWatch | None = None
        self._order = CommitOrder(
            "A staged read deletes what the commit log holds, and with this setting a restart may need it again.",
            "or leave deliveryGuarantee out (at-least-once)",
        )
        self._tasks = TaskInputs(options, protocol)

    def initial_offset(self) -> dict[str, Any]:
        """R2: names no stream yet. Spark asks again until the first batch is in its log."""
        return _logged(Offset())

    def drain(self) -> None:
        self._draining = True

    def latest_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        """Spark asks for what follows ``start`` only when the batch that ends there is in its commit log."""
        begin = _parsed(start)
        owner = self._open()
        self._order.requested(begin.seq)
        certain = begin.seq if self._draining else self._order.certain(begin.seq)
        self._reached = begin.seq
        planned = owner.plan(Plan(begin, certain), restarted=begin.id is not None).offset
        owner.memory.forget_below(begin.seq)
        self._tasks.release(begin.seq)
        return _logged(planned)

    def _open(self) -> StreamOwner:
        if self._owner is None:
            arrivals = self._protocol.arrivals()
            options = self._options
            draining = Drain(time.time() * 1000, options.idle_timeout) if self._draining else None
            self._intake = Intake(options, stop=self._stop, arrivals=arrivals, counts=self._counts, drain=draining)
            self._owner = StreamOwner(options, self._protocol, self._stop, self._intake, arrivals)
            queues = [each.name for each in options.destinations if each.kind is DestinationKind.QUEUE]
            warn_of_missing_queues(self._protocol.open_management, options.connection, queues)
            if queues and not self._draining:
                moved = compared(options, lambda: self._owner.moved if self._owner else 0)
                self._watch = QueueWatch(self._protocol.open_management, options.connection, queues, lambda: 0, moved)
        return self._owner

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskInput]:
        begin, last = _parsed(start), _parsed(end)
        if begin.seq == last.seq:
            return []
        owner = self._open()
        self._order.require(begin.seq)
        batch = owner.read(Read(begin, last))
        if batch.missing:
            lost = sum(b - a for a, b in batch.missing)
            _log.error("! %d messages of the batch [%d, %d) are lost (failOnDataLoss=false)", lost, begin.seq, last.seq)
        memory = self._tasks.memory_for(last.seq) if self._tasks.are_here() else None
        tasks = list(owner.memory.tasks((batch.start, *batch.cuts), batch.end, memory))
        return self._tasks.of(tasks, {part.dialect for task in tasks for part in task})

    def commit(self, end: dict[str, Any]) -> None:
        """``end`` is in Spark's commit log. What lies below is retired with the next move."""
        self._order.committed(_parsed(end).seq)

    def progress(self) -> dict[str, object]:
        if self._owner is None or self._intake is None:
            return {}
        watched = {} if self._watch is None else self._watch.figures()
        dropped = self._tasks.dropped()
        return figures(self._owner, self._intake, self._counts, watched, reached=self._reached, dropped=dropped)

    def stop(self) -> None:
        """Give back what is not moved, and the lock."""
        if self._watch is not None:
            self._watch.close()
        if self._owner is not None:
            self._owner.close()
        self._tasks.close()


def _logged(offset: Offset) -> dict[str, Any]:
    logged: dict[str, Any] = json.loads(offset.text())
    return logged


def _parsed(offset: dict[str, Any]) -> Offset:
    try:
        return Offset.parse(json.dumps(offset))
    except ValueError:
        raise IllegalStateError(
            "The checkpoint holds an offset that is not of a read with deliveryGuarantee=exactly-once.",
            "The guarantee of a checkpoint cannot be changed: use a checkpointLocation of its own.",
        ) from None
