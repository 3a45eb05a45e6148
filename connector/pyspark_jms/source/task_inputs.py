"""What the tasks of a batch read and make rows of, and what they report: whether they run here, what they dropped."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from pyspark_jms.blocks.block import MessageBlock, PartitionSlice, joined
from pyspark_jms.blocks.shared_memory import SharedMemory
from pyspark_jms.columns.origins import origin_at, origins
from pyspark_jms.columns.schema import ReadColumns, WantedColumns
from pyspark_jms.columns.selection import Selection, selection
from pyspark_jms.errors import BadMessageError, CorruptJournalError, JournalError
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.broker import dialect_of
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Reading
from pyspark_jms.source.mailbox import DropReports, LocalityProbe, MailAddress, answer, report_dropped
from pyspark_jms.source.missing_properties import look_for_dropped, look_for_missing

__all__ = ["TaskInput", "TaskInputs", "TaskReports", "read_task", "rows_of", "together"]

_LOOKED_AT = 100
"""Messages of a part whose names are read for the line about a property that none has."""

_TOGETHER_BYTES, _TOGETHER_MESSAGES = 15 << 20, 1 << 14
"""Neighbours are decoded together up to this size: one large block is faster than many small ones."""
_FEW_MESSAGES = 1 << 10
"""Parts of two destinations are decoded together if both have no more: messages of two producers take a µs longer each
when they are decoded together, and a decode costs 4 ms beside its rows."""

# --- parts of a batch -------------------------------------------------------------------------------


def together(parts: Iterable[PartitionSlice]) -> Iterator[list[PartitionSlice]]:
    """Neighbours that one RecordBatch can have the rows of."""
    found: list[PartitionSlice] = []
    size = messages = 0
    for part in map(_loaded, parts):
        block = part.place.load()
        size, messages = size + len(block.data), messages + len(block)
        if found and not (_follows(found[-1], part) and size <= _TOGETHER_BYTES and messages <= _TOGETHER_MESSAGES):
            yield found
            found, size, messages = [], len(block.data), len(block)
        found.append(part)
    if found:
        yield found


def _follows(before: PartitionSlice, part: PartitionSlice) -> bool:
    end = before.first_sequence + len(before)
    if (end, before.dialect, before.delivered_ms) != (part.first_sequence, part.dialect, part.delivered_ms):
        return False
    if before.source == part.source:
        return True
    kinds = {Destination.parse(each.source).kind for each in (before, part)}
    return len(kinds) == 1 and max(len(before), len(part)) <= _FEW_MESSAGES


def rows_of(parts: Sequence[PartitionSlice], reading: Reading, *, run_ends: bool | None = None) -> tuple[Any, int]:
    """One RecordBatch with the columns that are asked for, and how many messages the selector dropped. ``parts``: as
    ``together`` has them.

    With ``onBadMessage=fail`` a ``BadMessageError`` instead of a row with ``body_error``, also if that column is not
    asked for. ``run_ends``: of a task, whether its query ends with the messages that were there (AvailableNow).
    """
    options, first = reading.options, parts[0]
    source = origins([(Destination.parse(part.source), len(part)) for part in parts])
    chosen = _selection(options, first.dialect)
    blocks = [part.place.load() for part in parts]
    block = joined(blocks)
    wanted = _wanted(options, chosen)
    batch = reading.decode(block, first.dialect, source, first_sequence=first.first_sequence, wanted=wanted)
    has_unheld_time = partial(reading.protocol.has_unheld_time, first.dialect, block)
    kept = batch if chosen is None else chosen.apply(batch, origin_at(source, 0).kind, has_unheld_time)
    from pyspark_jms.columns.envelope import open_envelopes  # with pyarrow's kernels, as decode

    rows = open_envelopes(kept, options.body_type)
    asked, errors = _asked(options.columns, rows)
    if options.on_bad_message == "fail":
        _require_good(batch.column("body_error"))
        _require_good(errors)
    residual = None if run_ends is None or chosen is None else chosen.pushed.residual
    properties = () if options.columns is None else options.columns.properties
    if residual is not None or properties:
        for part, one, (begin, end) in zip(parts, blocks, _spans(parts, kept), strict=True):
            names = partial(_names_in, part, one, reading)
            if residual is not None:
                look_for_dropped(part.source, residual, len(part), end - begin, names, ends=bool(run_ends))
            if properties:
                look_for_missing(part.source, properties, asked.slice(begin, end - begin), names)
    if first.delivered_ms is not None:
        asked = _without_past_expirations(asked, first.delivered_ms)
    return asked, batch.num_rows - kept.num_rows


def _spans(parts: Sequence[PartitionSlice], kept: Any) -> list[tuple[int, int]]:
    """Return where the rows of each part are among those that are kept."""
    if len(parts) == 1:
        return [(0, kept.num_rows)]
    ends = np.array([part.first_sequence + len(part) for part in parts])
    return list(pairwise([0, *np.searchsorted(kept.column("sequence").to_numpy(), ends).tolist()]))


def _names_in(part: PartitionSlice, block: MessageBlock, reading: Reading) -> list[str]:
    """The names of the properties of the first messages."""
    first, wanted = block.slice(0, min(len(block), _LOOKED_AT)), WantedColumns.of({"properties"}, ())
    batch = reading.decode(first, part.dialect, Destination.parse(part.source), body_type="auto", wanted=wanted)
    names: list[str] = batch.column("properties").keys.unique().to_pylist()
    return names


def _without_past_expirations(rows: Any, delivered_ms: int) -> Any:
    """A message that was delivered had not expired: its producer has given it the time of an event, or no clock."""
    place = rows.schema.get_field_index("JMSExpiration")
    if place < 0 or rows.column(place).null_count == rows.num_rows:
        return rows
    import pyarrow as pa
    import pyarrow.compute as pc

    column = rows.column(place)
    delivered = pa.scalar(delivered_ms * 1000, pa.int64()).cast(column.type)
    living = pc.if_else(pc.greater(column, delivered), column, pa.scalar(None, column.type))
    return rows.set_column(place, rows.schema.field(place), living)


def may_drop(source: Destination, dialect: str, options: SourceOptions) -> bool:
    """Return whether messages from there may become no row."""
    chosen = _selection(options, dialect)
    return chosen is not None and chosen.may_drop(source.kind)


def _selection(options: SourceOptions, dialect: str) -> Selection | None:
    if options.selector is None:
        return None
    broker = dialect_of(options.connection.protocol, dialect)
    return selection(options.selector, dialect, broker.selector_dialect)


def _wanted(options: SourceOptions, chosen: Selection | None) -> WantedColumns | None:
    """Return what is decoded: what is asked for, what decides about the rows, and their number; None for everything."""
    if options.columns is None or options.on_bad_message == "fail":
        return None
    return options.columns.wanted({"sequence"} if chosen is None else {"sequence", *chosen.columns()})


def _asked(columns: ReadColumns | None, rows: Any) -> tuple[Any, Any]:
    """The rows with the columns that are asked for, and their ``body_error``."""
    if columns is None:
        return rows, rows.column("body_error")
    from pyspark_jms.columns.read_properties import asked_rows  # with pyarrow's kernels, as decode

    return asked_rows(columns, rows)


def _require_good(errors: Any) -> None:
    reasons = errors.drop_null()
    if len(reasons):
        raise BadMessageError(
            f"{len(reasons)} of {len(errors)} messages cannot be mapped, the first because: {reasons[0].as_py()}",
            "They stay on the broker, or in the journal. onBadMessage=keep makes rows with body_error and the bytes.",
        )


# --- the parts of a task ----------------------------------------------------------------------------

_NOT_REPORTED = "not known: tasks on other machines count it in their own logs"


@dataclass(frozen=True, slots=True, repr=False)
class TaskInput:
    """What one task reads, and where it may post what only a task knows."""

    parts: list[PartitionSlice]
    question: MailAddress | None = None
    drops: MailAddress | None = None
    run_ends: bool = False
    """Whether the query ends with the messages that were there (AvailableNow)."""

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __repr__(self) -> str:
        return f"{len(self)} JMS messages"


class TaskReports:
    """In the runner: what tasks report to it. ``addresses`` for the tasks of every batch."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._locality = LocalityProbe()
        self._drops = DropReports()
        self._may_have_dropped = False

    def are_here(self) -> bool:
        """Return whether tasks run on the runner's machine, as far as one has answered."""
        return self._locality.tasks_run_here()

    def addresses(self, dialects: Collection[str]) -> tuple[MailAddress | None, MailAddress | None]:
        """Return where to answer where a task runs, and where to report what it dropped.

        ``dialects`` of the brokers that the messages came from.
        """
        drops = self._drops.address() if self._may_drop(dialects) else None
        self._may_have_dropped = self._may_have_dropped or drops is not None
        return self._locality.question(), drops

    def _may_drop(self, dialects: Collection[str]) -> bool:
        """Return whether the re-evaluation of the selector may drop messages of this query."""
        return any(
            may_drop(destination, dialect, self._options)
            for destination in self._options.destinations
            for dialect in dialects
        )

    def dropped(self) -> int | str:
        """A number where tasks can report it: on this machine, or where there is nothing to report."""
        total = self._drops.total()
        return total if total or not self._may_have_dropped or self._locality.tasks_run_here() else _NOT_REPORTED

    def release(self, through: int) -> None:
        """Every report with a lower number is of a batch that is done."""
        self._drops.release(through)

    def close(self) -> None:
        self._locality.close()
        self._drops.close()


class TaskInputs(TaskReports):
    """Runs in the runner. For each batch call ``of``, then ``release`` when it is done. Call ``close`` once."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._memory = SharedMemory()

    def memory_for(self, end: int) -> SharedMemory | None:
        """Memory for the batch that ends there, if the machine has such memory."""
        return self._memory if self._memory.begin(end) else None

    def of(
        self, tasks: Iterable[list[PartitionSlice]], dialects: Collection[str], *, run_ends: bool = False
    ) -> list[TaskInput]:
        made = list(tasks)
        question, drops = self.addresses(dialects)
        return [TaskInput(task, question, drops, run_ends) for task in made]

    def release(self, through: int) -> None:
        """Every batch below ``through`` is done."""
        self._memory.release(through)
        super().release(through)

    def close(self) -> None:
        self._memory.close()
        super().close()


def read_task(task: TaskInput, reading: Reading) -> Iterator[Any]:
    """On an executor."""
    if task.question is not None:
        answer(task.question)
    for parts in together(task.parts):
        rows, dropped = rows_of(parts, reading, run_ends=task.run_ends)
        if dropped:
            report_dropped(task.drops, parts[0].first_sequence, dropped)
        yield rows


def _loaded(part: PartitionSlice) -> PartitionSlice:
    """A task that cannot read the journal gets an error about its place, and not about the folder."""
    try:
        return part.load()
    except CorruptJournalError:
        raise
    except JournalError as error:
        raise JournalError(
            error.fact,
            "This task does not see the folder of journalLocation: leave out journalShared, and the messages travel to"
            " it. If every executor sees the folder, the batch is done already: a DataFrame of foreachBatch can be read"
            " until the function returns.",
        ) from None
