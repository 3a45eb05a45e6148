"""The grammar of error texts that are put together from parts."""

import re
from collections.abc import Sequence

__all__ = ["MAX_FAULTS_SHOWN", "counted", "joined_faults", "one_full_stop", "with_article"]

MAX_FAULTS_SHOWN = 10
"""The most reasons that the ``body_error`` of a message names."""

_SECOND_STOP = re.compile(r"(?<=[^.][.!?…])\.$")


def joined_faults(reasons: Sequence[str]) -> str:
    """The first reasons, and whether there are more."""
    more = ["and more"] if len(reasons) > MAX_FAULTS_SHOWN else []
    return "; ".join([*reasons[:MAX_FAULTS_SHOWN], *more])


def counted(number: int, what: str = "message") -> str:
    """``1 message``, ``2,000 messages``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def one_full_stop(text: str) -> str:
    """The text without a second full stop at its end: the last part may be a whole sentence, which a broker wrote."""
    return _SECOND_STOP.sub("", text)


def with_article(noun: str) -> str:
    """``an int``, ``a long``."""
    return f"{'an' if noun.startswith(('a', 'e', 'i', 'o')) else 'a'} {noun}"
