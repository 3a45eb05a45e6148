"""The table *fact of a queue × feature → refuse, warn or fine*, with its sentences. Does no I/O.

From it are made: what the start of a query refuses and logs, the findings of ``pyspark-jms check``, and a table of
docs/brokers/artemis.md.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from pyspark_jms.delivery.register.token import MAX_VALUE_DELIVERIES
from pyspark_jms.errors import JMSError, UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.management.link import ManagementLink, ask
from pyspark_jms.management.queue_facts import QueueFacts, facts_with_settings
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["RULES", "Effect", "Judgement", "judge", "patience_for", "require_own", "require_usable", "warn_of_use"]

_log = logging.getLogger("pyspark_jms.link")


class Effect(Enum):
    REFUSE = "refused"
    WARN = "a warning"


class Use(NamedTuple):
    effect: Effect
    consequence: str
    """What follows for the feature: the sentence goes on after "so"."""


def _refuse(consequence: str, *features: Feature) -> dict[Feature, Use]:
    return dict.fromkeys(features, Use(Effect.REFUSE, consequence))


def _warn(consequence: str, *features: Feature) -> dict[Feature, Use]:
    return dict.fromkeys(features, Use(Effect.WARN, consequence))


class Needs(NamedTuple):
    """What a use of a queue needs of it."""

    needed: int
    """Consumers."""

    patience: float
    """Seconds for which a token may be absent, in a queue of the connector's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A fact of a queue, and what it means for each feature. A feature that ``uses`` does not have is fine."""

    name: str
    """The broker's name of the attribute."""

    holds: Callable[[QueueFacts, Needs], bool]

    fact: str
    """A clause about the queue. Fields of ``QueueFacts`` and ``Needs`` are filled in."""

    uses: Mapping[Feature, Use]
    remedy: str = ""
    own_remedy: str = ""
    """For queues of the connector's own: the address setting."""


@dataclass(frozen=True, slots=True)
class Judgement:
    rule: Rule
    effect: Effect
    queue: str
    fact: str
    consequence: str
    remedy: str

    @property
    def sentence(self) -> str:
        return f"{self.fact}, so {self.consequence}"

    @property
    def advice(self) -> str:
        """Return a sentence, where the remedy is what to set."""
        is_setting = not self.remedy.endswith(".")
        return (
            f"In the address-setting of {self.queue.partition('::')[0]}: {self.remedy}." if is_setting else self.remedy
        )

    def error(self) -> JMSError:
        return UnsupportedError(f"Queue {self.queue} {self.sentence}.", self.advice)


_F = Feature
_READS = (_F.AT_LEAST_ONCE_READ, _F.JOURNAL, _F.REGISTER)
_WRITES = (_F.WRITE, _F.EXACTLY_ONCE_WRITE, _F.DEAD_LETTERS)
_OWN = (_F.STAGING_QUEUE, _F.COMMIT_LEDGER)
_DELETED = "the broker confirms messages and deletes them"
_DIVERT = "Read an ordinary queue: a divert (exclusive=false) of the address fills one with copies."
_FORGETS = "the broker deletes what a query keeps there between two batches"
PATIENCE = {_F.COMMIT_LEDGER: 30.0, _F.STAGING_QUEUE: 70.0}
"""Seconds for which a token may be absent: that of the sink, and of a reader whose broker has Artemis' default idle
time-out (``ReaderLink.patience_seconds``).
"""


def _is_dropped(policy: str | None) -> bool:
    return policy == "DROP"


RULES: tuple[Rule, ...] = (
    Rule(
        name="address",
        holds=lambda facts, _: facts.exists and (facts.address or facts.name) not in facts.name.split("::"),
        fact="belongs to address {address}",
        # The connector's own queues are looked up with their addresses: it does not attach to another program's.
        uses=_refuse("the broker confirms what is sent to the name of the queue alone, and drops it", *_WRITES),
        remedy="Send to {address}::{name}.",
    ),
    Rule(
        name="non-destructive",
        holds=lambda facts, _: facts.non_destructive is True,
        fact="is non-destructive: an acknowledgement removes nothing",
        uses={
            **_warn("each start of a query reads all its messages again", _F.AT_LEAST_ONCE_READ),
            **_refuse("each connection would read all its messages", _F.CONNECTIONS),
            **_refuse("each start would read all its messages again as new ones", _F.JOURNAL),
            **_refuse("each batch would read the same messages again", _F.REGISTER),
            **_refuse("what earlier batches have left would never go away", *_OWN),
        },
        remedy=_DIVERT,
        own_remedy="set default-non-destructive to false, and delete the queue",
    ),
    Rule(
        name="purge-on-no-consumers",
        holds=lambda facts, _: facts.purge_on_no_consumers is True,
        fact="keeps nothing without a consumer (purge-on-no-consumers)",
        uses={
            **_warn("messages that are sent while the query is not connected are lost", _F.AT_LEAST_ONCE_READ),
            **_refuse("what was not acknowledged when a connection ends would be lost", _F.JOURNAL),
            **_refuse("what is sent between two batches would be lost", _F.REGISTER),
            **_warn(f"{_DELETED} while nobody reads", *_WRITES),
            **_refuse(_FORGETS, *_OWN),
        },
        remedy="Set purge-on-no-consumers of the queue to false.",
        own_remedy="set default-purge-on-no-consumers to false, and delete the queue",
    ),
    Rule(
        name="ring-size",
        holds=lambda facts, _: facts.ring_size is not None,
        fact="keeps the newest {ring_size:,} messages only (ring-size)",
        uses={
            **_warn("older ones are deleted unread, also those that a query gives back", *_READS),
            **_warn("a write deletes messages that nobody has read", *_WRITES),
            **_refuse(_FORGETS, *_OWN),
        },
        remedy="Remove ring-size from the queue if each message counts.",
        own_remedy="set default-ring-size to -1, and delete the queue",
    ),
    Rule(
        name="last-value",
        holds=lambda facts, _: facts.last_value is True,
        fact="replaces a message by the next one with its key (last-value)",
        uses={
            **_warn("a query does not see each value, and may never see one that it gives back", *_READS),
            **_warn("a message with that key would replace what a query keeps there", *_OWN),
        },
        remedy="Read a queue without last-value if each message counts.",
        own_remedy="set default-last-value-queue to false, without a default-last-value-key",
    ),
    Rule(
        name="exclusive",
        holds=lambda facts, _: facts.exclusive is True and not facts.consumers,
        fact="gives all messages to one consumer (exclusive)",
        uses=_warn("one connection receives, and the others wait", _F.CONNECTIONS),
        remedy="Leave option connections out.",
    ),
    Rule(
        name="exclusive, in use",
        holds=lambda facts, _: facts.exclusive is True and bool(facts.consumers),
        fact="gives all messages to one consumer (exclusive), and has {consumers}",
        uses=_warn("this query gets nothing until that one ends", *_READS, _F.CONNECTIONS),
        remedy="End the other consumer, or read a queue of its own. The consumer of a query that died is there for a"
        " minute.",
    ),
    Rule(
        name="max-consumers 0",
        holds=lambda facts, _: facts.max_consumers == 0,
        fact="has max-consumers 0",
        uses=_refuse("nothing can be read from it", *_READS, *_OWN),
        remedy="Set max-consumers of the queue to -1.",
        own_remedy="set default-max-consumers to -1, and delete the queue",
    ),
    Rule(
        name="max-consumers",
        holds=lambda facts, needs: 0 < (facts.max_consumers or 0) < needs.needed,
        fact="has max-consumers {max_consumers}",
        uses={
            **_refuse("it refuses some of the {needed} consumers that option connections asks for", _F.CONNECTIONS),
            **_warn("the {needed} readers take turns", _F.REGISTER),
        },
        remedy="Set option connections, or readers, to at most {max_consumers}, or raise max-consumers of the queue.",
    ),
    Rule(
        name="consumers-before-dispatch",
        holds=lambda facts, needs: (facts.consumers_before_dispatch or 0) > needs.needed,
        fact="delivers nothing before it has {consumers_before_dispatch} consumers (consumers-before-dispatch)",
        uses={
            **_warn("this query, which is {needed} of them, gets nothing alone", *_READS),
            **_refuse("its only consumer gets nothing", *_OWN),
        },
        remedy="Set consumers-before-dispatch of the queue to {needed}, or start that many consumers.",
        own_remedy="set default-consumers-before-dispatch to 0, and delete the queue",
    ),
    Rule(
        name="paused",
        holds=lambda facts, _: facts.paused is True,
        fact="is paused",
        uses=_warn("it delivers nothing until somebody resumes it", *_READS, *_OWN),
        remedy="Resume the queue.",
        own_remedy="resume the queue",
    ),
    Rule(
        name="address-full-policy",
        holds=lambda facts, _: _is_dropped(facts.full_policy),
        fact="has an address whose address-full-policy is DROP",
        uses={
            **_warn(f"{_DELETED} when the address is full", *_WRITES),
            **_refuse(f"{_DELETED} when the address is full", *_OWN),
        },
        remedy="Set address-full-policy to PAGE.",
        own_remedy="set address-full-policy to PAGE",
    ),
    Rule(
        name="page-full-policy",
        holds=lambda facts, _: _is_dropped(facts.page_full_policy),
        fact="has an address with a page-limit whose page-full-policy is DROP",
        uses={
            **_warn(f"{_DELETED} when its pages are full", *_WRITES),
            **_refuse(f"{_DELETED} when its pages are full", *_OWN),
        },
        remedy="Set page-full-policy to FAIL.",
        own_remedy="set page-full-policy to FAIL",
    ),
    Rule(
        name="max-expiry-delay",
        holds=lambda facts, _: facts.max_expiry_delay is not None,
        fact="has an address whose messages expire after {max_expiry_delay:g} s (max-expiry-delay)",
        uses=_refuse("the broker removes messages that are still needed", *_OWN),
        own_remedy="set max-expiry-delay to -1",
    ),
    Rule(
        name="max-delivery-attempts",
        holds=lambda facts, _: 0 < (facts.max_delivery_attempts or 0) <= MAX_VALUE_DELIVERIES,
        fact="has an address with max-delivery-attempts {max_delivery_attempts}",
        uses=_refuse(f"the broker removes a token before a query replaces it, after {MAX_VALUE_DELIVERIES}", *_OWN),
        own_remedy="set max-delivery-attempts to 10 or more, or to -1",
    ),
    Rule(
        name="redelivery-delay",
        holds=lambda facts, needs: (facts.redelivery_delay or 0) >= needs.patience,
        fact="has an address whose redelivery-delay is up to {redelivery_delay:g} s",
        uses=_refuse("after a crash a query, which waits {patience:g} s, may take its token for lost and stop", *_OWN),
        own_remedy="set redelivery-delay to 0",
    ),
)


def patience_for(feature: Feature, given: float | None) -> float:
    return PATIENCE.get(feature, 0.0) if given is None else given


def judge(facts: QueueFacts, feature: Feature, needed: int = 1, patience: float | None = None) -> Iterator[Judgement]:
    """``needed`` and ``patience``: see ``Needs`` and ``patience_for``."""
    needs = Needs(needed, patience_for(feature, patience))
    for rule in RULES:
        use = rule.uses.get(feature)
        if use is None or not rule.holds(facts, needs):
            continue
        values = {name: getattr(facts, name) for name in QueueFacts.__slots__} | needs._asdict()
        remedy = rule.own_remedy if feature in _OWN else rule.remedy
        yield Judgement(
            rule,
            use.effect,
            facts.name,
            rule.fact.format_map(values),
            use.consequence.format_map(values),
            remedy.format_map(values),
        )


Judged: TypeAlias = tuple[QueueFacts, Feature, int]
"""Arguments of ``judge``."""


def require_usable(found: Iterable[Judged], patience: float | None = None) -> None:
    """Log a line for each warning, and raise the error of the first fact that is refused."""
    judgements = [each for judged in found for each in judge(*judged, patience)]
    for judgement in judgements:
        if judgement.effect is Effect.REFUSE:
            raise judgement.error()
    _log_each(judgements)


def warn_of_use(found: Iterable[Judged]) -> None:
    """Log a line for each fact that is not fine: of a query that runs, also for those that its start would refuse."""
    _log_each(each for judged in found for each in judge(*judged))


def _log_each(judgements: Iterable[Judgement]) -> None:
    for each in judgements:
        _log.warning("! queue %s %s. %s", each.queue, each.sentence, each.advice)


def require_own(
    open_link: Callable[[ConnectionSettings], ManagementLink],
    settings: ConnectionSettings,
    uses: Mapping[str, Feature],
    patience: float | None = None,
) -> None:
    """Call ``require_usable`` for queues that the connector writes to, whether they exist yet or not. It asks nothing
    without the permission ``manage``.
    """
    about = f"what the queues {', '.join(uses)} are"
    found = ask(open_link, settings, lambda link: facts_with_settings(link, uses), about) or {}
    require_usable(((found[name], feature, 1) for name, feature in uses.items() if name in found), patience)
