"""A warning for queues of a query that do not exist: most brokers create them for a subscription, without a word."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.wildcards import has_wildcards
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["warn_of_missing_queues"]

_log = logging.getLogger("pyspark_jms.link")
_PATIENCE_SECONDS = 5.0
"""Limit for the connection and for each request: a query does not wait longer for a warning."""


def warn_of_missing_queues(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings, queues: Sequence[str]
) -> tuple[str, ...]:
    """Log a warning for each queue that the broker does not have, and return their names. Call it before
    subscribing.

    Never raises. Without the permission ``manage``, or on a broker without management, nothing is
    checked.
    """
    timeout = min(_PATIENCE_SECONDS, settings.receipt_timeout)
    names = [queue for queue in queues if not has_wildcards(queue)]
    if not names:
        return ()
    try:
        impatient = replace(
            settings, connect_timeout=min(_PATIENCE_SECONDS, settings.connect_timeout), receipt_timeout=timeout
        )
        with open_link(impatient) as link:
            missing = tuple(queue for queue in names if not _exists(link, queue))
    except Exception as error:  # noqa: BLE001  # an unexpected reply must not stop a query that could read
        _log.debug("= it is not known whether the queues exist: %s", error)
        return ()
    for queue in missing:
        _log.warning(
            "! queue %s does not exist on the broker. This query creates it if the user may. Compare the name with the"
            " name that its producers send to.",
            queue,
        )
    return missing


def _exists(link: ManagementLink, queue: str) -> bool:
    try:
        link.queue_attribute(link.queue_name(queue), link.words.queue.address)
    except InvalidDestinationError:
        return False
    return True
