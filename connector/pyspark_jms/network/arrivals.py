"""Wakes a thread when connections have received something."""

import threading

__all__ = ["Arrivals"]


class Arrivals(threading.Condition):
    """Notified when messages, confirmations, an error or the end of a connection arrive. Connections may share one."""

    def pause(self, seconds: float) -> None:
        """Return when something arrives, or after ``seconds``."""
        with self:
            self.wait(seconds)
