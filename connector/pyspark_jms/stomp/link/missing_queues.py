"""Queues that a query is to read and that do not exist: most brokers make a queue at SUBSCRIBE and say nothing."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.link.management import ManagementLink

__all__ = ["warn_of_missing_queues"]

_log = logging.getLogger("pyspark_jms.link")
_PATIENCE_SECONDS = 5.0
"""Of the connection and of each question: a query does not wait longer for a hint."""

_WILDCARDS = frozenset("*#")


def warn_of_missing_queues(settings: ConnectionSettings, queues: Sequence[str]) -> tuple[str, ...]:
    """Log a warning for each queue that the broker does not have, and return their names. Call it before SUBSCRIBE.

    Never raises. Without the permission ``manage``, or on a broker that answers no questions over STOMP, nothing is
    checked.
    """
    patient = min(_PATIENCE_SECONDS, settings.receipt_timeout)
    asked = [queue for queue in queues if not _WILDCARDS & set(queue)]
    if not asked:
        return ()
    try:
        hasty = replace(
            settings, connect_timeout=min(_PATIENCE_SECONDS, settings.connect_timeout), receipt_timeout=patient
        )
        with ManagementLink(hasty) as link:
            missing = tuple(queue for queue in asked if not _exists(link, queue))
    except Exception as error:  # noqa: BLE001  # an odd answer must not end a query that could read
        _log.debug("= whether queues exist was not checked: %s", error)
        return ()
    for queue in missing:
        _log.warning(
            "! queue %s does not exist on the broker. This query creates it if the user may. Compare the name with the"
            " one its producers send to.",
            queue,
        )
    return missing


def _exists(link: ManagementLink, queue: str) -> bool:
    try:
        link.attribute(f"queue.{queue.rpartition('::')[2]}", "address")  # of ADDRESS::QUEUE
    except InvalidDestinationError:
        return False
    return True
