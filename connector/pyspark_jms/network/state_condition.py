"""The lock of a connection's state, which also wakes the thread that waits for a change of it."""

import threading

__all__ = ["StateCondition"]


class StateCondition(threading.Condition):
    """Notified when messages, confirmations, an error or the end of a connection arrive. Connections may share one."""

    def pause(self, seconds: float) -> None:
        """Return when something arrives, or after ``seconds``."""
        with self:
            self.wait(seconds)
