"""``SourceOptions``: the options of a read, parsed once, before anything connects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pyspark_jms.columns.schema import ReadColumns
from pyspark_jms.columns.selection import SelectorOptions, selection
from pyspark_jms.errors import (
    InvalidOptionError,
    JMSError,
    MissingOptionError,
    OptionConflictError,
    SelectorResidualError,
    UnknownOptionError,
    UnsupportedError,
)
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.names import may_receive
from pyspark_jms.jms.subscription import ASSUMED_MESSAGE_BYTES
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.broker import (
    possible_dialects,
    protocol_of,
    require_connections,
    require_durable,
    require_exactly_once_reads,
    require_readable,
    require_streams,
)
from pyspark_jms.options.values import (
    both_given,
    connection_settings,
    destinations,
    hide_secrets,
    option_named,
    parse_values,
)

__all__ = ["Journal", "SourceOptions"]

SMALLEST_WINDOW = 64 << 10
_DEFAULT_BATCH_BYTES = 64 << 20
"""The default of maxBytesPerTrigger in a streaming query."""

_NOT_IN_A_BATCH = (
    "Remove the option. A batch read leaves all messages on the broker, because it has no commit after which they could"
    " be acknowledged; maxMessagesPerTrigger and maxBytesPerTrigger limit it. To consume the messages and stop, use"
    " spark.readStream with trigger(availableNow=True)."
)


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
    """Where a new read of streams begins; None: no queue is a stream."""
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
    """The columns of the user's schema, which is not an option. None: all columns."""

    @property
    def batches_are_kept(self) -> bool:
        """Whether a later run can have a batch again that this one has read, so that a run may be one batch."""
        return self.exactly_once or self.stream_offset is not None

    @classmethod
    def parse(cls, raw: Mapping[str, str], reading: Literal["stream", "batch"] | None = None) -> "SourceOptions":
        """Raises an ``OptionError`` for the first option that is wrong.

        ``reading`` is None in ``load()``, before Spark decides: options of streams and of batches are allowed.
        """
        raw = hide_secrets(raw)
        values = parse_values(raw, "source")
        _refuse_options_of_streams(raw, reading)
        _require_queue_or_topic(values)
        _require_distinct_queues(values)
        return cls(
            connection=connection_settings(values),
            destinations=destinations(values),
            durable=_durable(values),
            selector=_selector(values),
            journal=_journal(values),
            exactly_once=_exactly_once(values),
            staging_queue=values["stagingQueue"],
            readers=_readers(values),
            stream_offset=_stream_offset(values),
            stream_filter=values["streamFilter"],
            connections=_connections(values),
            fail_on_data_loss=values["failOnDataLoss"],
            max_messages=values["maxMessagesPerTrigger"],
            max_bytes=_batch_bytes(values),
            peek_bytes=values["maxBytesPerTrigger"],
            window_bytes=_window(values),
            partition_bytes=values["partitionBytes"],
            body_type=values["bodyType"],
            on_bad_message=values["onBadMessage"],
            dead_letter_queue=_dead_letter_queue(values, reading),
            idle_timeout=values["idleTimeout"],
        )

    @property
    def is_plain_topic(self) -> bool:
        """Whether the source is a plain topic subscription: the broker keeps no messages while it is disconnected."""
        return self.durable is None and self.destinations[0].kind is DestinationKind.TOPIC

    @property
    def connection_window(self) -> int:
        """Bytes of the prefetch window of one connection."""
        return max(1, self.window_bytes // (len(self.destinations) * self.connections))

    def selector_for(self, dialect: BrokerDialect) -> str | None:
        """The selector text for a broker of this dialect."""
        return None if self.selector is None else selection(self.selector, dialect.name, dialect.selector_dialect).text

    def selector_warnings(self, dialect: BrokerDialect) -> tuple[str, ...]:
        return (
            () if self.selector is None else selection(self.selector, dialect.name, dialect.selector_dialect).warnings
        )


def _refuse_options_of_streams(raw: Mapping[str, str], reading: Literal["stream", "batch"] | None) -> None:
    if reading != "batch":
        return
    for key in raw:
        option = option_named(key)
        if option is not None and option.streams_only:
            raise UnknownOptionError(f"Option {option.name} is for a stream, and this reads a batch.", _NOT_IN_A_BATCH)


def _require_queue_or_topic(values: Mapping[str, Any]) -> None:
    if values["queue"] is None and values["topic"] is None:
        raise MissingOptionError(
            "Neither option queue nor option topic is given.", "Name the queue or the topic to read."
        )
    if values["queue"] is not None and values["topic"] is not None:
        raise both_given("queue", "topic", "Remove one of them, or start one query for each.")
    require_readable(values)


def _durable(values: Mapping[str, Any]) -> DurableSubscription | None:
    name, client_id, shared = (values[each] for each in ("subscriptionName", "clientId", "sharedSubscription"))
    if name is None:
        for option, given in (("clientId", client_id is not None), ("sharedSubscription", shared)):
            if given:
                raise OptionConflictError(
                    f"Option {option} is given without subscriptionName.",
                    "Name the durable subscription with subscriptionName.",
                )
        return None
    if values["topic"] is None:
        raise OptionConflictError(
            "Option subscriptionName is given, and no topic.",
            "Remove the option: a queue keeps its messages without a subscription.",
        )
    if client_id is None and not shared:
        raise MissingOptionError(
            "Option subscriptionName is given without clientId.",
            "A durable subscription belongs to one client id: give clientId, or sharedSubscription=true.",
        )
    durable = DurableSubscription(name, client_id, shared)
    require_durable(values, durable)
    return durable


def _selector(values: Mapping[str, Any]) -> SelectorOptions | None:
    """Split the selector for the broker that is named, or for all dialects with broker=auto.

    A selector that no dialect can evaluate is refused here, and so in ``load()``.
    """
    if values["selector"] is None:
        return None
    selector = SelectorOptions(values["selector"], values["selectorInSpark"])
    dialects = possible_dialects(values)
    refused: list[JMSError] = []
    for dialect in dialects:
        try:
            selection(selector, dialect.name, dialect.selector_dialect)
        except (SelectorResidualError, UnsupportedError) as error:
            refused.append(error)
    if len(refused) == len(dialects):
        raise refused[0]
    return selector


def _journal(values: Mapping[str, Any]) -> Journal | None:
    if values["journalLocation"] is None:
        return None
    return Journal(
        location=values["journalLocation"],
        max_bytes=values["maxJournalBytes"],
        shared=values["journalShared"],
    )


def _exactly_once(values: Mapping[str, Any]) -> bool:
    exactly_once: bool = values["deliveryGuarantee"] == "exactly-once"
    given = [name for name in ("journalLocation", "stagingQueue", "readers") if values[name] is not None]
    if exactly_once or given:
        require_exactly_once_reads(values, given)
    if given and not exactly_once:
        raise OptionConflictError(
            f"Option {given[0]} is given without deliveryGuarantee=exactly-once.", "Give both options or neither."
        )
    if exactly_once and values["topic"] is not None and values["subscriptionName"] is None:
        raise OptionConflictError(
            "deliveryGuarantee=exactly-once is given for a plain topic subscription, which loses what is sent while"
            " the query is not connected.",
            "Give subscriptionName and clientId, for a durable subscription.",
        )
    return exactly_once


def _readers(values: Mapping[str, Any]) -> int:
    readers: int = values["readers"] or 1
    if values["deliveryGuarantee"] != "exactly-once" or protocol_of(values) == "stomp":
        return readers
    if values["topic"] is not None and readers > 1 and not values["sharedSubscription"]:
        raise OptionConflictError(
            f"Option readers={readers} is given for a subscription that is not shared, which has one consumer.",
            "Use readers=1, or sharedSubscription=true.",
        )
    return readers


def _stream_offset(values: Mapping[str, Any]) -> str | int | datetime | None:
    """A stream keeps its messages, so what acknowledges, keeps or moves them has no meaning."""
    position: str | int | datetime | None = values["streamOffset"]
    if position is None:
        if values["streamFilter"] is not None:
            raise OptionConflictError("Option streamFilter is given without streamOffset.", "Give both or neither.")
        return None
    require_streams(values)
    for name, taken in (("onBadMessage", ("keep", "fail")), ("onTooLarge", ("fail",))):
        if values[name] not in taken:
            raise OptionConflictError(
                f"Options streamOffset and {name}={values[name]} are both given, and no message leaves a stream.",
                f"Set {name} to {' or '.join(taken)}.",
            )
    if values["deliveryGuarantee"] == "exactly-once":
        raise OptionConflictError(
            "Options streamOffset and deliveryGuarantee=exactly-once are both given.",
            "Remove deliveryGuarantee: the checkpoint has the offset of a stream, so a read of it is exactly-once into"
            " Spark without a staging queue.",
        )
    return position


def _connections(values: Mapping[str, Any]) -> int:
    connections: int = values["connections"]
    if connections == 1:
        return connections
    if values["deliveryGuarantee"] == "exactly-once" and protocol_of(values) == "amqp":
        raise OptionConflictError(
            f"Option connections={connections} is given with deliveryGuarantee=exactly-once over AMQP.",
            "Use option readers: so many tasks receive, each on a connection of its own.",
        )
    if values["streamOffset"] is not None:
        raise OptionConflictError(
            f"Options connections={connections} and streamOffset are both given, and a stream sends all of its messages"
            " on each connection.",
            "Use connections=1.",
        )
    if values["topic"] is not None and not values["sharedSubscription"]:
        raise OptionConflictError(
            f"Option connections={connections} is given for a topic subscription that is not shared, which has one"
            " consumer.",
            "Use connections=1, or a durable subscription with sharedSubscription=true.",
        )
    require_connections(values)
    return connections


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


def _dead_letter_queue(values: Mapping[str, Any], reading: Literal["stream", "batch"] | None) -> str | None:
    queue: str | None = values["deadLetterQueue"]
    for name in ("onBadMessage", "onTooLarge"):
        if values[name] == "deadLetter" and queue is None:
            raise MissingOptionError(
                f"Option {name}=deadLetter is given without deadLetterQueue.",
                "Name the dead-letter queue with option deadLetterQueue.",
            )
        if values[name] == "deadLetter" and reading == "batch":
            raise OptionConflictError(
                f"Option {name}=deadLetter is given for a batch read, which removes no message from a queue.",
                "Use spark.readStream, or remove the option.",
            )
    if queue is not None and "deadLetter" not in {values["onBadMessage"], values["onTooLarge"]}:
        raise OptionConflictError(
            "Option deadLetterQueue is given, and nothing is sent there.",
            "Set onBadMessage=deadLetter or onTooLarge=deadLetter as well.",
        )
    return queue


# --- the queues that the options of one read name ----------------------------------------------------

_OWN_PREFIX = "pyspark-jms."
_PARSED = ("::", "*", "#", ">", "?")
"""What a broker takes for more than a part of a plain name."""
_REMEDY = "Name another queue."


def _require_distinct_queues(values: Mapping[str, Any]) -> None:
    """``OptionConflictError`` if a name is, or as a pattern includes, the name of another option."""
    read = [("queue", name) for name in values["queue"] or ()]
    if values["topic"] is not None:
        read.append(("topic", values["topic"]))
    dead, staging = values["deadLetterQueue"], values["stagingQueue"]
    if dead is not None:
        _require_plain("deadLetterQueue", dead, parsed=_PARSED[1:])
        _require_not_own(dead)
        _refuse_reading_dead_letters([name for option, name in read if option == "queue"], dead)
        _refuse_dead_letters_of_subscription(values["clientId"], values["subscriptionName"], dead)
    if staging is None:
        return
    _require_plain("stagingQueue", staging, parsed=_PARSED)
    _refuse_number_at_end(staging)
    own = [staging, *(f"{staging}.{reader}" for reader in range(values["readers"] or 1))]
    if values["clientId"] is not None and (name := values["subscriptionName"]) in own:
        raise OptionConflictError(
            f"Option subscriptionName={name} and stagingQueue={staging} would have the same queue,"
            f" {values['clientId']}.{name}.",
            _REMEDY,
        )
    others = read if dead is None else [*read, ("deadLetterQueue", dead)]
    for option, name in others:
        if any(may_receive(name, each) for each in own):
            raise OptionConflictError(
                f"Option {option}={name} is also stagingQueue={staging}, or another queue that begins with this name.",
                f"{_REMEDY} The messages of a staging queue are the connector's own.",
            )


def _require_plain(option: str, name: str, *, parsed: Iterable[str]) -> None:
    found = next((text for text in parsed if text in name), None)
    if found is not None or name != name.strip():
        what = "a blank at an end" if found is None else found
        raise InvalidOptionError(f"Option {option}={name!r} has {what}.", "Give one plain name of a queue.")


def _refuse_number_at_end(name: str) -> None:
    """``orders.1`` is the second reader's queue of ``orders``, also for ``pyspark-jms staging`` and ``check``."""
    base, _, end = name.rpartition(".")
    if base and end.isdecimal():
        raise InvalidOptionError(
            f"Option stagingQueue={name} ends in a number, as the queues of readers do.",
            f"Give a name without it, as {base}-{end}.",
        )


def _require_not_own(name: str) -> None:
    if any(part.startswith(_OWN_PREFIX) for part in name.split("::")):
        raise OptionConflictError(f"Option deadLetterQueue={name} is a queue of the connector's own.", _REMEDY)


def _refuse_reading_dead_letters(sources: Iterable[str], dead_letter_queue: str) -> None:
    source = next((name for name in sources if may_receive(name, dead_letter_queue)), None)
    if source is not None:
        raise OptionConflictError(
            f"Queue {dead_letter_queue} is both read and deadLetterQueue."
            if source == dead_letter_queue
            else f"Option queue={source} also reads deadLetterQueue={dead_letter_queue}: the query would read its own"
            " dead letters again and again.",
            _REMEDY,
        )


def _refuse_dead_letters_of_subscription(client_id: str | None, name: str | None, dead_letter_queue: str) -> None:
    """``TOPIC::QUEUE`` names the queue of a subscription, which no plain name of a queue does."""
    _, separator, queue = dead_letter_queue.rpartition("::")
    if not separator or name is None:
        return
    own = str(DurableSubscription(name, client_id))
    if queue in {own, f"{own}:global"}:
        raise OptionConflictError(
            f"Option deadLetterQueue={dead_letter_queue} is the queue of the subscription that is read: the query would"
            " read its own dead letters again and again.",
            _REMEDY,
        )
