"""The one rule for how many consecutive messages fit into so many bytes. Pure."""

from bisect import bisect_right

from pyspark_jms.blocks.block import Index, Positions

__all__ = ["cuts", "fit"]


def fit(
    ends: "Index | Positions",
    first: int = 0,
    last: int | None = None,
    *,
    size: int | None = None,
    messages: int | None = None,
    at_least_one: bool = False,
) -> int:
    """How many of the messages ``first`` to ``last`` (not included) fit: into ``size`` bytes, at most ``messages``.

    None is no limit. ``at_least_one``: the first message fits, however large it is.
    """
    last = len(ends) if last is None else last
    fits = last - first
    if size is not None:
        begin = int(ends[first - 1]) if first else 0
        fits = bisect_right(ends, begin + size, first, last) - first
    if messages is not None:
        fits = min(fits, messages)
    return max(fits, min(1, last - first)) if at_least_one else max(fits, 0)


def cuts(ends: "Index | Positions", size: int) -> list[int]:
    """Where each part begins, after the first one, when the messages are cut into parts of at most ``size`` bytes.

    A message that is larger is a part of its own.
    """
    found, at = [], fit(ends, size=size, at_least_one=True)
    while at < len(ends):
        found.append(at)
        at += fit(ends, at, size=size, at_least_one=True)
    return found
