"""Retries while the broker is unreachable: pauses that grow to 30 s, a log line for each attempt, a time-out.

Only transient errors are retried (``JMSError.transient``), and those about a missing queue that was there. The caller
passes the action and how to pause.
"""

import itertools
import logging
import math
import time
from collections.abc import Callable
from typing import TypeVar

from pyspark_jms.errors import ConnectionLostError, JMSError

__all__ = ["keep_trying"]

T = TypeVar("T")

_log = logging.getLogger("pyspark_jms.link")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 30.0
_ONCE_LOST_SECONDS = 10.0


def keep_trying(
    act: Callable[[], T],
    what: str,
    *,
    timeout: float,
    failure: JMSError | None = None,
    seen: bool = False,
    once_lost: float = 0.0,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Call ``act`` until it succeeds. Raise its error if the error is permanent, or after ``timeout`` seconds.

    ``failure``: the error of an attempt before this call, so that a pause comes first. ``what`` completes "… failed".
    ``seen``: the queue that ``act`` uses was there before. ``timeout`` may be infinite. ``pause`` may raise to give up.
    ``once_lost``: seconds, ten at most, beyond ``timeout`` after a connection that was made and is lost: the address of
    a new query is right then.
    """
    end = clock() + timeout
    for attempt in itertools.count():
        if failure is not None:
            left = end - clock()
            if left <= 0:
                raise failure
            if attempt:
                _log.warning("= %s failed (attempt %d): %s Trying %s", what, attempt, failure.fact, _for(left))
            pause(min(_pause_before(attempt), left))
        try:
            return act()
        except JMSError as error:
            if not (error.transient or (seen and error.missing)):
                raise
            failure = error
            if isinstance(error, ConnectionLostError):
                end = max(end, clock() + min(once_lost, _ONCE_LOST_SECONDS))
                once_lost = 0.0
    raise AssertionError


def _pause_before(attempt: int) -> float:
    if attempt == 0:
        return _FIRST_PAUSE_SECONDS
    return float(min(1 << min(attempt - 1, 10), _LONGEST_PAUSE_SECONDS))


def _for(seconds: float) -> str:
    if math.isinf(seconds):
        return "again until it succeeds (reconnectTimeout=forever)"
    return f"for another {seconds:,.0f} s (reconnectTimeout)"
