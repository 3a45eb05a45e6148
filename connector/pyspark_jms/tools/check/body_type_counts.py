"""A broker's list of messages -> the number of messages of each body type, and which bodies are lost. Does no I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_jms.jms.model import BODY_MARKER, BodyType
from pyspark_jms.management.attributes import Inspection
from pyspark_jms.tools.check.findings import Finding, Verdict

__all__ = ["BodyKind", "body_types_finding", "count_kinds", "describe_counts", "describe_losses"]

_OTHER = "other"
"""An unknown code, or an AMQP message without the annotation of JMS clients and of this sink."""


@dataclass(frozen=True, slots=True)
class BodyKind:
    body_type: str
    enveloped: bool = False

    def __str__(self) -> str:
        return f"{self.body_type} (envelope)" if self.enveloped else self.body_type


def count_kinds(messages: Iterable[Mapping[str, Any]], words: Inspection) -> Counter[BodyKind]:
    return Counter(_kind(message, words) for message in messages)


def _kind(message: Mapping[str, Any], words: Inspection) -> BodyKind:
    marker = message.get(BODY_MARKER)
    if marker in tuple(BodyType):
        return BodyKind(str(marker), enveloped=True)
    amqp = dict(enumerate(words.amqp_body_types)).get(message.get(words.amqp_body_type_key, -1), _OTHER)
    return BodyKind(words.body_types.get(message.get(words.body_type_key, -1), amqp))


def describe_counts(kinds: Counter[BodyKind]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items(), key=lambda item: str(item[0])))


def describe_losses(kinds: Iterable[BodyKind], words: Inspection) -> list[str]:
    """A sentence for each body type that does not arrive as it was sent."""
    plain = {kind.body_type for kind in kinds if not kind.enveloped}
    return [f"{kind.capitalize()} bodies {what}." for kind, what in words.losses.items() if kind in plain]


def body_types_finding(kinds: Counter[BodyKind], depth: int, words: Inspection) -> Finding:
    """``depth``: the messages on the queue, listed or not."""
    seen = kinds.total()
    if not seen:
        value = "the broker lists no message" if depth else "the queue is empty"
        return Finding(name="body types", value=value, verdict=Verdict.NOTE if depth else Verdict.FINE)
    whole = seen >= depth
    losses = describe_losses(kinds, words)
    advice = [*losses, "Agree with the producers on text and bytes."] if losses else []
    if not whole:
        advice.append("The broker lists no more messages at a time. --receive counts all messages.")
    part = f"all {seen:,}" if whole else f"the first {seen:,} of {depth:,}"
    return Finding(
        name="body types",
        value=f"{describe_counts(kinds)} ({part})",
        verdict=Verdict.PROBLEM if losses else Verdict.FINE if whole else Verdict.NOTE,
        advice=" ".join(advice),
        details={"seen": seen, "bodyTypes": {str(kind): count for kind, count in kinds.items()}},
    )
