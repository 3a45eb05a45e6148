"""The table of options, one row each: name, scope, default, parser of its text, description.

It is the data of the reference (docs/options.md), too. Rules about several options are in ``source``, ``sink`` and
``values``.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from pyspark_jms.columns.schema import COLUMNS, EVERY_OTHER, SINK_ONLY
from pyspark_jms.delivery.commit_token import identity_of
from pyspark_jms.jms.rules import SET_BY_PROVIDER, sent_name_problem
from pyspark_jms.jms.secret_text import SecretText
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.options.broker import BROKERS

__all__ = ["OPTIONS", "Option", "Scope", "parse_bytes"]

MAX_CONNECTIONS = 16
"""The driver's receiver is one Python process, which fewer connections keep busy."""

_SINK_COLUMNS = frozenset(name.lower() for name in (*COLUMNS, *SINK_ONLY))
_PREFIX = re.compile(r"(?:temp-)?(?P<kind>queue|topic)://", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//)?")
_WRITE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,200}")
_LARGEST_SIZE = 1 << 53
_LONGEST_WAIT = 30 * 86_400.0
_SHORTEST_HEARTBEAT = 0.5
"""Heart-beats cannot be switched off: without them Artemis closes an idle connection after 60 s."""
_MAX_DIGITS = 18
Scope = Literal["source", "sink", "both"]


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the reference. ``parse`` raises a ``ValueError`` that describes the valid values."""

    name: str
    scope: Scope
    default: str | None
    parse: Callable[[str], Any]
    meaning: str
    secret: bool = False
    streams_only: bool = False
    """Whether a batch read refuses it."""


# --- values ------------------------------------------------------------------------------------------

_SIZE = re.compile(r"(\d{1,18})\s*(b|k|kb|m|mb|g|gb|t|tb)?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*(ms|s|m|min|h|d)", re.IGNORECASE | re.ASCII)
_SIZES = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_TIMES = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_bytes(text: str) -> int:
    """Parse ``65536``, ``64k``, ``64m``, ``1gb``: powers of 1,024, as in Spark. Any other text is a ``ValueError``."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError("a size like 65536, 64k, 64m or 1g")
    return int(match[1]) << _SIZES[(match[2] or "")[:1].lower()]


def parse_seconds(text: str) -> float:
    """Parse ``500ms``, ``10s``, ``15m``, ``1h``. A number without a unit is a ``ValueError``."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise ValueError("a time with its unit, like 500ms, 10s, 15m or 1h")
    return float(match[1]) * _TIMES[match[2].lower()]


def _text(text: str) -> str:
    if not text:
        raise ValueError("a text that is not empty")
    if any(character in text for character in "\r\n\0"):
        raise ValueError("a text without line ends and NUL characters")
    return text


def _folder(text: str) -> str:
    """Parse an absolute path, or ``file:///PATH``. Any other URI would become a folder below the working directory."""
    path = _text(text)
    if (scheme := _SCHEME.match(path)) is not None:
        url = urlsplit(path)
        if url.scheme != "file" or url.netloc not in {"", "localhost"} or url.query or url.fragment:
            raise ValueError(
                f"the absolute path of a folder on a local or mounted POSIX file system, like /data/journals/orders:"
                f" {scheme[0]} is not such a path"
            )
        path = unquote(url.path)
    if not path.startswith("/"):
        raise ValueError(
            "an absolute path, like /data/journals/orders: a relative path depends on the working directory"
        )
    return path


def _selector(text: str) -> str:
    if not text.strip():
        raise ValueError("a selector that is not blank")
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
        number = parse_bytes(text)
        if not smallest <= number <= _LARGEST_SIZE:
            raise ValueError(f"a size of at least {smallest} bytes and at most 8,192t")
        return number

    return parse


def _duration(smallest: float = 0.001) -> Callable[[str], float]:
    def parse(text: str) -> float:
        number = parse_seconds(text)
        if not smallest <= number <= _LONGEST_WAIT:
            raise ValueError(f"a time from {smallest * 1000:g}ms to 30d")
        return number

    return parse


def _reconnect_timeout(text: str) -> float:
    """Return seconds, infinite for ``forever``."""
    if text.lower() == "forever":
        return math.inf
    if re.fullmatch(r"0+(ms|s|m|h|d)?", text):
        return 0.0
    try:
        return _duration()(text)
    except ValueError as error:
        raise ValueError(f"{error}, 0, or forever") from None


def _one_of(*values: str) -> Callable[[str], str]:
    by_key = {value.lower(): value for value in values}

    def parse(text: str) -> str:
        if text.lower() not in by_key:
            raise ValueError(f"one of {', '.join(values)}")
        return by_key[text.lower()]

    return parse


def _flag(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _transaction(text: str) -> str | int:
    if text.lower() in {"auto", "task", "none"}:
        return text.lower()
    try:
        return _number(1)(text)
    except ValueError:
        raise ValueError("auto, task, none, or a number of rows from 1 up") from None


def _write_id(text: str) -> str:
    if not _WRITE_ID.fullmatch(text):
        raise ValueError("1 to 200 letters, digits and any of . _ - : / + = @")
    if text.startswith(("query:", "job:")) and identity_of(text) is None:
        raise ValueError("query:NAME/BATCH, query:NAME/BATCH/WRITE or job:NAME/RUN")
    return text


def _destinations(text: str) -> tuple[str, ...]:
    """Parse one name, or several as a JSON array. A comma is refused: more often it separates two names."""
    if not text.lstrip().startswith("["):
        if "," in text:
            parts = ", ".join(f'"{part.strip()}"' for part in text.split(","))
            raise ValueError(f"several names as a JSON array, [{parts}], or [{json.dumps(text)}] for one with a comma")
        return (_name(text),)
    try:
        names = json.loads(text)
    except json.JSONDecodeError:
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError('a name, or several as a JSON array: ["orders", "invoices"]')
    if len(set(names)) != len(names):
        raise ValueError("names that differ from each other")
    return tuple(_name(name) for name in names)


def _name(text: str) -> str:
    """Parse the name of a queue or topic. A broker would take the prefix that rows have for a part of the name."""
    prefix = _PREFIX.match(text)
    if prefix is not None:
        raise ValueError(f"the name without its prefix, {text[prefix.end() :] or 'NAME'}, in option {prefix['kind']}")
    return _text(text)


def _one_queue(text: str) -> str:
    names = _destinations(text)
    if len(names) > 1:
        raise ValueError("one name")
    return names[0]


def _stream_offset(text: str) -> str | int | datetime:
    if text.lower() in {"first", "next"}:
        return text.lower()
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError(
            "first, next, the offset of a message, or a time with its offset from UTC, as 2026-11-26T08:00:00Z"
        )
    return time


def _property_columns(text: str) -> tuple[str, ...]:
    """Names of columns that are valid names of properties, or ``EVERY_OTHER``."""
    if text.strip() == EVERY_OTHER[0]:
        return EVERY_OTHER
    names = _destinations(text) if text.lstrip().startswith("[") else tuple(map(str.strip, text.split(",")))
    for name in names:
        problem = sent_name_problem(name)
        if problem is not None:
            raise ValueError(f"valid names of properties; the name {name!r} {problem}")
        if name in {*SET_BY_PROVIDER, *EVERY_OTHER} or name.lower() in _SINK_COLUMNS:
            raise ValueError(f"columns without another meaning in the sink; {name} has one")
    if len({name.lower() for name in names}) != len(names):
        raise ValueError("columns that differ from each other")
    return names


OPTIONS: tuple[Option, ...] = (
    Option("brokerUrl", "both", None, parse_broker_url, "`stomp://HOST:61613` or `amqp://HOST:5672`, with TLS"
           " `stomp+ssl://HOST:61614` or `amqps://HOST:5671`. A path is the virtual host of RabbitMQ:"
           " `amqp://HOST:5672/orders`. Several addresses of one broker (live and backup) are separated by commas and"
           " tried in order"),
    Option("user", "both", None, _text, "User name"),
    Option("password", "both", None, SecretText, "Password of the user. Prefer passwordFile", secret=True),
    Option("passwordFile", "both", None, _text, "File that contains the password"),
    Option("sslCaFile", "both", None, _text, "PEM file with the CA that signed the broker's certificate. Default: the"
           " CAs of the system"),
    Option("sslCertFile", "both", None, _text, "PEM file with the client certificate, for mutual TLS"),
    Option("sslKeyFile", "both", None, _text, "PEM file with the private key of the client certificate"),
    Option("sslKeyPassword", "both", None, SecretText, "Password of the private key", secret=True),
    Option("sslVerifyHostname", "both", "true", _flag, "Whether the broker's certificate must name the host of"
           " brokerUrl"),
    Option("broker", "both", "auto", _one_of("auto", *BROKERS), "Kind of broker. auto detects it when the connection"
           " is made"),
    Option("queue", "both", None, _destinations, "The queue to read, or several as a JSON array (more than eight share"
           " connections). Writing: the destination of rows without one. A name with a comma is given as a JSON array"),
    Option("topic", "both", None, _name, "The topic to read. Writing: the destination of rows without one"),
    Option("subscriptionName", "source", None, _text, "Name of a durable subscription to the topic: the broker keeps"
           " messages for it while the query is stopped", streams_only=True),
    Option("clientId", "source", None, _text, "Client id that the durable subscription belongs to", streams_only=True),
    Option("sharedSubscription", "source", "false", _flag, "Lets several queries share the durable subscription: each"
           " message goes to one of them. clientId becomes optional", streams_only=True),
    Option("selector", "source", None, _selector, "JMS selector. The broker evaluates it, and delivers only messages"
           " that match"),
    Option("selectorInSpark", "source", "check", _one_of("check", "residual", "off"), "What Spark evaluates of the"
           " selector. check: again what the broker has evaluated. residual: also the part that the broker cannot"
           " evaluate (messages that do not match it are then consumed and dropped). off: nothing. check and off refuse"
           " a selector that the broker cannot evaluate completely"),
    Option("maxMessagesPerTrigger", "source", None, _number(1), "Maximum number of messages in a batch of a streaming"
           " query, or in a batch read. Default: no limit in a streaming query; in a batch read all messages that the"
           " queue has at the start; where the broker cannot browse (see batch-and-sql.md), or with maxBytesPerTrigger,"
           " 10000"),
    Option("maxBytesPerTrigger", "source", None, _size(1), "Maximum number of bytes in a batch of a streaming query, or"
           " in a batch read. At least one message is read, whatever its size. Default: 64m in a streaming query; in a"
           " batch read as for maxMessagesPerTrigger, with 64m"),
    Option("windowBytes", "source", None, _size(1), "Maximum number of unacknowledged bytes that the broker may"
           " deliver (prefetch window). Default: 2 × maxBytesPerTrigger; if only maxMessagesPerTrigger is set, 2 × that"
           " × 4 KB, at least 64 KB. On Classic and RabbitMQ, which count messages: one message for each 4 KB",
           streams_only=True),
    Option("maxMessageBytes", "both", "100m", _size(1), "Maximum size of a message body in bytes. Reading: onTooLarge"
           " decides about larger ones. Writing: a larger row fails its task"),
    Option("journalLocation", "source", None, _folder, "With exactly-once over STOMP: absolute path of the folder that"
           " keeps the messages of a batch until it is done (`/data/journals/orders`), on a POSIX file system that"
           " outlives the driver. See guarantees.md", streams_only=True),
    Option("maxJournalBytes", "source", "4g", _size(1), "Maximum size of the journal. When it is reached, further"
           " messages stay on the broker", streams_only=True),
    Option("journalShared", "source", "false", _flag, "Whether the executors can read the journal's folder. Then"
           " they read messages from it, and not through the driver", streams_only=True),
    Option("connections", "source", "1", _number(1, MAX_CONNECTIONS), "Number of connections that receive from each"
           " queue, when the driver receives (at-least-once, or with journalLocation). Messages keep their order within"
           " a connection. A subscription that is not shared has one connection. See reading.md", streams_only=True),
    Option("readers", "source", None, _number(1), "With exactly-once over AMQP: number of tasks of each batch that"
           " receive from the broker. Several queues are divided among the readers; with more readers than queues, a"
           " queue has several. Messages keep their order within a reader. A subscription that is not shared has one"
           " reader. Default: 1", streams_only=True),
    Option("stagingQueue", "source", None, _one_queue, "With exactly-once over AMQP: name of the queues on the broker"
           " that keep the messages of a batch until it is done, one for each reader: NAME.0, NAME.1 and so on. Each"
           " query has its own NAME, which does not end in a number. Default: pyspark-jms.staging.ID, with an ID from"
           " the checkpoint", streams_only=True),
    Option("streamOffset", "source", None, _stream_offset, "Reads the queues as streams of RabbitMQ 4 over AMQP, and"
           " sets where a new query begins: first, next (what is sent from now on), the offset of a message, or a time"
           " (2026-11-26T08:00:00Z). A query with a checkpoint continues where it ended", streams_only=True),
    Option("streamFilter", "source", None, _selector, "With streamOffset: SQL filter by which RabbitMQ 4.2 and newer"
           " chooses the messages of the stream that it delivers, as kind = 'a' AND properties.subject = 'order'",
           streams_only=True),
    Option("failOnDataLoss", "source", "true", _flag, "Whether the query stops when the journal, the staging queue or"
           " the stream lacks messages that the checkpoint needs, or the stream has deleted unread messages",
           streams_only=True),
    Option("partitionBytes", "source", "16m", _size(1), "Size of a partition in bytes: a batch has one read task for"
           " each partition (with exactly-once over AMQP, for each reader)"),
    Option("bodyType", "source", "auto", _one_of("auto", "text", "bytes"), "auto detects the body type of each"
           " message; text or bytes set it for all messages"),
    Option("onBadMessage", "source", "keep", _one_of("keep", "fail", "deadLetter"), "A message that cannot be mapped:"
           " keep makes a row with body_error, fail stops the query, deadLetter sends it to deadLetterQueue"),
    Option("onTooLarge", "source", "fail", _one_of("fail", "deadLetter", "drop"), "A message above maxMessageBytes:"
           " fail stops the query, deadLetter sends it to deadLetterQueue, drop acknowledges and drops it"),
    Option("deadLetterQueue", "source", None, _one_queue, "Queue for messages of onBadMessage=deadLetter and"
           " onTooLarge=deadLetter, on the same broker"),
    Option("idleTimeout", "source", "2s", _duration(), "AvailableNow (from Spark 4.2 on) and batch reads: time"
           " without a message after which the source asks the broker whether the queue is empty"),
    Option("transaction", "sink", "auto", _transaction, "task: one transaction for each task: all of its rows are sent"
           " or none. A number: one transaction for that many rows. none: no transaction; the broker confirms each row"
           " or, on Artemis over STOMP, all at the end. auto: none on RabbitMQ, whose transactions are not reliable,"
           " and task elsewhere"),
    Option("deliveryGuarantee", "both", "at-least-once", _one_of("at-least-once", "exactly-once"), "exactly-once."
           " Reading over AMQP: the transaction that acknowledges messages moves them to a staging queue of the query."
           " Reading over STOMP: a journal keeps the messages (journalLocation). Writing over AMQP: with a ledger on"
           " the broker, a repeated task does not send its rows again. Writing over STOMP: refused", streams_only=True),
    Option("onReplayMismatch", "sink", None, _one_of("fail", "send"), "With exactly-once, when a repeated batch has"
           " other rows or partitions than the first time: fail (default) stops the query, send sends the rows"),
    Option("writeId", "sink", None, _write_id, "For an exactly-once batch write: a name that is the same when the write"
           " is retried. In foreachBatch pyspark_jms.functions.write_id(batch, number), which is query:NAME/BATCH. In a"
           " job job:NAME/RUN, with the same NAME for all runs of the job"),
    Option("onBadRow", "sink", "fail", _one_of("fail", "drop"), "A row that cannot be sent (a name or value that JMS"
           " does not allow, too large, no destination): fail fails the task, drop leaves the row out and logs how many"
           " were dropped"),
    Option("propertyColumns", "sink", None, _property_columns, "Columns that are sent as properties of their own type"
           " (see typed-messages.md): separated by commas, or a JSON array. * stands for all columns that the sink does"
           " not have"),
    Option("connectTimeout", "both", "10s", _duration(), "Maximum time to connect, including the look-up of the host"
           " name and the TLS handshake"),
    Option("receiptTimeout", "both", "30s", _duration(), "Maximum time to wait for the broker's confirmation"),
    Option("heartbeat", "both", "10s", _duration(_SHORTEST_HEARTBEAT), "Interval of heart-beats in both directions"),
    Option("reconnectTimeout", "both", "10m", _reconnect_timeout, "How long to try to reach the broker, or a queue that"
           " was there, with pauses of up to 30 s: a source that lost its connection or starts again from a checkpoint,"
           " a sink's task before it sends. The first start and the first batch of a query, and df.write, do not wait."
           " 0: no second attempt, forever: no limit"),
)  # fmt: skip
