"""``SourceOptions``: the options of a read, parsed once, before anything connects."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pyspark_jms.columns.schema import ReadColumns
from pyspark_jms.columns.selection import SelectorOptions, require_evaluable, selection
from pyspark_jms.errors import (
    InvalidOptionError,
    MissingOptionError,
    OptionConflictError,
    OptionError,
    UnsupportedError,
)
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.names import require_distinct
from pyspark_jms.jms.subscription import ASSUMED_MESSAGE_BYTES, Subscription
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.broker import target_of
from pyspark_jms.options.values import both_given, connection_settings, destinations, made, parse_values

__all__ = ["SourceOptions"]

SMALLEST_WINDOW = 64 << 10
_DEFAULT_BATCH_BYTES = 64 << 20
"""The default of maxBytesPerTrigger in a streaming query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    location: str
    max_bytes: int
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    connection: ConnectionSettings
    destinations: tuple[Destination, ...]
    durable: DurableSubscription | None
    selector: SelectorOptions | None
    journal: Journal | None
    exactly_once: bool
    """Over STOMP there is a journal then. Over AMQP the tasks receive, and keep a batch in staging queues."""
    staging_queue: str | None
    readers: int
    """How many tasks of a batch receive, if it is exactly once."""
    stream_offset: str | int | datetime | None
    """Where a new read of streams begins, or None if no queue is a stream."""
    stream_filter: str | None
    connections: int
    """How many connections receive from each queue."""
    fail_on_data_loss: bool
    max_messages: int | None
    """The limit that the user gave for a batch of a streaming query, or for a whole batch read."""
    max_bytes: int
    """The limit of a batch of a streaming query."""
    peek_bytes: int | None
    """The limit that the user gave for a whole batch read. The default of maxBytesPerTrigger is one of streams."""
    window_bytes: int
    partition_bytes: int
    body_type: Literal["auto", "text", "bytes"]
    on_bad_message: Literal["keep", "fail", "deadLetter"]
    dead_letter_queue: str | None
    idle_timeout: float
    columns: ReadColumns | None = None
    """The columns of the user's schema, which is not an option, or None for all columns."""

    @property
    def batches_are_kept(self) -> bool:
        """Return whether a later run can have a batch again that this one has read, so that a run may be one batch."""
        return self.exactly_once or self.stream_offset is not None

    @classmethod
    def parse(cls, raw: Mapping[str, str], reading: Literal["stream", "batch"] | None = None) -> "SourceOptions":
        """Raise an ``OptionError`` for the first option that is wrong.

        ``reading`` is None in ``load()``, before Spark decides: options of streams and of batches are allowed.
        """
        values = parse_values(raw, "source", batch=reading == "batch")
        connection = connection_settings(values)
        read = made(
            cls,
            values,
            connection=connection,
            destinations=destinations(values),
            durable=_durable(values),
            selector=_selector(values),
            journal=_journal(values),
            exactly_once=values["deliveryGuarantee"] == "exactly-once",
            readers=values["readers"] or 1,
            max_messages=values["maxMessagesPerTrigger"],
            max_bytes=_batch_bytes(values),
            peek_bytes=values["maxBytesPerTrigger"],
            window_bytes=_window(values),
        )
        wrong, features = next(_conflicts(values, reading), None), tuple(_features(values))
        names = tuple(_names(values))
        target = target_of(connection)
        # First what the broker lacks: then no change of other options helps.
        require_evaluable(read.selector, target)
        target.require(*features)
        if wrong is not None:
            raise wrong
        require_distinct(names)
        target.require_subscription(read.subscription)
        return read

    @property
    def subscription(self) -> Subscription:
        """Return what a connection subscribes to, as far as brokers may refuse it."""
        return Subscription(
            destination=self.destinations[0],
            window_bytes=self.window_bytes,
            durable=self.durable,
            selector=None if self.selector is None else self.selector.text,
            connections=self.connections,
        )

    @property
    def is_plain_topic(self) -> bool:
        """Return whether the source is a plain topic subscription: the broker keeps no messages while it is
        disconnected.
        """
        return self.durable is None and self.destinations[0].kind is DestinationKind.TOPIC

    @property
    def queues(self) -> list[str]:
        """Return the names of the queues that are read, without topics."""
        return [each.name for each in self.destinations if each.kind is DestinationKind.QUEUE]

    def is_full_batch(self, messages: int, size: int) -> bool:
        return size >= self.max_bytes or (self.max_messages is not None and messages >= self.max_messages)

    @property
    def connection_window(self) -> int:
        """Return the bytes of the prefetch window of one connection."""
        return max(1, self.window_bytes // (len(self.destinations) * self.connections))

    def selector_for(self, dialect: BrokerDialect) -> str | None:
        """Return the selector text for a broker of this dialect."""
        return None if self.selector is None else selection(self.selector, dialect.name, dialect.selector_dialect).text

    def selector_warnings(self, dialect: BrokerDialect) -> tuple[str, ...]:
        return (
            () if self.selector is None else selection(self.selector, dialect.name, dialect.selector_dialect).warnings
        )


def _selector(values: Mapping[str, Any]) -> SelectorOptions | None:
    text = values["selector"]
    return None if text is None else SelectorOptions(text, values["selectorInSpark"])


def _durable(values: Mapping[str, Any]) -> DurableSubscription | None:
    name = values["subscriptionName"]
    return None if name is None else DurableSubscription(name, values["clientId"], values["sharedSubscription"])


def _journal(values: Mapping[str, Any]) -> Journal | None:
    if values["journalLocation"] is None:
        return None
    return Journal(
        location=values["journalLocation"],
        max_bytes=values["maxJournalBytes"],
        shared=values["journalShared"],
    )


def _batch_bytes(values: Mapping[str, Any]) -> int:
    return int(values["maxBytesPerTrigger"] or _DEFAULT_BATCH_BYTES)


def _window(values: Mapping[str, Any]) -> int:
    """Return the size of the prefetch window in bytes."""
    if values["windowBytes"] is not None:
        return int(values["windowBytes"])
    largest = 2 * _batch_bytes(values)
    if values["maxMessagesPerTrigger"] is not None and values["maxBytesPerTrigger"] is None:
        return min(max(SMALLEST_WINDOW, 2 * int(values["maxMessagesPerTrigger"]) * ASSUMED_MESSAGE_BYTES), largest)
    return largest


def _features(values: Mapping[str, Any]) -> Iterator[Feature]:
    """Return what single options ask of the broker."""
    if values["topic"] is not None:
        yield Feature.TOPICS
    if values["streamOffset"] is not None:
        yield Feature.STREAMS
    staged = values["stagingQueue"] is not None or values["readers"] is not None
    if values["journalLocation"] is not None:
        yield Feature.JOURNAL
    elif staged or values["deliveryGuarantee"] == "exactly-once":
        yield Feature.REGISTER
    if staged:
        yield Feature.STAGING_QUEUE


# --- rules between options: the errors of those that do not hold -------------------------------------------


def _conflicts(values: Mapping[str, Any], reading: Literal["stream", "batch"] | None) -> Iterator[OptionError]:
    if values["queue"] is None and values["topic"] is None:
        yield MissingOptionError(
            "Neither option queue nor option topic is given.", "Name the queue or the topic to read."
        )
    if values["queue"] is not None and values["topic"] is not None:
        yield both_given("queue", "topic", "Remove one of them, or start one query for each.")
    yield from _of_subscription(values)
    yield from _of_guarantee(values)
    yield from _of_stream(values)
    if values["connections"] > 1:
        yield from _of_connections(values)
    yield from _of_dead_letters(values, reading)
    yield from _of_staging(values)


def _of_subscription(values: Mapping[str, Any]) -> Iterator[OptionError]:
    client_id, shared = values["clientId"], values["sharedSubscription"]
    if values["subscriptionName"] is None:
        for option, given in (("clientId", client_id is not None), ("sharedSubscription", shared)):
            if given:
                yield OptionConflictError(
                    f"Option {option} is given without subscriptionName.",
                    "Name the durable subscription with subscriptionName.",
                )
    elif values["topic"] is None:
        yield OptionConflictError(
            "Option subscriptionName is given, and no topic.",
            "Remove the option: a queue keeps its messages without a subscription.",
        )
    elif client_id is None and not shared:
        yield MissingOptionError(
            "Option subscriptionName is given without clientId.",
            "A durable subscription belongs to one client id: give clientId, or sharedSubscription=true.",
        )


def _of_guarantee(values: Mapping[str, Any]) -> Iterator[OptionError]:
    if values["deliveryGuarantee"] != "exactly-once":
        for name in ("journalLocation", "stagingQueue", "readers"):
            if values[name] is not None:
                yield OptionConflictError(
                    f"Option {name} is given without deliveryGuarantee=exactly-once.", "Give both options or neither."
                )
        return
    if values["topic"] is None:
        return
    if values["subscriptionName"] is None:
        yield OptionConflictError(
            "deliveryGuarantee=exactly-once is given for a plain topic subscription, which loses what is sent while"
            " the query is not connected.",
            "Give subscriptionName and clientId, for a durable subscription.",
        )
    if (values["readers"] or 1) > 1 and not values["sharedSubscription"]:
        yield OptionConflictError(
            f"Option readers={values['readers']} is given for a subscription that is not shared, which has one"
            " consumer.",
            "Use readers=1, or sharedSubscription=true.",
        )


def _of_stream(values: Mapping[str, Any]) -> Iterator[OptionError]:
    """A stream keeps its messages, so what acknowledges, keeps or moves them has no meaning."""
    if values["streamOffset"] is None:
        if values["streamFilter"] is not None:
            yield OptionConflictError("Option streamFilter is given without streamOffset.", "Give both or neither.")
        return
    if values["topic"] is not None:
        yield UnsupportedError(
            "Options streamOffset and topic are both given, and only queues are streams.",
            "Use queue in place of topic.",
        )
    for name, taken in (("onBadMessage", ("keep", "fail")), ("onTooLarge", ("fail",))):
        if values[name] not in taken:
            yield OptionConflictError(
                f"Options streamOffset and {name}={values[name]} are both given, and no message leaves a stream.",
                f"Set {name} to {' or '.join(taken)}.",
            )
    if values["deliveryGuarantee"] == "exactly-once":
        yield OptionConflictError(
            "Options streamOffset and deliveryGuarantee=exactly-once are both given.",
            "Remove deliveryGuarantee: the checkpoint has the offset of a stream, so a read of it is exactly-once into"
            " Spark without a staging queue.",
        )


def _of_connections(values: Mapping[str, Any]) -> Iterator[OptionError]:
    given = f"connections={values['connections']}"
    if values["deliveryGuarantee"] == "exactly-once" and values["journalLocation"] is None:
        yield OptionConflictError(
            f"Option {given} is given with deliveryGuarantee=exactly-once over AMQP.",
            "Use option readers: so many tasks receive, each on a connection of its own.",
        )
    if values["streamOffset"] is not None:
        yield OptionConflictError(
            f"Options {given} and streamOffset are both given, and a stream sends all of its messages on each"
            " connection.",
            "Use connections=1.",
        )
    if values["topic"] is not None and not values["sharedSubscription"]:
        yield OptionConflictError(
            f"Option {given} is given for a topic subscription that is not shared, which has one consumer.",
            "Use connections=1, or a durable subscription with sharedSubscription=true.",
        )


def _of_dead_letters(values: Mapping[str, Any], reading: Literal["stream", "batch"] | None) -> Iterator[OptionError]:
    queue: str | None = values["deadLetterQueue"]
    for name in ("onBadMessage", "onTooLarge"):
        if values[name] == "deadLetter" and queue is None:
            yield MissingOptionError(
                f"Option {name}=deadLetter is given without deadLetterQueue.",
                "Name the dead-letter queue with option deadLetterQueue.",
            )
        if values[name] == "deadLetter" and reading == "batch":
            yield OptionConflictError(
                f"Option {name}=deadLetter is given for a batch read, which removes no message from a queue.",
                "Use spark.readStream, or remove the option.",
            )
    if queue is None:
        return
    if "deadLetter" not in {values["onBadMessage"], values["onTooLarge"]}:
        yield OptionConflictError(
            "Option deadLetterQueue is given, and nothing is sent there.",
            "Set onBadMessage=deadLetter or onTooLarge=deadLetter as well.",
        )
    yield from _of_plain_name("deadLetterQueue", queue, parsed=_PARSED[1:])
    if any(part.startswith(_OWN_PREFIX) for part in queue.split("::")):
        yield OptionConflictError(f"Option deadLetterQueue={queue} is a queue of the connector's own.", _REMEDY)
    # TOPIC::QUEUE names the queue of a subscription, which no plain name of a queue does.
    _, separator, own = queue.rpartition("::")
    if separator and values["subscriptionName"] is not None:
        durable = str(DurableSubscription(values["subscriptionName"], values["clientId"]))
        if own in {durable, f"{durable}:global"}:
            yield OptionConflictError(
                f"Option deadLetterQueue={queue} is the queue of the subscription that is read: the query would read"
                " its own dead letters again and again.",
                _REMEDY,
            )


# --- the queues that the options of one read name ----------------------------------------------------

_OWN_PREFIX = "pyspark-jms."
_PARSED = ("::", "*", "#", ">", "?")
"""What a broker takes for more than a part of a plain name."""
_REMEDY = "Name another queue."


def _of_plain_name(option: str, name: str, *, parsed: Iterable[str]) -> Iterator[OptionError]:
    found = next((text for text in parsed if text in name), None)
    if found is not None or name != name.strip():
        what = "a blank at an end" if found is None else found
        yield InvalidOptionError(f"Option {option}={name!r} has {what}.", "Give one plain name of a queue.")


def _of_staging(values: Mapping[str, Any]) -> Iterator[OptionError]:
    staging = values["stagingQueue"]
    if staging is None:
        return
    yield from _of_plain_name("stagingQueue", staging, parsed=_PARSED)
    # ``orders.1`` is the second reader's queue of ``orders``, also for ``pyspark-jms staging`` and ``check``.
    base, _, end = staging.rpartition(".")
    if base and end.isdecimal():
        yield InvalidOptionError(
            f"Option stagingQueue={staging} ends in a number, as the queues of readers do.",
            f"Give a name without it, as {base}-{end}.",
        )
    if values["clientId"] is not None and (name := values["subscriptionName"]) in _staging_queues(values):
        yield OptionConflictError(
            f"Option subscriptionName={name} and stagingQueue={staging} would have the same queue,"
            f" {values['clientId']}.{name}.",
            _REMEDY,
        )


def _staging_queues(values: Mapping[str, Any]) -> list[str]:
    staging = values["stagingQueue"]
    return [] if staging is None else [staging, *(f"{staging}.{each}" for each in range(values["readers"] or 1))]


def _names(values: Mapping[str, Any]) -> Iterator[tuple[str, str, OptionError]]:
    """Return names that are read, or sent to, each with a queue that must not be among them, and the error if it is."""
    queues, dead = values["queue"] or (), values["deadLetterQueue"]
    for name in queues if dead is not None else ():
        yield (
            name,
            dead,
            OptionConflictError(
                f"Queue {dead} is both read and deadLetterQueue."
                if name == dead
                else f"Option queue={name} also reads deadLetterQueue={dead}: the query would read its own dead letters"
                " again and again.",
                _REMEDY,
            ),
        )
    others = [("topic", values["topic"]), *(("queue", name) for name in queues), ("deadLetterQueue", dead)]
    for option, name in others:
        for own in _staging_queues(values) if name is not None else ():
            yield (
                name,
                own,
                OptionConflictError(
                    f"Option {option}={name} is also stagingQueue={values['stagingQueue']}, or another queue that"
                    " begins with this name.",
                    f"{_REMEDY} The messages of a staging queue are the connector's own.",
                ),
            )
