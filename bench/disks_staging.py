"""What a staging queue costs on fast and slow disks of the broker: ``python -m bench.disks_staging FOLDER …``.

Without Spark. A batch of an exactly-once read over AMQP takes the steps of ``_one_batch``. ``--slower-ms`` simulates a
slower disk: a library, compiled by ``cc`` and loaded into the broker before libc, sleeps after each sync and counts it.
"""

import argparse
import mmap
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench import raw_amqp
from bench.child import in_child
from bench.job import Job
from bench.rounds import base_job
from pyspark_jms.amqp.link.staging_queue import Names
from pyspark_jms.amqp.staging import AmqpStagedLink
from pyspark_jms.delivery.span import Span
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.arrivals import Arrivals
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.staged.move import Move
from pyspark_jms.testing import EmbeddedArtemis

_BATCHES = (10, 1_000, 16_000)
"""Messages of 1 KB."""
_TURNS, _NOT_COUNTED = 9, 3

_LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned long long *count;
static long delay;

__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("SLOW_SYNC_COUNTER"), O_RDWR);
    count = mmap(0, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    delay = atol(getenv("SLOW_SYNC_US"));
}

static int slower(const char *name, int descriptor) {
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = sync(descriptor);
    __sync_fetch_and_add(count, 1);
    if (delay) usleep(delay);
    return result;
}

int fsync(int descriptor) { return slower("fsync", descriptor); }
int fdatasync(int descriptor) { return slower("fdatasync", descriptor); }
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--slower-ms", nargs="+", type=float, default=[0, 5])
    options = parser.parse_args()
    print("folder                messages  slower by ms  syncs   ms until Spark sees the batch")
    for folder in options.folders:
        for delay in options.slower_ms:
            with _broker(folder, delay) as (broker, syncs):
                for messages in _BATCHES:
                    seconds, count = _measured(broker, messages, syncs)
                    figures = f"{messages:8,}  {delay:12g}  {count:5.0f}  {1e3 * seconds:10.1f}"
                    print(f"{folder!s:20.20}  {figures}", flush=True)


@contextmanager
def _broker(folder: Path, delay_ms: float) -> Iterator[tuple[EmbeddedArtemis, Callable[[], int]]]:
    """A broker whose syncs take so much longer, and a counter of them."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        source, library, counter = (Path(place) / name for name in ("slow.c", "slow.so", "syncs"))
        source.write_text(_LIBRARY)
        counter.write_bytes(bytes(8))
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True, timeout=60)
        given = {
            "LD_PRELOAD": str(library),
            "SLOW_SYNC_COUNTER": str(counter),
            "SLOW_SYNC_US": str(int(1e3 * delay_ms)),
        }
        broker = EmbeddedArtemis(Path(place) / "broker", benchmark=True, heap="2g")
        os.environ |= given
        try:
            broker.start()
        finally:
            for name in given:
                del os.environ[name]
        try:
            with counter.open("r+b") as file, mmap.mmap(file.fileno(), 8) as counted:
                yield broker, lambda: struct.unpack("Q", counted[:])[0]
        finally:
            broker.stop()


def _measured(broker: EmbeddedArtemis, messages: int, syncs: Callable[[], int]) -> tuple[float, float]:
    """Seconds until the commit is confirmed, and syncs of the broker meanwhile: medians."""
    job = base_job(broker, messages)
    access = {"brokerUrl": broker.amqp_url, "user": broker.user, "password": broker.password, "queue": job.queue}
    link = AmqpStagedLink(SourceOptions.parse(access).connection, Names(f"staging.{messages}", "s"), Arrivals())
    link.lock()
    link.create_token("0")
    link.subscribe([Subscription(destination=Destination.parse(f"queue://{job.queue}"), window_bytes=64 << 20)])
    found = [_one_batch(link, job, number, syncs) for number in range(_TURNS)]
    link.close(delete=True)
    seconds, counts = zip(*found[_NOT_COUNTED:], strict=True)
    return median(seconds), median(counts)


def _one_batch(link: AmqpStagedLink, job: Job, number: int, syncs: Callable[[], int]) -> tuple[float, int]:
    """Everything waits at the broker. Nothing is moved before all of it is received, so that nothing overlaps."""
    in_child(raw_amqp.fill, job)
    before, began = syncs(), time.perf_counter()
    lane, move = link.lanes[0], Move(link, number * job.messages)
    lane.resume()
    while lane.waiting()[0] < job.messages:
        time.sleep(0.0005)
    lane.pause()
    for block in lane.take():
        move.add(Span(0, block, 0, len(block)))
    link.take_tokens()
    link.take_finished(move.first)
    link.move(str(number + 1), move.accepted)
    return time.perf_counter() - began, syncs() - before


if __name__ == "__main__":
    main()
