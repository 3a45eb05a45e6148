"""Broker-side metrics of a query's queues, requested at intervals while the query runs.

A separate thread and connection do this, so that no delay and no error reaches the query. Without the permission
``manage`` the watch writes one log line and ends. An unexpected reply is logged once, and the request is repeated.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime

from pyspark_jms.errors import (
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    MalformedFrameError,
    UnsupportedError,
)
from pyspark_jms.jms.features import Feature
from pyspark_jms.management.link import PATIENCE_SECONDS, ManagementLink
from pyspark_jms.management.queue_facts import QueueFacts, keeps_delivered, queue_facts
from pyspark_jms.management.queue_rules import warn_of_use
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["QueueWatch"]

_log = logging.getLogger("pyspark_jms.link")
_MOST_LOOKS = 3
"""In so many samples messages in flight are looked at: the first ones are where the queue's list begins."""

_SAMPLES = 4
"""Messages count as stuck when they were in delivery in all of the last samples."""


@dataclass(eq=False)
class QueueWatch:
    """``metrics()`` returns the latest metrics, or none if the broker does not answer or the permission is missing."""

    open_link: Callable[[ConnectionSettings], ManagementLink]
    settings: ConnectionSettings
    queues: Sequence[str]
    in_flight: Callable[[], int | None]
    """How many messages of these queues this query has received and not acknowledged, None if that is not known. Called
    in another thread, as ``received`` and ``note_undelivered``."""
    received: Callable[[], int] | None = None
    """How many messages this query has received, or None if it reads only some of the messages of these queues."""
    _: KW_ONLY
    connections: int = 1
    """How many consumers this query has at each queue."""
    note_undelivered: Callable[[int], None] | None = None
    """Called with how many messages were delivered to nobody."""
    features: Sequence[tuple[Feature, int]] = ()
    """How the queues are read, if a line shall tell that one of them is non-destructive."""
    every: float = 30.0

    def __post_init__(self) -> None:
        self._looks = _MOST_LOOKS if self.features else 0
        self._metrics: dict[str, int | str] = {}
        self._undelivered: tuple[int, int] | None = None
        """Messages that were delivered to nobody, and messages that this query had received then."""
        self._excess: deque[int] = deque(maxlen=_SAMPLES)
        self._logged_odd_reply = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pyspark-jms-watch", daemon=True)
        self._thread.start()

    def metrics(self) -> dict[str, int | str]:
        """Return ``depth``, ``delivering``, ``consumers``, and ``depthTime``, the time of the request.

        ``stuckInDelivery`` if ``in_flight`` is known and this query is the only consumer of its queues.
        ``undelivered`` if it reads all messages: those that were delivered to nobody, without those that it has
        received since the request.
        """
        metrics, undelivered = self._metrics, self._undelivered
        if not metrics or undelivered is None or self.received is None:
            return metrics
        waited, before = undelivered
        return metrics | {"undelivered": max(0, waited - (self.received() - before))}

    def close(self) -> None:
        self._closed.set()
        self._thread.join(PATIENCE_SECONDS)

    def _watch(self) -> None:
        while not self._closed.is_set():
            try:
                with self.open_link(self.settings.impatient(PATIENCE_SECONDS)) as link:
                    while not self._closed.is_set():
                        self._metrics = self._request(link)
                        self._closed.wait(self.every)
            except (JMSSecurityError, UnsupportedError) as error:
                _log.info("= the progress has no metrics of the broker: %s %s", error.fact, error.remedy)
                return
            except MalformedFrameError as error:
                self._log_odd_reply(error.fact)
                self._closed.wait(self.every)
            except JMSError as error:
                _log.debug("= the metrics of the broker are not available now: %s", error.fact)
                self._closed.wait(self.every)
            except Exception as error:  # noqa: BLE001 - a missing metric is no reason for a traceback
                self._log_odd_reply(f"{type(error).__name__} while the reply was read.")
                self._closed.wait(self.every)
            finally:
                self._metrics = {}  # old metrics could be mistaken for new ones
                self._excess.clear()

    def _log_odd_reply(self, fact: str) -> None:
        if not self._logged_odd_reply:
            self._logged_odd_reply = True
            _log.warning("! the progress has no metrics of the broker for now: %s", fact)

    def _request(self, link: ManagementLink) -> dict[str, int | str]:
        every = [facts for facts in queue_facts(link, self.queues).values() if facts.exists]
        if not every:
            raise InvalidDestinationError(f"There is no queue {self.queues[0]}.", "Is the name right?")
        depth = _sum(facts.messages for facts in every)
        delivering = _sum(facts.delivering for facts in every)
        consumers = _sum(facts.consumers for facts in every)
        metrics: dict[str, int | str] = {
            "depth": depth,
            "delivering": delivering,
            "consumers": consumers,
            "depthTime": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        undelivered = sum(facts.undelivered for facts in every)
        if self.received is not None:
            self._undelivered = undelivered, self.received()
        if self.note_undelivered is not None:
            self.note_undelivered(undelivered)
        self._look_for_kept(link, every)
        own = self.in_flight()
        if own is None:
            return metrics
        self._excess.append(max(0, delivering - own))
        if consumers == len(every) * self.connections:
            # Messages in flight to this query are in delivery, too. Only a surplus in every sample is stuck.
            metrics["stuckInDelivery"] = min(self._excess) if len(self._excess) > 1 else 0
        return metrics

    def _look_for_kept(self, link: ManagementLink, every: Iterable[QueueFacts]) -> None:
        """Warn of queues that are non-destructive: only messages in flight show it, and a query has some."""
        in_flight = [facts for facts in every if facts.delivering] if self._looks else []
        if not in_flight:
            return
        looks, self._looks = self._looks - 1, 0  # an older Artemis does not answer
        for facts in in_flight:
            # Twice: a message that is given back, and delivered again, may look like one that is kept.
            if keeps_delivered(link, facts.name) and keeps_delivered(link, facts.name):
                found = QueueFacts(name=facts.name, exists=True, non_destructive=True)
                warn_of_use((found, *each) for each in self.features)
                return
        self._looks = looks


def _sum(counts: Iterable[int | None]) -> int:
    known = list(counts)
    if None in known:
        raise MalformedFrameError("The broker answered something else than the counts of a queue.", "")
    return sum(count or 0 for count in known)
