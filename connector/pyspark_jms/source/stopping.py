"""What can end the streaming source's process: the request to stop, and a heap that is too small for a message.

``query.stop()`` sends that process SIGTERM and only then closes its socket. Unhandled, the signal ends it with
every message of the window in flight, and each loses a delivery attempt. A handler that raises can land
inside ``stop()`` or inside a socket write. So the handler sets a flag; Spark closes the socket next, and the
reader's ``stop()`` runs undisturbed.
"""

import logging
import os
import re
import signal
import sys
import time
from pathlib import Path

from pyspark_jms.errors import StoppedError
from pyspark_jms.options.table import parse_bytes

__all__ = ["StopRequest", "driver_heap", "warn_of_small_heap"]

_POLL_SECONDS = 0.05
_RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"


class StopRequest:
    """``install`` it once in the runner; elsewhere (tests, other processes) nothing stops."""

    def __init__(self) -> None:
        self.made = False

    def install(self) -> None:
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is not None and spec.name == _RUNNER:
            signal.signal(signal.SIGTERM, self._note)
            signal.signal(signal.SIGINT, self._note)  # Ctrl-C in a terminal reaches every process of the job

    def _note(self, _signal: int, _frame: object) -> None:
        self.made = True

    def pause(self, seconds: float) -> None:
        """Sleep, and raise ``StoppedError`` as soon as the query is being stopped."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, _POLL_SECONDS))

    def check(self) -> None:
        """Raise ``StoppedError`` if the query is being stopped."""
        if self.made:
            raise StoppedError("The query is being stopped.")


# --- the heap of the driver -------------------------------------------------------------------------

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
