"""Raw option strings → ``SourceOptions`` or ``SinkOptions``, once, before anything connects.

Options are strings for this file only. An unknown key is refused (``option_names`` says what is meant), a bad value
with what would do; a secret is never repeated.
"""

import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pyspark_jms.columns.selection import Selector, selection
from pyspark_jms.errors import (
    InvalidOptionError,
    MissingOptionError,
    OptionConflictError,
    SelectorResidualError,
    UnknownOptionError,
)
from pyspark_jms.jms.model import DeliveryMode, Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.secret_text import SecretText
from pyspark_jms.network.settings import ConnectionSettings, Password, TlsSettings
from pyspark_jms.options.names import unknown_option
from pyspark_jms.options.table import OPTIONS, Option, Scope
from pyspark_jms.stomp.dialects import DIALECTS, Dialect, dialect_named
from pyspark_jms.stomp.dialects.addresses import reads_too
from pyspark_jms.stomp.dialects.base import ASSUMED_MESSAGE_BYTES
from pyspark_jms.stomp.dialects.refusals import (
    require_duplicate_detection,
    require_durable,
    require_enough_unacknowledged,
    require_stable_ids,
    require_transactions,
)

__all__ = ["OPTIONS", "Journal", "Option", "SinkOptions", "SourceOptions", "hide_secrets"]

_log = logging.getLogger("pyspark_jms.options.parsing")

SMALLEST_WINDOW = 64 << 10

_BY_KEY = {option.name.lower(): option for option in OPTIONS}
_OF_A_BATCH = frozenset({"maxmessages", "maxbytes"})
_OF_A_STREAM = frozenset(
    [
        "maxmessagespertrigger",
        "maxbytespertrigger",
        "minmessagespertrigger",
        "maxtriggerdelay",
        "windowbytes",
        "journallocation",
        "maxjournalbytes",
        "journalshared",
        "failondataloss",
        "subscriptionname",
        "clientid",
        "sharedsubscription",
    ]
)
_TO_CONSUME = (
    " It only looks, since it has no commit after which messages could be acknowledged: to consume what is there and"
    " stop, use spark.readStream with trigger(availableNow=True)."
)
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname"})
"""Spark hands a sink these of its own."""


# --- what the stations get -----------------------------------------------------------------------------


class NamedDialect(Protocol):
    """What splitting a selector needs to know of the broker."""

    @property
    def name(self) -> str: ...

    @property
    def selector_dialect(self) -> str | None: ...


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
    selector: Selector | None
    journal: Journal | None
    fail_on_data_loss: bool
    max_messages: int | None
    max_bytes: int
    min_messages: int | None
    max_delay: float
    peek_messages: int
    peek_bytes: int
    window_bytes: int
    partition_bytes: int
    body_type: Literal["auto", "text", "bytes"]
    on_bad_message: Literal["keep", "fail", "deadLetter"]
    dead_letter_queue: str | None
    idle_timeout: float

    @classmethod
    def parse(cls, raw: Mapping[str, str], reading: Literal["stream", "batch"] | None = None) -> "SourceOptions":
        """Raises an ``OptionError`` for the first thing that is wrong.

        ``load()`` does not know yet whether a stream or a batch is ``reading``; then both have their options.
        """
        raw = hide_secrets(raw)
        values = _values(raw, "source")
        _refuse_the_others(raw, reading)
        _in_order(values)
        _exactly_one(values, "queue", "topic", "Say what to read: option queue, or option topic.")
        return cls(
            connection=_connection(values),
            destinations=_sources(values),
            durable=_durable(values),
            selector=_checked_selector(values),
            journal=_journal(values),
            fail_on_data_loss=values["failOnDataLoss"],
            max_messages=values["maxMessagesPerTrigger"],
            max_bytes=values["maxBytesPerTrigger"],
            min_messages=values["minMessagesPerTrigger"],
            max_delay=values["maxTriggerDelay"],
            peek_messages=values["maxMessages"],
            peek_bytes=values["maxBytes"],
            window_bytes=_window(values, explicit_bytes="maxbytespertrigger" in {key.lower() for key in raw}),
            partition_bytes=values["partitionBytes"],
            body_type=values["bodyType"],
            on_bad_message=values["onBadMessage"],
            dead_letter_queue=_dead_letter_queue(values, reading),
            idle_timeout=values["idleTimeout"],
        )

    @property
    def forgotten(self) -> bool:
        """Whether the broker keeps nothing for this query while it is not connected: a plain topic subscription."""
        return self.durable is None and self.destinations[0].kind is DestinationKind.TOPIC

    def selector_for(self, dialect: NamedDialect) -> str | None:
        """What to give the broker that answered."""
        return None if self.selector is None else selection(self.selector, dialect.name, dialect.selector_dialect).text

    def selector_warnings(self, dialect: NamedDialect) -> tuple[str, ...]:
        return (
            () if self.selector is None else selection(self.selector, dialect.name, dialect.selector_dialect).warnings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    connection: ConnectionSettings
    destination: Destination | None
    delivery_mode: DeliveryMode
    priority: int
    time_to_live_ms: int
    delivery_delay_ms: int
    transaction: str | int
    """``task``, ``none``, or the rows of one transaction."""
    exactly_once: bool
    send_on_mismatch: bool
    write_id: str | None
    property_columns: tuple[str, ...]
    drop_bad_rows: bool

    @classmethod
    def parse(cls, raw: Mapping[str, str]) -> "SinkOptions":
        """Raises an ``OptionError`` for the first thing that is wrong."""
        raw = {key: text for key, text in hide_secrets(raw).items() if key.lower() not in _SPARKS_OWN}
        values = _values(raw, "sink")
        if values["queue"] is not None and values["topic"] is not None:
            raise _both("queue", "topic", "Give one as the default, and column destination for the rest.")
        if values["queue"] is not None and len(values["queue"]) > 1:
            raise InvalidOptionError(
                "Option queue of a sink is one name.", "Rows for several queues say so in column destination."
            )
        return cls(
            connection=_connection(values),
            destination=next(iter(_sources(values)), None),
            delivery_mode=values["deliveryMode"],
            priority=values["priority"],
            time_to_live_ms=values["timeToLive"],
            delivery_delay_ms=values["deliveryDelay"],
            transaction=values["transaction"],
            exactly_once=_exactly_once(values),
            send_on_mismatch=values["onReplayMismatch"] == "send",
            write_id=values["writeId"],
            property_columns=values["propertyColumns"] or (),
            drop_bad_rows=values["onBadRow"] == "drop",
        )


def _exactly_once(values: Mapping[str, Any]) -> bool:
    """Whether it is; and what the broker, if it is named, must be able to do for that or for ``transaction``."""
    exactly_once: bool = values["deliveryGuarantee"] == "exactly-once"
    if exactly_once and values["transaction"] != "task":
        raise OptionConflictError(
            f"deliveryGuarantee=exactly-once cannot have transaction={values['transaction']}: a task that fails"
            " half-way would leave rows behind that its next attempt sends again.",
            "Leave out option transaction.",
        )
    for name in ("onReplayMismatch", "writeId"):
        if values[name] is not None and not exactly_once:
            raise OptionConflictError(
                f"Option {name} is given without deliveryGuarantee=exactly-once.", "Give both, or neither."
            )
    if (dialect := _named(values)) is not None:
        if exactly_once:
            require_duplicate_detection(dialect)
        if values["transaction"] != "none":
            require_transactions(dialect)
    return exactly_once


def hide_secrets(raw: Mapping[str, str]) -> dict[str, str]:
    """The same options, with texts that no ``repr`` shows where they are or may be a secret."""
    return {key: text if _may_show(key, text) else SecretText(text) for key, text in raw.items()}


def _may_show(key: str, text: str) -> bool:
    """Not a secret, nor an address with a password in it, nor an unknown key, which may be a misspelled secret's."""
    option = _BY_KEY.get(key.lower())
    return option is not None and not option.secret and not (option.name == "brokerUrl" and "@" in text)


def _values(raw: Mapping[str, str], scope: Scope) -> dict[str, Any]:
    """Every option of the scope by name, parsed, defaults filled in."""
    given: dict[str, str] = {}
    for key, text in raw.items():
        option = _BY_KEY.get(key.lower())
        if option is None:
            raise unknown_option(key, scope)
        if option.scope not in (scope, "both"):
            verb = "reading" if option.scope == "source" else "writing"
            raise UnknownOptionError(f"Option {option.name} is for {verb}.", "Leave it out here.")
        given[option.name] = text
    if {"reconnectAttempts", "reconnectTimeout"} <= given.keys():
        raise _both("reconnectAttempts", "reconnectTimeout", "reconnectAttempts is deprecated: leave it out.")
    return {o.name: _parse(o, given.get(o.name, o.default)) for o in OPTIONS if o.scope in (scope, "both")}


def _parse(option: Option, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return option.parse(text)
    except ValueError as error:
        shown = "read" if option.secret or option.name == "brokerUrl" else repr(text)
        raise InvalidOptionError(f"Option {option.name} cannot be {shown}.", f"Wanted: {error}.") from None


def _refuse_the_others(raw: Mapping[str, str], reading: Literal["stream", "batch"] | None) -> None:
    if reading is None:
        return
    others, instead = (_OF_A_BATCH, "maxMessagesPerTrigger") if reading == "stream" else (_OF_A_STREAM, "maxMessages")
    for key in raw:
        if key.lower() in others:
            other = "batch" if reading == "stream" else "stream"
            raise UnknownOptionError(
                f"Option {_BY_KEY[key.lower()].name} is for a {other}, and this reads a {reading}.",
                f"A {reading} is bounded by {instead} and its like.{_TO_CONSUME if reading == 'batch' else ''}",
            )


def _in_order(values: Mapping[str, Any]) -> None:
    if (dialect := _named(values)) is not None:
        require_enough_unacknowledged(dialect, values["minMessagesPerTrigger"])
    least, most = values["minMessagesPerTrigger"], values["maxMessagesPerTrigger"]
    if least is not None and most is not None and least > most:
        raise OptionConflictError(
            f"minMessagesPerTrigger ({least}) exceeds maxMessagesPerTrigger ({most}).", "Turn them round, or drop one."
        )


def _named(values: Mapping[str, Any]) -> Dialect | None:
    """The dialect, where it need not be found out."""
    return None if values["broker"] == "auto" else dialect_named(values["broker"])


def _journal(values: Mapping[str, Any]) -> Journal | None:
    if values["journalLocation"] is None:
        return None
    if (dialect := _named(values)) is not None:
        require_stable_ids(dialect)
    return Journal(
        location=values["journalLocation"],
        max_bytes=values["maxJournalBytes"],
        shared=values["journalShared"],
    )


def _dead_letter_queue(values: Mapping[str, Any], reading: Literal["stream", "batch"] | None) -> str | None:
    queue: str | None = values["deadLetterQueue"]
    for name in ("onBadMessage", "onTooLarge"):
        if values[name] == "deadLetter" and queue is None:
            raise MissingOptionError(
                f"Option {name}=deadLetter is given without deadLetterQueue.", "Name the queue for such messages."
            )
        if values[name] == "deadLetter" and reading == "batch":
            raise OptionConflictError(
                f"Option {name}=deadLetter is given for a batch read, which takes nothing off a queue.",
                "Use spark.readStream, or leave the option out.",
            )
    if queue is not None and "deadLetter" not in {values["onBadMessage"], values["onTooLarge"]}:
        raise OptionConflictError(
            "Option deadLetterQueue is given, and nothing is sent there.",
            "Set onBadMessage=deadLetter or onTooLarge=deadLetter as well.",
        )
    read = next((name for name in values["queue"] or () if queue is not None and reads_too(name, queue)), None)
    if read is not None:
        raise OptionConflictError(
            f"Queue {queue} is both read and deadLetterQueue."
            if read == queue
            else f"Option queue={read} also reads deadLetterQueue={queue}: a dead letter would never leave.",
            "Name another queue.",
        )
    return queue


def _checked_selector(values: Mapping[str, Any]) -> Selector | None:
    """Split for the broker that is named, or for every one it may be: what none can do is said at ``load()``."""
    if values["selector"] is None:
        return None
    selector = Selector(values["selector"], values["selectorResidual"], values["selectorCheck"] == "on")
    names = DIALECTS if values["broker"] == "auto" else (values["broker"],)
    refused: list[SelectorResidualError] = []
    for name in names:
        try:
            selection(selector, name, dialect_named(name).selector_dialect)
        except SelectorResidualError as error:
            refused.append(error)
    if len(refused) == len(names):
        raise refused[0]
    return selector


def _exactly_one(values: Mapping[str, Any], first: str, second: str, remedy: str) -> None:
    if values[first] is None and values[second] is None:
        raise MissingOptionError(f"Neither option {first} nor option {second} is given.", remedy)
    if values[first] is not None and values[second] is not None:
        raise _both(first, second, "One query reads queues or a topic: leave one out, or start two queries.")


def _both(first: str, second: str, remedy: str) -> OptionConflictError:
    return OptionConflictError(f"Options {first} and {second} are both given.", remedy)


def _sources(values: Mapping[str, Any]) -> tuple[Destination, ...]:
    if values["topic"] is not None:
        return (Destination(DestinationKind.TOPIC, values["topic"]),)
    return tuple(Destination(DestinationKind.QUEUE, name) for name in values["queue"] or ())


def _durable(values: Mapping[str, Any]) -> DurableSubscription | None:
    name, client_id, shared = (values[each] for each in ("subscriptionName", "clientId", "sharedSubscription"))
    if name is None:
        for option, given in (("clientId", client_id is not None), ("sharedSubscription", shared)):
            if given:
                raise OptionConflictError(
                    f"Option {option} is given without subscriptionName.", "A durable subscription has a name."
                )
        return None
    if values["topic"] is None:
        raise OptionConflictError(
            "Option subscriptionName is given, and no topic.", "A queue keeps its messages by itself: leave it out."
        )
    if client_id is None and not shared:
        raise MissingOptionError(
            "Option subscriptionName is given without clientId.",
            "A durable subscription belongs to a client: give clientId, or sharedSubscription=true.",
        )
    durable = DurableSubscription(name, client_id, shared)
    if (dialect := _named(values)) is not None:
        require_durable(dialect, durable, selected=values["selector"] is not None)
    return durable


def _window(values: Mapping[str, Any], *, explicit_bytes: bool) -> int:
    if values["windowBytes"] is not None:
        return int(values["windowBytes"])
    if values["maxMessagesPerTrigger"] is not None and not explicit_bytes:
        wanted = 2 * values["maxMessagesPerTrigger"] * ASSUMED_MESSAGE_BYTES
        return int(min(max(SMALLEST_WINDOW, wanted), 2 * values["maxBytesPerTrigger"]))
    return int(2 * values["maxBytesPerTrigger"])


def _connection(values: Mapping[str, Any]) -> ConnectionSettings:
    if values["brokerUrl"] is None:
        raise MissingOptionError("Option brokerUrl is not given.", "Say where the broker is: stomp://HOST:61613.")
    _check_tls(values)
    key_password = values["sslKeyPassword"]
    return ConnectionSettings(
        addresses=values["brokerUrl"],
        user=values["user"],
        password=_password(values),
        tls=TlsSettings(
            ca_file=values["sslCaFile"],
            cert_file=values["sslCertFile"],
            key_file=values["sslKeyFile"],
            key_password=None if key_password is None else Password(value=key_password),
            verify_hostname=values["sslVerifyHostname"],
        ),
        broker=values["broker"],
        client_id=values.get("clientId"),
        virtual_host=values["virtualHost"],
        connect_timeout=values["connectTimeout"],
        receipt_timeout=values["receiptTimeout"],
        heartbeat=values["heartbeat"],
        reconnect_timeout=_reconnect_timeout(values),
        max_message_bytes=values["maxMessageBytes"],
        on_too_large=values.get("onTooLarge", "stop"),
    )


def _reconnect_timeout(values: Mapping[str, Any]) -> float:
    attempts = values["reconnectAttempts"]
    if attempts is None:
        return float(values["reconnectTimeout"])
    timeout = float(sum(min(1 << attempt, 30) for attempt in range(attempts)))
    _warn_once(f"! option reconnectAttempts is deprecated: give reconnectTimeout={timeout:.0f}s")
    return timeout


@functools.cache
def _warn_once(text: str) -> None:
    _log.warning(text)


def _check_tls(values: Mapping[str, Any]) -> None:
    for name in ("sslKeyFile", "sslKeyPassword"):
        if values[name] is not None and values["sslCertFile"] is None:
            raise OptionConflictError(f"Option {name} is given without sslCertFile.", "Mutual TLS needs both.")
    for name in ("sslCaFile", "sslCertFile"):
        if values[name] is not None and not any(address.tls for address in values["brokerUrl"]):
            raise OptionConflictError(
                f"Option {name} is given and no address of brokerUrl speaks TLS.", "TLS is stomp+ssl://HOST:61614."
            )


def _password(values: Mapping[str, Any]) -> Password | None:
    given = [name for name in ("password", "passwordFile", "passwordEnv") if values[name] is not None]
    if len(given) > 1:
        raise _both(given[0], given[1], "Keep one of them.")
    if not given:
        return None
    if values["user"] is None:
        raise OptionConflictError(f"Option {given[0]} is given without user.", "Give both, or neither.")
    return Password(value=values["password"], file=values["passwordFile"], variable=values["passwordEnv"])
