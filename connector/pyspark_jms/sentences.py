"""The grammar of error texts that are put together from parts."""

import re

__all__ = ["one_full_stop", "with_article"]

_SECOND_STOP = re.compile(r"(?<=[^.][.!?…])\.$")


def one_full_stop(text: str) -> str:
    """The text without a second full stop at its end: the last part may be a whole sentence, which a broker wrote."""
    return _SECOND_STOP.sub("", text)


def with_article(noun: str) -> str:
    """``an int``, ``a long``."""
    return f"{'an' if noun.startswith(('a', 'e', 'i', 'o')) else 'a'} {noun}"
