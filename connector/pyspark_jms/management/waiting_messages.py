"""How many messages of queues wait for a consumer, as the broker counts them."""

from collections.abc import Callable, Sequence

from pyspark_jms.management.link import ManagementLink
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["WaitingMessages"]


class WaitingMessages:
    """Keeps its connection. ``JMSSecurityError`` without the permission ``manage``."""

    def __init__(
        self,
        open_link: Callable[[ConnectionSettings], ManagementLink],
        settings: ConnectionSettings,
        queues: Sequence[str],
    ) -> None:
        self._open_link = open_link
        self._settings = settings
        self._queues = queues
        self._link: ManagementLink | None = None

    def count(self) -> int:
        """Without those that are in delivery, or scheduled for later."""
        try:
            if self._link is None:
                self._link = self._open_link(self._settings)
            return sum(_waiting(self._link, queue) for queue in self._queues)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


def _waiting(link: ManagementLink, queue: str) -> int:
    name, words = link.queue_name(queue), link.words.queue
    counted = [words.messages, words.delivering, *([words.scheduled] if words.scheduled else [])]
    messages, *others = (int(link.queue_attribute(name, each)) for each in counted)
    return max(0, messages - sum(others))
