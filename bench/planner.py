"""What the driver's Python costs an exactly-once read over AMQP: for a batch, for a message, and in memory.

    python -m bench.planner

Through Spark to ``noop``, with batches of different sizes, for several numbers of readers. CPU is a line through all
measurements of a number of readers: so much for each batch, and so much for each message. Other programs disturb it
little.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.readers import ONCE, Running
from bench.rounds import base_job
from bench.spark_session import SparkSide
from pyspark_jms.testing import EmbeddedArtemis

READERS = (1, 2, 4)
SIZES = {500: 10_000, 5_000: 60_000, 50_000: 200_000}
"""Messages of a batch → messages in total."""
_LARGE_BATCH = {"maxBytesPerTrigger": "256m", "windowBytes": "512m"}


def planner_seconds(pid: int) -> float:
    """CPU seconds of the living threads of a process, from the scheduler: finer than clock ticks."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def line_through(batches: list[int], messages: list[int], seconds: list[float]) -> tuple[float, float]:
    """Seconds for each batch and for each message."""
    found, *_ = np.linalg.lstsq(np.column_stack([batches, messages]), np.asarray(seconds), rcond=None)
    return float(found[0]), float(found[1])


def main() -> None:
    with EmbeddedArtemis(benchmark=True, heap="3g") as broker, SparkSide(broker) as side:
        for readers in READERS:
            batches, messages, seconds, peaks = list[int](), list[int](), list[float](), dict[int, float]()
            for size, total in SIZES.items():
                job = replace(base_job(broker, total), queue="", per_transaction=1_000, port=broker.amqp_port)
                options = ONCE | {"readers": str(readers), "maxMessagesPerTrigger": str(size)} | _LARGE_BATCH
                running = Running(side, job, options)
                running.fill(2_000)
                running.read(2_000)
                running.fill(total)
                [pid] = [pid for pid, role in side.roles().items() if role == "runner"]
                before = planner_seconds(pid)
                _, read = running.read(total)
                batches.append(len(read))
                messages.append(total)
                seconds.append(planner_seconds(pid) - before)
                peaks[size] = round(running.peak(), 1)
                running.stop()
            a_batch, a_message = line_through(batches, messages, seconds)
            found = {"ms a batch": round(1e3 * a_batch, 2), "us a message": round(1e6 * a_message, 3), "peak MB": peaks}
            counted = {"batches": batches, "ms": [round(1e3 * each, 1) for each in seconds]}
            print(f"readers={readers}", json.dumps(found | counted), flush=True)


if __name__ == "__main__":
    main()
