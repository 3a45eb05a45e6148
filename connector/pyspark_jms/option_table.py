"""The options, a row each: name, who takes it, default, how its text becomes a value, what it means.

Data for ``options`` and for the reference (docs/options.md). Knows no connection between one option and another.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from pyspark_jms.columns.schema import COLUMNS, SINK_ONLY
from pyspark_jms.dialect import DIALECTS
from pyspark_jms.link.address import parse_broker_url
from pyspark_jms.model import DeliveryMode
from pyspark_jms.rules import SET_BY_PROVIDER, property_name_problem
from pyspark_jms.secret_text import SecretText
from pyspark_jms.units import octets, seconds

__all__ = ["OPTIONS", "Option", "Scope"]

_SINK_COLUMNS = frozenset(name.lower() for name in (*COLUMNS, *SINK_ONLY))
_LARGEST_TIME = 1 << 53
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//)?")
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


def _folder(text: str) -> str:
    """An absolute path, also as ``file:///PATH``. Any other URI would become a folder below the working directory."""
    path = _text(text)
    if (scheme := _SCHEME.match(path)) is not None:
        url = urlsplit(path)
        if url.scheme != "file" or url.netloc not in {"", "localhost"} or url.query or url.fragment:
            raise ValueError(
                f"the absolute path of a folder on a local or mounted POSIX file system, like /data/journals/orders:"
                f" {scheme[0]} names none"
            )
        path = unquote(url.path)
    if not path.startswith("/"):
        raise ValueError(
            "an absolute path, like /data/journals/orders: a relative one would depend on the working directory"
        )
    return path


def _selector(text: str) -> str:
    if not text.strip():
        raise ValueError("a selector that is not blank")
    return text


def _secret(text: str) -> SecretText:
    return SecretText(text)


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


def _patience(text: str) -> float:
    """Seconds; infinite for ``forever``."""
    if text.lower() == "forever":
        return math.inf
    if re.fullmatch(r"0+(ms|s|m|h|d)?", text):
        return 0.0
    try:
        return _duration()(text)
    except ValueError as error:
        raise ValueError(f"{error}, 0, or forever") from None


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
    by_key = {value.lower(): value for value in values}

    def parse(text: str) -> str:
        if text.lower() not in by_key:
            raise ValueError(f"one of {', '.join(values)}")
        return by_key[text.lower()]

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
    """One name, or several as a JSON array. A comma in one is more often meant as two than part of the name."""
    if not text.lstrip().startswith("["):
        if "," in text:
            parts = ", ".join(f'"{part.strip()}"' for part in text.split(","))
            raise ValueError(f"several names as a JSON array, [{parts}], or [{json.dumps(text)}] for one with a comma")
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


def _one_queue(text: str) -> str:
    names = _destinations(text)
    if len(names) > 1:
        raise ValueError("one name")
    return names[0]


def _property_columns(text: str) -> tuple[str, ...]:
    """Columns whose names are names of properties."""
    names = _destinations(text) if text.lstrip().startswith("[") else tuple(map(str.strip, text.split(",")))
    for name in names:
        problem = property_name_problem(name)
        if problem is not None:
            raise ValueError(f"names of properties; the name of {name!r} {problem}")
        if name in SET_BY_PROVIDER or name.lower() in _SINK_COLUMNS:
            raise ValueError(f"columns that mean nothing else to the sink, as {name} does")
    if len({name.lower() for name in names}) != len(names):
        raise ValueError("columns that differ from each other")
    return names


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
    Option("virtualHost", "both", "/", _text, "RabbitMQ's; the other brokers have one only"),
    Option("queue", "both", None, _destinations, "queue to read, or the default destination of rows without one."
           " Several to read as a JSON array, one connection each; so is a name with a comma"),
    Option("topic", "both", None, _text, "topic to read, or the default destination"),
    Option("subscriptionName", "source", None, _text, "of a durable subscription to the topic: what is sent while"
           " nobody reads is kept for it"),
    Option("clientId", "source", None, _text, "the client whose durable subscription it is"),
    Option("sharedSubscription", "source", "false", _flag, "whether several queries may read that subscription at a"
           " time, each message going to one of them; then it need not have a clientId"),
    Option("selector", "source", None, _selector, "JMS selector, evaluated by the broker: only what matches is read"),
    Option("selectorResidual", "source", "fail", _one_of("fail", "spark"), "a part the broker cannot evaluate: stop, or"
           " let Spark do it (what does not match is then consumed and dropped)"),
    Option("selectorCheck", "source", "on", _one_of("on", "off"), "evaluate in Spark again what the broker was given"),
    Option("maxMessagesPerTrigger", "source", None, _number(1), "upper bound of messages in a batch"),
    Option("maxBytesPerTrigger", "source", "64m", _size(1), "upper bound of octets in a batch; one message fits"),
    Option("windowBytes", "source", None, _size(1), "what the broker may have in flight to us. Default: 2 x"
           " maxBytesPerTrigger; with maxMessagesPerTrigger alone 2 x that x 4 KB, at least 64 KB. A broker that counts"
           " messages (Classic, RabbitMQ) is told one for each 4 KB"),
    Option("maxMessageBytes", "both", "100m", _size(1), "Largest body of a message. Reading: see onTooLarge. Writing: a"
           " larger row fails its task"),
    Option("minMessagesPerTrigger", "source", None, _number(1), "wait for so many messages, a full window, or"
           " maxTriggerDelay; AvailableNow does not wait"),
    Option("maxTriggerDelay", "source", "15m", _duration(), "the longest such wait"),
    Option("maxMessages", "source", "10000", _number(1), "upper bound of messages of a batch read"),
    Option("maxBytes", "source", "64m", _size(1), "upper bound of octets of a batch read; one message fits"),
    Option("journalLocation", "source", None, _folder, "Absolute path of a folder on a POSIX file system that outlives"
           " the driver (`/data/journals/orders`): exactly-once into Spark. See guarantees.md for where it may be"),
    Option("maxJournalBytes", "source", "4g", _size(1), "bound of that folder; beyond it messages stay on the broker"),
    Option("journalShared", "source", "false", _flag, "whether executors see the folder and read it themselves"),
    Option("failOnDataLoss", "source", "true", _flag, "stop when the journal does not hold what the checkpoint asks"),
    Option("partitionBytes", "source", "16m", _size(1), "one read task per so many octets"),
    Option("bodyType", "source", "auto", _one_of("auto", "text", "bytes"), "auto: as the dialect tells; else for all"),
    Option("onBadMessage", "source", "keep", _one_of("keep", "fail", "deadLetter"), "A message that cannot be mapped:"
           " keep it as a row with body_error, fail the query, or send it to deadLetterQueue (the driver then decodes"
           " every message once more)"),
    Option("onTooLarge", "source", "stop", _one_of("stop", "deadLetter", "skip"), "A message above maxMessageBytes:"
           " stop the query, send it to deadLetterQueue, or acknowledge and skip it"),
    Option("deadLetterQueue", "source", None, _one_queue, "Queue for messages of onBadMessage=deadLetter and"
           " onTooLarge=deadLetter, on the same broker. The reason is in property spark_jms_error"),
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
    Option("onReplayMismatch", "sink", None, _one_of("fail", "send"), "of exactly-once, when a repeated batch has other"
           " rows or other partitions than the first time: fail (default), or send them too"),
    Option("writeId", "sink", None, _write_id, "of exactly-once in a batch write: a name that is this write's own, the"
           " same when it is tried again. In foreachBatch it must contain the batch id"),
    Option("onBadRow", "sink", "fail", _one_of("fail", "drop"), "a row that cannot be sent (a name or value that JMS"
           " does not allow, too large, no destination): fail the task, or leave it out, counted in the log"),
    Option("propertyColumns", "sink", None, _property_columns, "columns to be sent as properties of their own type:"
           " boolean, tinyint, smallint, int, bigint, float, double, string. Comma-separated, or a JSON array"),
    Option("connectTimeout", "both", "10s", _duration(), "until CONNECTED: look-up of the host name, TLS handshake"),
    Option("receiptTimeout", "both", "30s", _duration(), "until the broker confirms"),
    Option("heartbeat", "both", "10s", _duration(_SHORTEST_HEARTBEAT), "interval of heart-beats both ways"),
    Option("reconnectTimeout", "both", "10m", _patience, "How long a query tries to reach a broker that is away, with"
           " pauses of up to 30 s: a source that lost its connection or starts again from a checkpoint, a sink's task"
           " before it sends. The first start and the first batch of a query, and df.write, do not wait. 0 gives up at"
           " once, forever never does"),
    Option("reconnectAttempts", "both", None, _number(0, 100), "Deprecated: use reconnectTimeout. N attempts are a"
           " timeout of 1 + 2 + 4 + … s, at most 30 s each"),
)  # fmt: skip
