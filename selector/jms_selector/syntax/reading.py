"""The input of the parser: a selector's text, its dialect and switches."""

from dataclasses import dataclass
from typing import NoReturn

from jms_selector.errors import InvalidSelectorError
from jms_selector.syntax.dialects import Dialect
from jms_selector.syntax.kinds import Schema

__all__ = ["Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    text: str
    """The selector with its prefixes."""

    offset: int
    """Length of the prefixes. Positions in lark's tree count from the end of the prefixes."""

    dialect: Dialect
    strict: bool
    """Accept only what the specification allows."""

    hyphens: bool
    """Names may contain hyphens: the text begins with ``hyphenated_props:``."""

    schema: Schema
    """The headers that ``strict`` allows."""

    @property
    def body(self) -> str:
        """The text without its prefixes."""
        return self.text[self.offset :]

    def refuse(self, start: int, found: str, expected: tuple[str, ...] = (), hint: str = "") -> NoReturn:
        """Raise the error about position ``start`` of the body."""
        raise InvalidSelectorError(self.text, start + self.offset, found, expected, hint) from None
