"""What every protocol's dialect says of its broker: the facts by which the engines and the options decide."""

from dataclasses import dataclass

__all__ = ["BrokerDialect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDialect:
    """The dialects of a protocol extend it with what its own code needs."""

    name: str
    """The value of option ``broker`` that selects this dialect."""

    selector_dialect: str | None
    """The name of the ``jms_selector`` dialect in which the broker evaluates selectors. None: it has no selectors."""

    browses: bool
    """Whether the broker shows messages without delivering them, so that a window is enough for a queue of any length.
    Otherwise a batch read receives messages and gives them back."""

    browse_end_id: bytes = b""
    """The id, as a received block has it, of the mark by which the broker ends a browse. Empty: it sends no mark."""

    browse_is_limited: bool = False
    """Whether the broker may end a browse before the end of the queue."""

    has_transactions: bool = True
    """Whether a commit takes effect as a whole, and its confirmation proves that it did."""

    confirms_single_messages: bool = True
    """Whether the broker confirms a message that is sent outside of a transaction."""

    acknowledges_in_transactions: bool = True
    """Whether a transaction that sends messages can also acknowledge those that they were made of."""

    carries_all_bodies: bool = True
    """False: a map, stream or object may arrive as an empty text."""

    added_properties: tuple[str, ...] = ()
    """Beginnings of the names of properties that the broker adds to a message in its own dead-letter queue, and that
    rows have."""

    silent_end: str = ""
    """The likely cause, and the remedy, when the broker ends connections again and again without a reason. Empty: it
    always gives one."""
