"""The message on which a selector is evaluated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from jms_selector.syntax.kinds import NO_HEADERS, NULL, Kind, Schema, Value, integer_kind

__all__ = ["Message", "typed"]


def typed(value: Any) -> Value:
    """A Python value as the JMS type that a Java client would most likely set."""
    match value:
        case Value():
            return value
        case None:
            return NULL
        case bool():
            return Value(Kind.BOOLEAN, value)
        case int():
            return Value(integer_kind(value), value)
        case float():
            return Value(Kind.DOUBLE, value)
        case str():
            return Value(Kind.STRING, value)
        case _:
            raise TypeError(f"A JMS property cannot be of type {type(value).__name__}.")


@dataclass(frozen=True, slots=True)
class Message:
    """The parts of a message that a selector can test: header fields by their JMS names, and typed properties."""

    headers: Mapping[str, Value] = field(default_factory=dict)
    properties: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, headers: Mapping[str, Any] | None = None, schema: Schema = NO_HEADERS, /, **properties: Any) -> Self:
        """Create a message from plain Python values: ``Message.of({"JMSPriority": 7}, color="red", weight=3000)``.

        A whole number for a header has the kind that the header has in ``schema``.
        """
        return cls(
            {name: _header(value, schema.kinds.get(name)) for name, value in (headers or {}).items()},
            {name: typed(value) for name, value in properties.items()},
        )


def _header(value: Any, kind: Kind | None) -> Value:
    return Value(kind, value) if kind is Kind.LONG and isinstance(value, int) else typed(value)
