"""The request to stop, in the process where the streaming source runs.

``query.stop()`` sends that process SIGTERM and only then closes its socket. Unhandled, the signal ends it with
every message of the window in flight, and each loses a delivery attempt. A handler that raises can land
inside ``stop()`` or inside a socket write. So the handler sets a flag; Spark closes the socket next, and the
reader's ``stop()`` runs undisturbed.
"""

import signal
import sys
import time

from pyspark_jms.errors import StoppedError

__all__ = ["StopRequest"]

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
