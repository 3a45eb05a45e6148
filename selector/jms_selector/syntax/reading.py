"""What is read, and how: a selector's text, its dialect and switches, and the error about a place in it."""

from dataclasses import dataclass
from typing import NoReturn

from jms_selector.errors import InvalidSelectorError
from jms_selector.syntax.dialects import Dialect

__all__ = ["Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    text: str
    """The selector as the user wrote it."""

    offset: int
    """Length of the prefixes. Places in lark's tree are counted after them."""

    dialect: Dialect
    strict: bool
    """Only what the specification allows."""

    hyphens: bool
    """The text began with ``hyphenated_props:``, so names may have hyphens."""

    @property
    def body(self) -> str:
        """The text without its prefixes."""
        return self.text[self.offset :]

    def refuse(self, start: int, found: str, expected: tuple[str, ...] = (), hint: str = "") -> NoReturn:
        """Raise the error about the place ``start`` of the body."""
        raise InvalidSelectorError(self.text, start + self.offset, found, expected, hint) from None
