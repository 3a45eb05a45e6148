"""What a journal costs on fast and slow disks: ``python -m bench.disks FOLDER …``, such as /dev/shm and a disk.

Without Spark. A batch of the source takes the steps of ``_one_batch``, one after the other, in the runner.
``--slower-ms`` simulates a slower disk by a sleep after each sync. The number of syncs and the CPU are valid on a busy
machine too.
"""

import argparse
import os
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.segment import Segment
from pyspark_jms.delivery.journal.store import JournalStore

_BATCHES = ((10, 1), (1_000, 1), (16_000, 1), (16_000, 8))
"""Messages of 1 KB, and in how many parts they arrive: each part is a segment."""
_TURNS = 12
_BYTES = 1_200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--slower-ms", nargs="+", type=float, default=[0, 5])
    options = parser.parse_args()
    print(
        "folder                messages  segments  slower by ms   syncs   CPU ms   ms a batch   ms of it before Spark"
    )
    for folder in options.folders:
        for messages, segments in _BATCHES:
            for delay in options.slower_ms:
                syncs, cpu, whole, seen = _measured(folder, messages, segments, delay)
                print(
                    f"{folder!s:20.20}  {messages:8,}  {segments:8}  {delay:12g}  {syncs:6.0f}  {cpu:7.2f}"
                    f"  {whole:11.1f}  {seen:11.1f}",
                    flush=True,
                )


def _measured(folder: Path, messages: int, segments: int, delay: float) -> list[float]:
    """Syncs, milliseconds of CPU, of a batch, and until its offset goes to Spark: medians."""
    with tempfile.TemporaryDirectory(dir=folder) as place, _slower(delay / 1000) as syncs:
        store = _open(Path(place) / "journal")
        starts = range(0, _TURNS * messages, messages)
        found = [_one_batch(store, start, messages // segments, segments, syncs) for start in starts]
        store.close()
    return [median(values) for values in zip(*found, strict=True)]


def _one_batch(
    store: JournalStore, start: int, size: int, segments: int, syncs: Callable[[], int]
) -> tuple[float, float, float, float]:
    firsts = range(start, start + segments * size, size)
    parts = [
        Segment(source="queue://orders", dialect="artemis", first=first, block=_block(first, size)) for first in firsts
    ]
    before, cpu, began = syncs(), time.process_time(), time.perf_counter()
    for part in parts:
        store.append(part)
    store.record_batch(start, parts[-1].last, [])
    seen = time.perf_counter()  # now the offset goes to Spark
    for part in parts:
        store.mark_acknowledged(part.first)
    store.release(parts[-1].last)  # when Spark asks for the next batch
    spent = time.process_time() - cpu, time.perf_counter() - began, seen - began
    return syncs() - before, *(1e3 * each for each in spent)  # type: ignore[return-value]


def _block(first: int, size: int) -> MessageBlock:
    return MessageBlock(
        data=bytes(_BYTES * size),
        ends=array("q", range(_BYTES, _BYTES * (size + 1), _BYTES)),
        heads=array("q", range(200, _BYTES * size + 200, _BYTES)),
        ids=[b"%d" % n for n in range(first, first + size)],
    )


def _open(path: Path) -> JournalStore:
    return JournalStore.open(
        path,
        query="bench",
        wait_seconds=1,
        pause=time.sleep,
        clock=time.time,
        fingerprints=lambda segment: [b"%016d" % n for n in range(segment.first, segment.last)],
    )


@contextmanager
def _slower(seconds: float) -> Iterator[Callable[[], int]]:
    """Each sync takes so much longer. Yields a counter of syncs."""
    real, done = (os.fsync, os.fdatasync), [0]

    def delayed(sync: Callable[[int], None]) -> Callable[[int], None]:
        def act(descriptor: int) -> None:
            sync(descriptor)
            done[0] += 1
            time.sleep(seconds)

        return act

    os.fsync, os.fdatasync = map(delayed, real)  # type: ignore[assignment]
    try:
        yield lambda: done[0]
    finally:
        os.fsync, os.fdatasync = real


if __name__ == "__main__":
    main()
