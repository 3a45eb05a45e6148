"""Where the messages of a block were read: one destination, or several, one after the other.

A decode costs some 4 ms beside its rows. So messages of many queues, a few of each, are decoded together.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_jms.jms.model import Destination

__all__ = ["Origin", "Origins", "between", "longest_name", "origin_at", "origins", "spelled"]


@dataclass(frozen=True, slots=True)
class Origins:
    """Destinations of one kind. The messages of ``each[i]`` end before message ``ends[i]``."""

    each: tuple[Destination, ...]
    ends: tuple[int, ...]

    def numbers(self, messages: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return, for each of these messages, the number of its destination."""
        return np.searchsorted(self.ends, messages, side="right").astype(np.int64)


Origin: TypeAlias = Destination | Origins


def origins(counted: Sequence[tuple[Destination, int]]) -> Origin:
    """``counted``: each destination, and how many of the next messages are from there."""
    if len(counted) == 1:
        return counted[0][0]
    ends = np.cumsum([count for _, count in counted]).tolist()
    return Origins(tuple(destination for destination, _ in counted), tuple(ends))


def origin_at(origin: Origin, message: int) -> Destination:
    return origin if isinstance(origin, Destination) else origin.each[bisect_right(origin.ends, message)]


def between(origin: Origin, first: int, last: int) -> Origin:
    """Return the origin of the messages ``first`` to ``last`` (not included) of the block."""
    if isinstance(origin, Destination):
        return origin
    begin, end = bisect_right(origin.ends, first), bisect_right(origin.ends, last - 1) + 1
    return Origins(origin.each[begin:end], tuple(min(each, last) - first for each in origin.ends[begin:end]))


def longest_name(origin: Origin) -> int:
    """Return how many bytes the longest name of a destination has."""
    every = [origin] if isinstance(origin, Destination) else origin.each
    return max(len(each.name.encode()) for each in every)


def spelled(origin: Origin, messages: npt.NDArray[Any], spell: Callable[[Destination], str]) -> pa.Scalar | pa.Array:
    """A text for each of these messages: an array, or a scalar if they have one origin."""
    if isinstance(origin, Destination):
        return pa.scalar(spell(origin), pa.string())
    return pa.array(map(spell, origin.each), pa.string()).take(pa.array(origin.numbers(messages)))
