"""The heap of the driver's Java virtual machine, where it can be known, and what the largest message needs of it."""

import logging
import os
import re
from pathlib import Path

from pyspark_jms.jms.units import parse_bytes

__all__ = ["HEAP_PER_MESSAGE", "driver_heap", "warn_of_small_heap"]

_log = logging.getLogger("pyspark_jms.source")

HEAP_PER_MESSAGE = 10
"""A message that travels to a task needs so many times its size: with 1 GB a message of 100 MB passes, and one of
120 MB ends the driver (Spark 4.3, local)."""

_XMX = re.compile(rb"-Xmx(\d+[kKmMgGtT]?)")


def driver_heap() -> int | None:
    """Bytes, of the process that started this one; None where the operating system does not report it (Linux does)."""
    try:
        arguments = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    found = [match[1] for argument in arguments if (match := _XMX.fullmatch(argument))]
    return parse_bytes(found[-1].decode()) if found else None  # of several the last one counts


def warn_of_small_heap(max_message_bytes: int, heap: int | None) -> None:
    """Before a message of that size ends the driver with an OutOfMemoryError."""
    needed = HEAP_PER_MESSAGE * max_message_bytes
    if heap is not None and heap < needed:
        _log.warning(
            "! maxMessageBytes is %d MB, and the driver has a heap of %d MB: a message of that size may end it. Set"
            " spark.driver.memory to %d MB or more, or lower maxMessageBytes and choose onTooLarge",
            max_message_bytes >> 20,
            heap >> 20,
            needed >> 20,
        )
