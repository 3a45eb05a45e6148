"""Errors that are no errors of the network, in the thread of a connection."""

import threading
from contextlib import contextmanager

from pyspark_jms.network.connection import StateCondition

ENDS = [MemoryError(), RuntimeError("can't start new thread"), SystemExit(3)]


class FailingCondition(StateCondition):
    """Raises ``error`` once, in a connection's thread, when something arrives."""

    def __init__(self, error=None):
        super().__init__()
        self.error, self._owner = error, threading.current_thread()

    def notify_all(self):
        if self.error is not None and threading.current_thread() is not self._owner:
            error, self.error = self.error, None
            raise error
        super().notify_all()


@contextmanager
def no_room_for_threads():
    """The system gives no new thread its stack."""
    before = threading.stack_size(1 << 46)
    try:
        yield
    finally:
        threading.stack_size(before)
