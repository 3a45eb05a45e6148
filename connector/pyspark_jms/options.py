"""Raw option strings → ``SourceOptions`` or ``SinkOptions``, once, before anything connects.

Options are strings for this file only. An unknown key is refused with the nearest known one, a bad value
with what would do; a secret is never repeated.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyspark_jms.columns.selection import Selector, selection
from pyspark_jms.dialect import DIALECTS, Dialect
from pyspark_jms.errors import (
    InvalidOptionError,
    MissingOptionError,
    OptionConflictError,
    SelectorResidualError,
    UnknownOptionError,
)
from pyspark_jms.link.address import parse_broker_url
from pyspark_jms.link.settings import ConnectionSettings, Password, TlsSettings
from pyspark_jms.model import DeliveryMode, Destination, DestinationKind
from pyspark_jms.units import octets, seconds

__all__ = ["OPTIONS", "Journal", "Option", "SinkOptions", "SourceOptions"]

SMALLEST_WINDOW = 64 << 10
ASSUMED_MESSAGE_BYTES = 4 << 10
"""With maxMessagesPerTrigger alone the window is set before any message was seen: this many octets each."""

_LARGEST_TIME = 1 << 53
_WRITE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,200}")
_LARGEST_SIZE = 1 << 53
_LONGEST_WAIT = 30 * 86_400.0
_SHORTEST_HEARTBEAT = 0.5
"""Heart-beats are never off: without them an idle Artemis connection dies after 60 s. Below this it does not go."""
_MAX_DIGITS = 18
Scope = Literal["source", "sink", "both"]


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the reference. ``parse`` turns text into the value or raises ``ValueError`` with what would do."""

    name: str
    scope: Scope
    default: str | None
    parse: Callable[[str], Any]
    meaning: str
    secret: bool = False


# --- values ------------------------------------------------------------------------------------------


def _text(text: str) -> str:
    if not text:
        raise ValueError("a text that is not empty")
    if any(character in text for character in "\r\n\0"):
        raise ValueError("a text without line ends and NUL")
    return text


def _selector(text: str) -> str:
    if not text.strip():
        raise ValueError("a selector that is not blank")
    return text


def _secret(text: str) -> str:
    return text


def _number(smallest: int, largest: int | None = None) -> Callable[[str], int]:
    wanted = f"a whole number from {smallest}" + (f" to {largest}" if largest is not None else " up")

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS:
            raise ValueError(wanted)
        number = int(text)
        if number < smallest or (largest is not None and number > largest):
            raise ValueError(wanted)
        return number

    return parse


def _size(smallest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = octets(text)
        if not smallest <= number <= _LARGEST_SIZE:
            raise ValueError(f"a size of at least {smallest} octets and at most 8,192t")
        return number

    return parse


def _duration(smallest: float = 0.001) -> Callable[[str], float]:
    def parse(text: str) -> float:
        number = seconds(text)
        if not smallest <= number <= _LONGEST_WAIT:
            raise ValueError(f"a time from {smallest * 1000:g}ms to 30d")
        return number

    return parse


def _milliseconds(text: str) -> int:
    """JMS gives times to live in milliseconds: here, and only here, a plain number means that."""
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        number = int(text)
    else:
        number = round(seconds(text) * 1000)
    if number > _LARGEST_TIME:
        raise ValueError("a time of less than 285,000 years")
    return number


def _one_of(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in values:
            raise ValueError(f"one of {', '.join(values)}")
        return text.lower()

    return parse


def _flag(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _delivery_mode(text: str) -> DeliveryMode:
    modes = {"persistent": DeliveryMode.PERSISTENT, "non_persistent": DeliveryMode.NON_PERSISTENT}
    return modes[_one_of(*modes)(text.replace("-", "_"))]


def _transaction(text: str) -> str | int:
    if text.lower() in {"task", "none"}:
        return text.lower()
    try:
        return _number(1)(text)
    except ValueError:
        raise ValueError("task, none, or a number of rows from 1 up") from None


def _write_id(text: str) -> str:
    if not _WRITE_ID.fullmatch(text):
        raise ValueError("1 to 200 letters, digits and any of . _ - : / + = @")
    return text


def _destinations(text: str) -> tuple[str, ...]:
    """One name, or several as a JSON array."""
    if not text.lstrip().startswith("["):
        return (_text(text),)
    try:
        names = json.loads(text)
    except json.JSONDecodeError:
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError('a name, or several as a JSON array: ["orders", "invoices"]')
    if len(set(names)) != len(names):
        raise ValueError("names that differ from each other")
    return tuple(_text(name) for name in names)


OPTIONS: tuple[Option, ...] = (
    Option("brokerUrl", "both", None, parse_broker_url, "`stomp://HOST:61613` or `stomp+ssl://HOST:61614`; a"
           " comma-separated list is tried in order (live and backup of one broker)"),
    Option("user", "both", None, _text, "login"),
    Option("password", "both", None, _secret, "passcode", secret=True),
    Option("passwordFile", "both", None, _text, "a file that holds the password, read where the connection is made"),
    Option("passwordEnv", "both", None, _text, "an environment variable that holds the password, read likewise"),
    Option("sslCaFile", "both", None, _text, "PEM file with the CA of the broker's certificate; else the system's CAs"),
    Option("sslCertFile", "both", None, _text, "PEM file with the client's certificate (mutual TLS)"),
    Option("sslKeyFile", "both", None, _text, "PEM file with its key"),
    Option("sslKeyPassword", "both", None, _secret, "password of that key", secret=True),
    Option("sslVerifyHostname", "both", "true", _flag, "whether the certificate must name the host"),
    Option("broker", "both", "auto", _one_of("auto", *DIALECTS), "the broker's dialect; auto reads it from CONNECTED"),
    Option("queue", "both", None, _destinations, "queue to read (several as a JSON array, one connection each), or"
           " the default destination of rows without one"),
    Option("topic", "both", None, _text, "topic to read (as a plain subscription), or the default destination"),
    Option("selector", "source", None, _selector, "JMS selector, evaluated by the broker: only what matches is read"),
    Option("selectorResidual", "source", "fail", _one_of("fail", "spark"), "a part the broker cannot evaluate: stop, or"
           " let Spark do it (what does not match is then consumed and dropped)"),
    Option("selectorCheck", "source", "on", _one_of("on", "off"), "evaluate in Spark again what the broker was given"),
    Option("maxMessagesPerTrigger", "source", None, _number(1), "upper bound of messages in a batch"),
    Option("maxBytesPerTrigger", "source", "64m", _size(1), "upper bound of octets in a batch; one message fits"),
    Option("windowBytes", "source", None, _size(1), "what the broker may have in flight to us. Default: 2 x"
           " maxBytesPerTrigger; with maxMessagesPerTrigger alone 2 x that x 4 KB, at least 64 KB"),
    Option("maxMessageBytes", "both", "100m", _size(1), "a larger message stops the query"),
    Option("minMessagesPerTrigger", "source", None, _number(1), "wait for so many messages, a full window, or"
           " maxTriggerDelay; AvailableNow does not wait"),
    Option("maxTriggerDelay", "source", "15m", _duration(), "the longest such wait"),
    Option("maxMessages", "source", "10000", _number(1), "upper bound of messages of a batch read"),
    Option("maxBytes", "source", "64m", _size(1), "upper bound of octets of a batch read; one message fits"),
    Option("journalLocation", "source", None, _text, "a folder on a POSIX file system that outlives the driver: exactly"
           " once into Spark"),
    Option("maxJournalBytes", "source", "4g", _size(1), "bound of that folder; beyond it messages stay on the broker"),
    Option("journalShared", "source", "false", _flag, "whether executors see the folder and read it themselves"),
    Option("failOnDataLoss", "source", "true", _flag, "stop when the journal does not hold what the checkpoint asks"),
    Option("partitionBytes", "source", "8m", _size(1), "one read task per so many octets"),
    Option("bodyType", "source", "auto", _one_of("auto", "text", "bytes"), "auto: as the dialect tells; else for all"),
    Option("onBadMessage", "source", "keep", _one_of("keep", "fail"), "a message that cannot be mapped: a row with"
           " body_error, or stop"),
    Option("idleTimeout", "source", "2s", _duration(), "AvailableNow, batch: quiet time before asking if the queue is"
           " drained"),
    Option("deliveryMode", "sink", "persistent", _delivery_mode, "persistent, non_persistent: of rows that do not say"),
    Option("priority", "sink", "4", _number(0, 9), "0 to 9, likewise"),
    Option("timeToLive", "sink", "0", _milliseconds, "likewise; 0 = never expires; a plain number is milliseconds"),
    Option("deliveryDelay", "sink", "0", _milliseconds, "likewise; 0 = none"),
    Option("transaction", "sink", "task", _transaction, "task: one transaction a task, all of its rows or none; a"
           " number: one per so many rows; none: no transaction, one confirmation at the end"),
    Option("deliveryGuarantee", "sink", "at-least-once", _one_of("at-least-once", "exactly-once"), "exactly-once: each"
           " task's transaction leaves an entry in a ledger queue, and a repeated task does not send again"),
    Option("onReplayMismatch", "sink", None, _one_of("fail", "send"), "of exactly-once, when a repeated task has other"
           " rows than the first time: fail (default), or send them too"),
    Option("writeId", "sink", None, _write_id, "of exactly-once in a batch write: a name that is this write's own, the"
           " same when it is tried again"),
    Option("connectTimeout", "both", "10s", _duration(), "until CONNECTED, TLS handshake included"),
    Option("receiptTimeout", "both", "30s", _duration(), "until the broker confirms"),
    Option("heartbeat", "both", "10s", _duration(_SHORTEST_HEARTBEAT), "interval of heart-beats both ways"),
    Option("reconnectAttempts", "both", "5", _number(0, 100), "of a source inside a run, 1 s before the first,"
           " then doubling; of an exactly-once sink that must learn what became of its COMMIT"),
)  # fmt: skip

_BY_KEY = {option.name.lower(): option for option in OPTIONS}
_OF_A_BATCH = frozenset({"maxmessages", "maxbytes"})
_OF_A_STREAM = frozenset(
    {"maxmessagespertrigger", "maxbytespertrigger", "minmessagespertrigger", "maxtriggerdelay", "windowbytes"}
)
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname"})
"""Spark hands a sink these of its own."""


# --- what the stations get -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    location: str
    max_octets: int
    shared: bool
    fail_on_data_loss: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    connection: ConnectionSettings
    destinations: tuple[Destination, ...]
    selector: Selector | None
    journal: Journal | None
    max_messages: int | None
    max_octets: int
    min_messages: int | None
    max_delay: float
    peek_messages: int
    peek_octets: int
    window_octets: int
    partition_octets: int
    body_type: Literal["auto", "text", "bytes"]
    fail_on_bad_message: bool
    idle_timeout: float

    @classmethod
    def parse(cls, raw: Mapping[str, str], reading: Literal["stream", "batch"] | None = None) -> "SourceOptions":
        """Raises an ``OptionError`` for the first thing that is wrong.

        ``load()`` does not know yet whether a stream or a batch is ``reading``; then both have their options.
        """
        values = _values(raw, "source")
        _refuse_the_others(raw, reading)
        _in_order(values)
        _exactly_one(values, "queue", "topic", "Say what to read: option queue, or option topic.")
        return cls(
            connection=_connection(values),
            destinations=_sources(values),
            selector=_checked_selector(values),
            journal=_journal(values),
            max_messages=values["maxMessagesPerTrigger"],
            max_octets=values["maxBytesPerTrigger"],
            min_messages=values["minMessagesPerTrigger"],
            max_delay=values["maxTriggerDelay"],
            peek_messages=values["maxMessages"],
            peek_octets=values["maxBytes"],
            window_octets=_window(values, explicit_octets="maxbytespertrigger" in {key.lower() for key in raw}),
            partition_octets=values["partitionBytes"],
            body_type=values["bodyType"],
            fail_on_bad_message=values["onBadMessage"] == "fail",
            idle_timeout=values["idleTimeout"],
        )

    def selector_for(self, dialect: Dialect) -> str | None:
        """What to give the broker that answered."""
        return None if self.selector is None else selection(self.selector, dialect.name).text

    def selector_warnings(self, dialect: Dialect) -> tuple[str, ...]:
        return () if self.selector is None else selection(self.selector, dialect.name).warnings


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

    @classmethod
    def parse(cls, raw: Mapping[str, str]) -> "SinkOptions":
        """Raises an ``OptionError`` for the first thing that is wrong."""
        values = _values({key: value for key, value in raw.items() if key.lower() not in _SPARKS_OWN}, "sink")
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
        )


def _exactly_once(values: Mapping[str, Any]) -> bool:
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
    return exactly_once


def _values(raw: Mapping[str, str], scope: Scope) -> dict[str, Any]:
    """Every option of the scope by name, parsed, defaults filled in."""
    given: dict[str, str] = {}
    for key, text in raw.items():
        option = _BY_KEY.get(key.lower())
        if option is None:
            raise _unknown(key)
        if option.scope not in (scope, "both"):
            verb = "reading" if option.scope == "source" else "writing"
            raise UnknownOptionError(f"Option {option.name} is for {verb}.", "Leave it out here.")
        given[option.name] = text
    return {o.name: _parse(o, given.get(o.name, o.default)) for o in OPTIONS if o.scope in (scope, "both")}


def _parse(option: Option, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return option.parse(text)
    except ValueError as error:
        shown = "" if option.secret or option.name == "brokerUrl" else f" {text!r}"
        raise InvalidOptionError(f"Option {option.name} cannot be{shown}.", f"Wanted: {error}.") from None


def _unknown(key: str) -> UnknownOptionError:
    if key.lower() == "path":
        return UnknownOptionError(
            "A path was given to load(), start() or save().", "Name a destination with option queue or topic instead."
        )
    nearest = difflib.get_close_matches(key.lower(), _BY_KEY, n=1, cutoff=0.5)
    remedy = f"Did you mean {_BY_KEY[nearest[0]].name}?" if nearest else f"Known: {_names(OPTIONS)}."
    return UnknownOptionError(f"There is no option {key}.", remedy)


def _names(options: Iterable[Option]) -> str:
    return ", ".join(option.name for option in options)


def _refuse_the_others(raw: Mapping[str, str], reading: Literal["stream", "batch"] | None) -> None:
    if reading is None:
        return
    others, instead = (_OF_A_BATCH, "maxMessagesPerTrigger") if reading == "stream" else (_OF_A_STREAM, "maxMessages")
    for key in raw:
        if key.lower() in others:
            other = "batch" if reading == "stream" else "stream"
            raise UnknownOptionError(
                f"Option {_BY_KEY[key.lower()].name} is for a {other}, and this reads a {reading}.",
                f"A {reading} is bounded by {instead} and its like.",
            )


def _in_order(values: Mapping[str, Any]) -> None:
    least, most = values["minMessagesPerTrigger"], values["maxMessagesPerTrigger"]
    if least is not None and most is not None and least > most:
        raise OptionConflictError(
            f"minMessagesPerTrigger ({least}) exceeds maxMessagesPerTrigger ({most}).", "Turn them round, or drop one."
        )


def _journal(values: Mapping[str, Any]) -> Journal | None:
    if values["journalLocation"] is None:
        return None
    return Journal(
        location=values["journalLocation"],
        max_octets=values["maxJournalBytes"],
        shared=values["journalShared"],
        fail_on_data_loss=values["failOnDataLoss"],
    )


def _checked_selector(values: Mapping[str, Any]) -> Selector | None:
    """Split for the broker that is named, or for every one it may be: what none can do is said at ``load()``."""
    if values["selector"] is None:
        return None
    selector = Selector(values["selector"], values["selectorResidual"], values["selectorCheck"] == "on")
    names = DIALECTS if values["broker"] == "auto" else (values["broker"],)
    refused: list[SelectorResidualError] = []
    for name in names:
        try:
            selection(selector, name)
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


def _window(values: Mapping[str, Any], *, explicit_octets: bool) -> int:
    if values["windowBytes"] is not None:
        return int(values["windowBytes"])
    if values["maxMessagesPerTrigger"] is not None and not explicit_octets:
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
        connect_timeout=values["connectTimeout"],
        receipt_timeout=values["receiptTimeout"],
        heartbeat=values["heartbeat"],
        reconnect_attempts=values["reconnectAttempts"],
        max_message_bytes=values["maxMessageBytes"],
    )


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
