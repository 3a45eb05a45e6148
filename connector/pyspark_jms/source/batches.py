"""A batch → what its tasks read: parts of about ``partitionBytes``, or with a journal those that were recorded."""

from collections.abc import Iterator, Sequence

from pyspark_jms.blocks.partition_slice import PartitionSlice
from pyspark_jms.blocks.shared_memory import SharedMemory
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journaled_ledger import partitions_of
from pyspark_jms.delivery.message_range import Batch
from pyspark_jms.errors import DataLossError
from pyspark_jms.options.source import SourceOptions

__all__ = ["received_partitions", "recorded_partitions"]

_NEARLY_FULL = 16
"""A task with less room than this part of it is not filled up with the beginning of what another decodes in one go."""


def received_partitions(
    batch: Batch, origins: Sequence[tuple[str, str]], partition_bytes: int, memory: SharedMemory | None
) -> Iterator[list[PartitionSlice]]:
    """``origins``: source and dialect of each lane.

    ``memory``: where tasks on this machine map the messages; None: the messages travel to the tasks.
    """
    parts: list[PartitionSlice] = []
    first, room = batch.start, partition_bytes
    for whole in batch.spans:
        rest = whole
        while len(rest):
            fits = rest.fit(size=room, at_least_one=not parts)
            if fits:
                taken, rest = rest.cut(fits)
                block = taken.messages()
                place = block if memory is None else memory.put(block)
                parts.append(PartitionSlice(*origins[taken.lane], first, place))
                first += fits
                room -= taken.size
            if len(rest) or room < partition_bytes // _NEARLY_FULL:
                yield parts
                parts, room = [], partition_bytes
    if parts:
        yield parts


def recorded_partitions(
    store: JournalStore, first: int, last: int, options: SourceOptions, *, seen: bool
) -> Iterator[list[PartitionSlice]]:
    """``seen``: tasks can read the journal's folder, so a part names the place and does not carry the messages."""
    must_be_whole = options.fail_on_data_loss
    partitions = partitions_of(store, first, last, after_loss=not must_be_whole)
    if partitions is None:
        if must_be_whole:
            raise DataLossError(
                f"Spark's checkpoint needs the batch [{first}, {last}), which the journal does not hold.",
                "Give the journalLocation of this checkpoint. With failOnDataLoss=false the batch is empty.",
            )
        return
    for parts in partitions:
        yield parts if seen else [part.load() for part in parts]
