"""The columns of headers and the sink's defaults → numbers for each row: mode and priority, and times.

Durations and instants are milliseconds; an instant of 0 is none. Does not know protocols.
"""

import numpy as np

from pyspark_jms.columns.ragged import Int64s, Mask
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.send_defaults import SendDefaults
from pyspark_jms.jms.model import DeliveryMode

__all__ = ["PRIORITIES", "delivery_of", "expiration_of", "first_given", "from_now", "modes_and_priorities"]

PRIORITIES = 10
"""JMS 3.1 §3.4.9: 0..9. Artemis confirms a message of any other priority and drops it."""

_LATEST = np.iinfo(np.int64).max


def modes_and_priorities(rows: Rows, defaults: SendDefaults) -> Int64s:
    """``JMSDeliveryMode`` times ``PRIORITIES`` plus ``JMSPriority``: for each row, or one number for all of them."""
    modes = _or_default(rows, "JMSDeliveryMode", int(defaults.delivery_mode))
    wrong = (modes < min(DeliveryMode)) | (modes > max(DeliveryMode))
    rows.refuse_any(wrong, "has a JMSDeliveryMode that is not 1 or 2", "Use 1 for NON_PERSISTENT, 2 for PERSISTENT.")
    priorities = _or_default(rows, "JMSPriority", defaults.priority)
    wrong = (priorities < 0) | (priorities >= PRIORITIES)
    rows.refuse_any(wrong, "has a JMSPriority outside 0 to 9", "JMS 3.1 §3.4.9: use a priority from 0 to 9.")
    return modes * PRIORITIES + priorities


def _or_default(rows: Rows, name: str, default: int) -> Int64s:
    """A value for each row, or one value for all of them if the column is absent."""
    found = rows.integers(name)
    return np.array([default]) if found is None else np.where(found[1], found[0], default)


def expiration_of(rows: Rows, defaults: SendDefaults, now_ms: int) -> Int64s:
    """The instant by ``time_to_live``, else ``JMSExpiration``, else the default: for each row, or one for all.

    A time to live of 0 is a value, "never", and not the absence of one: so it also comes before the default.
    """
    default = from_now(now_ms, np.array([defaults.time_to_live_ms]))
    lives, has_life = _length(rows, "time_to_live")
    times, has_time = _instant(rows, "JMSExpiration")
    return np.where(has_life, from_now(now_ms, lives), np.where(has_time, times, default))


def delivery_of(rows: Rows, defaults: SendDefaults) -> tuple[Int64s, Int64s]:
    """The delay by ``delivery_delay``, or else the instant by ``JMSDeliveryTime``, or else the default delay.

    A delay of 0 is a value, "now".
    """
    delays, has_delay = _length(rows, "delivery_delay")
    times, has_time = _instant(rows, "JMSDeliveryTime")
    delays = np.where(has_delay | has_time, delays, defaults.delivery_delay_ms)
    return delays, np.where(has_delay, 0, times)


def _length(rows: Rows, column: str) -> tuple[Int64s, Mask]:
    """A duration in milliseconds for each row, 0 for a null; and which are given."""
    found = rows.integers(column)
    if found is None:
        return np.zeros(1, np.int64), np.zeros(1, np.bool_)
    lengths, given = np.where(found[1], found[0], 0), found[1]
    rows.refuse_any(lengths < 0, f"has a negative {column}", "Use 0 or more milliseconds.")
    return lengths, given


def _instant(rows: Rows, column: str) -> tuple[Int64s, Mask]:
    """Milliseconds since the epoch for each row, 0 for a null; and which are given.

    0 means "never" in a header, so a time before the epoch is sent as the first millisecond after it.
    """
    found = rows.integers(column)
    if found is None:
        return np.zeros(1, np.int64), np.zeros(1, np.bool_)
    return np.where(found[1], np.maximum(found[0], 1), 0), found[1]


def from_now(now_ms: int, lengths: Int64s) -> Int64s:
    return np.where(lengths > 0, np.minimum(lengths, _LATEST - now_ms) + now_ms, 0)


def first_given(first: Int64s, second: Int64s) -> Int64s:
    return np.where(first != 0, first, second)
