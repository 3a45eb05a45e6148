"""What the broker lists of messages → how many there are of each body type, and what becomes of those. Asks nobody."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.jms.model import BODY_MARKER, BodyType
from pyspark_jms.stomp.dialects.management import Management

__all__ = ["Kind", "census_finding", "counted", "kinds_of", "lost"]

_OTHER = "other"
"""A code that no version known here has, or a message of another protocol."""


@dataclass(frozen=True, slots=True)
class Kind:
    body_type: str
    enveloped: bool = False

    def __str__(self) -> str:
        return f"{self.body_type} (envelope)" if self.enveloped else self.body_type


def kinds_of(messages: Iterable[Mapping[str, Any]], words: Management) -> Counter[Kind]:
    return Counter(_kind(message, words) for message in messages)


def _kind(message: Mapping[str, Any], words: Management) -> Kind:
    marker = message.get(BODY_MARKER)
    if marker in tuple(BodyType):
        return Kind(str(marker), enveloped=True)
    return Kind(words.body_types.get(message.get(words.body_type_key, -1), _OTHER))


def counted(kinds: Counter[Kind]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items(), key=lambda item: str(item[0])))


def lost(kinds: Iterable[Kind], words: Management) -> list[str]:
    """A sentence for each body type among them that does not arrive as it was sent."""
    plain = {kind.body_type for kind in kinds if not kind.enveloped}
    return [f"{kind.capitalize()} bodies {what}." for kind, what in words.losses.items() if kind in plain]


def census_finding(kinds: Counter[Kind], depth: int, words: Management) -> Finding:
    """``depth``: how many there are, looked at or not."""
    seen = kinds.total()
    if not seen:
        value = "no message that could be looked at" if depth else "the queue is empty"
        return Finding(name="body types", value=value, verdict=Verdict.NOTE if depth else Verdict.FINE)
    whole = seen >= depth
    losses = lost(kinds, words)
    advice = [*losses, "Agree on text and bytes with their producers."] if losses else []
    if not whole:
        advice.append("This broker shows no more of them at a time: --receive looks at the others.")
    return Finding(
        name="body types",
        value=f"{counted(kinds)} ({'all' if whole else 'the first'} {seen:,}{'' if whole else f' of {depth:,}'})",
        verdict=Verdict.PROBLEM if losses else Verdict.FINE if whole else Verdict.NOTE,
        advice=" ".join(advice),
        figures={"seen": seen, "bodyTypes": {str(kind): count for kind, count in kinds.items()}},
    )
