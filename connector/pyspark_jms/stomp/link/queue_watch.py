"""Figures of a query's queues that only the broker knows, asked now and then beside the query.

On a thread and a connection of its own: it costs the query nothing, and no error of it reaches the query. Who may not
ask is told so once and left alone; an answer that cannot be understood is logged once, and asked for again later.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pyspark_jms.errors import JMSError, JMSSecurityError, MalformedFrameError, UnsupportedError
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.link.management import ManagementLink

__all__ = ["QueueWatch"]

_log = logging.getLogger("pyspark_jms.link")
_EVERY_SECONDS = 30.0
_LOOKS = 4
"""Stuck is what none of the last looks found delivered."""

_PATIENCE_SECONDS = 5.0
"""Of one question, and of ``close``: nobody waits longer for figures."""


class QueueWatch:
    """``figures()`` are the latest, and none where the broker does not answer or this user may not ask."""

    def __init__(
        self,
        settings: ConnectionSettings,
        queues: Sequence[str],
        held: Callable[[], int],
        *,
        every: float = _EVERY_SECONDS,
    ) -> None:
        """``held``: how many messages of these queues are here and not acknowledged. It must not raise: another
        thread asks it.
        """
        patient = min(_PATIENCE_SECONDS, settings.receipt_timeout)
        self._settings = replace(settings, connect_timeout=patient, receipt_timeout=patient)
        self._resources = [f"queue.{queue.rpartition('::')[2]}" for queue in queues]  # of ADDRESS::QUEUE
        self._held = held
        self._every = every
        self._figures: dict[str, int | str] = {}
        self._excess: deque[int] = deque(maxlen=_LOOKS)
        self._puzzled = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pyspark-jms-watch", daemon=True)
        self._thread.start()

    def figures(self) -> dict[str, int | str]:
        """``depth``, ``delivering``, ``consumers``, and ``depthTime``, when the broker was asked.

        ``stuckInDelivery`` where nobody else reads these queues.
        """
        return self._figures

    def close(self) -> None:
        self._over.set()
        self._thread.join(_PATIENCE_SECONDS)

    def _watch(self) -> None:
        while not self._over.is_set():
            try:
                with ManagementLink(self._settings) as link:
                    while not self._over.is_set():
                        self._figures = self._ask(link)
                        self._over.wait(self._every)
            except (JMSSecurityError, UnsupportedError) as error:
                _log.info("= no figures of the broker's in progress: %s %s", error.fact, error.remedy)
                return
            except MalformedFrameError as error:
                self._note_odd_answer(error.fact)
                self._over.wait(self._every)
            except JMSError as error:
                _log.debug("= the broker's figures are not to be had now: %s", error.fact)
                self._over.wait(self._every)
            except Exception as error:  # noqa: BLE001 - figures are no reason for a traceback beside the query
                self._note_odd_answer(f"{type(error).__name__} while its answer was read.")
                self._over.wait(self._every)
            finally:
                self._figures = {}  # old figures would be taken for new ones
                self._excess.clear()

    def _note_odd_answer(self, fact: str) -> None:
        if not self._puzzled:
            self._puzzled = True
            _log.warning("! no figures of the broker in progress for now: %s", fact)

    def _ask(self, link: ManagementLink) -> dict[str, int | str]:
        depth, delivering, consumers = (
            sum(_count(link.attribute(resource, name), name) for resource in self._resources)
            for name in ("messageCount", "deliveringCount", "consumerCount")
        )
        figures: dict[str, int | str] = {
            "depth": depth,
            "delivering": delivering,
            "consumers": consumers,
            "depthTime": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        self._excess.append(max(0, delivering - self._held()))
        if consumers == len(self._resources):
            # What is on its way to us is in delivery, too: only what stays so from look to look is stuck.
            figures["stuckInDelivery"] = min(self._excess) if len(self._excess) > 1 else 0
        return figures


def _count(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedFrameError(f"The broker answered that {name} is a {type(value).__name__}, not a number.")
    return value
