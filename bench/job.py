"""The work of a client and its measurement, which travel between processes; and the texts of the messages."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

__all__ = ["DIFFERENT", "TIME_LIMIT", "Job", "Measured", "orders", "text_at"]

TIME_LIMIT = 120.0
"""Maximum seconds of one measured part, so that a stuck broker ends the benchmark with an error."""

_REGIONS = ("north", "south", "east", "west")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Move ``messages`` through ``queue``. Base case: 1 KB of text, five string properties, persistent."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    broker_pid: int
    queue: str
    messages: int
    per_transaction: int
    body_bytes: int = 1024
    persistent: bool = True
    properties: int = 5
    time_limit: float = TIME_LIMIT

    def transactions(self) -> Iterator[range]:
        """Ranges of message numbers, one range for each transaction."""
        for first in range(0, self.messages, self.per_transaction):
            yield range(first, min(first + self.per_transaction, self.messages))

    def properties_of(self, i: int) -> dict[str, str]:
        """The properties of message ``i``. ``spark_write`` and ``JavaClient`` create the same five."""
        named = {
            "customer": f"C{i % 1000}",
            "region": _REGIONS[i % 4],
            "amount": f"{i * 7 % 100_000}.50",
            "created": f"2026-01-01T12.{i % 60}",
            "note": f"path {i}",
        }
        more = {f"p{number}": f"{number}-{i}" for number in range(len(named), self.properties)}
        return dict(list((named | more).items())[: self.properties])

    def text_of(self, i: int) -> str:
        return f"{i:012d}" + text_at(i, self.body_bytes - 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """``cpu`` in seconds by role: broker, jvm, runner, workers, client."""

    messages: int
    seconds: float
    cpu: dict[str, float]
    notes: dict[str, float] = field(default_factory=dict)

    @property
    def per_second(self) -> float:
        return self.messages / self.seconds

    def microseconds(self) -> dict[str, float]:
        """CPU of each role for one message."""
        return {role: seconds / self.messages * 1e6 for role, seconds in self.cpu.items()}


# --- texts ---------------------------------------------------------------------------------------

DIFFERENT = 256
_STEP = 2_003
_WORDS, _LETTERS = 3_000, "abcdefghijklmnopqrstuvwxyz"


@cache
def orders() -> str:
    """Orders in JSON, which a compressor makes smaller as it does real records. ASCII.

    Slices that begin at multiples of ``_STEP`` are different. A text of 1 KB therefore differs from those of the 255
    messages before it, and no compressor finds it again in the same block.
    """
    numbers = random.Random(1)
    words = ["".join(numbers.choices(_LETTERS, k=numbers.randint(3, 9))) for _ in range(_WORDS)]
    text: list[str] = []
    size = 0
    while size < DIFFERENT * _STEP:
        text.append(json.dumps(_order(numbers, words)))
        size += len(text[-1])
    return "".join(text)[: DIFFERENT * _STEP]


def _order(numbers: random.Random, words: list[str]) -> dict[str, object]:
    name = " ".join(numbers.choices(words, k=2))
    street = f"{numbers.choice(words)} {numbers.randrange(200)}"
    lines = [
        {
            "article": numbers.randrange(10**7),
            "name": numbers.choice(words),
            "quantity": numbers.randrange(20),
            "price": numbers.randrange(10**4) / 100,
        }
        for _ in range(numbers.randint(1, 20))
    ]
    return {"customer": {"name": name, "id": numbers.randrange(10**9), "street": street}, "lines": lines}


def text_at(number: int, size: int) -> str:
    """The text of a message: so many characters from its place in the orders on, which begin again at their end."""
    at, text = number % DIFFERENT * _STEP, orders()
    found = text[at : at + size]
    return found if len(found) == size else (found + text * (size // len(text) + 1))[:size]
