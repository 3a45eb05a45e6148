"""The text of the benchmark's messages: orders in JSON, which a compressor makes smaller as it does real records.

A text of 1 KB differs from those of the 255 messages before it, so no compressor finds it again in the same block.
"""

import json
import random
from functools import cache

__all__ = ["DIFFERENT", "orders", "text_at"]

DIFFERENT = 256
_STEP = 2_003
_WORDS, _LETTERS = 3_000, "abcdefghijklmnopqrstuvwxyz"


@cache
def orders() -> str:
    """So long that the slices that begin at multiples of ``_STEP`` are different. ASCII."""
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
