"""minMessagesPerTrigger: the planner counts no messages, and asks the broker's management for their number."""

import time
from collections.abc import Sequence

from pyspark_jms.errors import JMSSecurityError, UnsupportedError
from pyspark_jms.management.waiting_messages import WaitingMessages
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import SourceProtocol

__all__ = ["Minimum"]


class Minimum:
    """``is_reached`` when enough messages wait, or the last batch was planned ``maxTriggerDelay`` ago."""

    def __init__(self, options: SourceOptions, protocol: SourceProtocol) -> None:
        self._options = options
        self._protocol = protocol
        self._waiting: WaitingMessages | None = None
        self._since = time.monotonic()

    def begin(self) -> None:
        """A batch is planned."""
        self._since = time.monotonic()

    def is_reached(self, queues: Sequence[str]) -> bool:
        """``UnsupportedError``: the user may not ask how many messages there are."""
        least, options = self._options.min_messages, self._options
        if least is None or time.monotonic() - self._since >= options.max_delay:
            return True
        if self._waiting is None:
            self._waiting = WaitingMessages(self._protocol.open_management, options.connection, queues)
        try:
            return self._waiting.count() >= least
        except JMSSecurityError as error:
            raise UnsupportedError(
                f"minMessagesPerTrigger needs the number of messages from the broker. {error.fact}",
                f"{error.remedy} Or leave the option out.",
            ) from None

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.close()
