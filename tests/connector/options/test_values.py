"""Every option: read, left out, wrong. And no secret in any message or repr."""

import dataclasses
import math
import pickle
from datetime import UTC, datetime

import pytest

from pyspark_jms.columns.selection import SelectorOptions
from pyspark_jms.errors import (
    InvalidOptionError,
    MissingOptionError,
    OptionConflictError,
    OptionError,
    UnknownOptionError,
)
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import Password
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import Journal, SourceOptions
from pyspark_jms.options.table import OPTIONS
from pyspark_jms.options.values import made

URL = {"brokerUrl": "stomp://host:1"}
TLS = {"brokerUrl": "stomp+ssl://host:1"}
SOURCE = URL | {"queue": "orders"}
DEAD = {"deadLetterQueue": "d"}
SECRET = "s3cr3t"
CHECKED = SelectorOptions("a = 1", "check")
AMQP = {"brokerUrl": "amqp://h:1"}
ONCE = {"deliveryGuarantee": "exactly-once"}
JOURNAL = {"max_bytes": 4 << 30, "shared": False}
TABLE = [
    ("brokerUrl", "stomp://a:1,stomp://b:2", {}, "connection.addresses", (Address("a", 1), Address("b", 2)), None),
    ("brokerUrl", "stomp://a:1/x", {}, "connection.addresses", (Address("a", 1, virtual_host="x"),), None),
    ("user", "me", {}, "connection.user", "me", None),
    ("password", "pw", {"user": "me"}, "connection.password", Password(value="pw"), None),
    ("password", "", {"user": "me"}, "connection.password", Password(value=""), None),
    ("passwordFile", "/run/pw", {"user": "me"}, "connection.password", Password(file="/run/pw"), None),
    ("sslCaFile", "ca.pem", TLS, "connection.tls.ca_file", "ca.pem", None),
    ("sslCertFile", "c.pem", TLS, "connection.tls.cert_file", "c.pem", None),
    ("sslKeyFile", "k.pem", TLS | {"sslCertFile": "c.pem"}, "connection.tls.key_file", "k.pem", None),
    ("sslKeyPassword", "pw", TLS | {"sslCertFile": "c"}, "connection.tls.key_password", Password(value="pw"), None),
    ("sslVerifyHostname", "false", {}, "connection.tls.verify_hostname", False, True),
    ("sslVerifyHostname", "TRUE", {}, "connection.tls.verify_hostname", True, True),
    ("broker", "Artemis", {}, "connection.broker", "artemis", "auto"),
    ("selector", "a = 1", {}, "selector", CHECKED, None),
    ("selectorInSpark", "RESIDUAL", {"selector": "a = 1"}, "selector", SelectorOptions("a = 1", "residual"), CHECKED),
    ("selectorInSpark", "off", {"selector": "a = 1"}, "selector", SelectorOptions("a = 1", "off"), CHECKED),
    ("journalLocation", "/j", ONCE, "journal", Journal(location="/j", **JOURNAL), None),
    ("journalLocation", "file:///j/a%20b", ONCE, "journal", Journal(location="/j/a b", **JOURNAL), None),
    ("journalLocation", "file:/j", ONCE, "journal", Journal(location="/j", **JOURNAL), None),
    ("maxJournalBytes", "1g", ONCE | {"journalLocation": "/j"}, "journal.max_bytes", 1 << 30, 4 << 30),
    ("journalShared", "true", ONCE | {"journalLocation": "/j"}, "journal.shared", True, False),
    ("failOnDataLoss", "false", ONCE | {"journalLocation": "/j"}, "fail_on_data_loss", False, True),
    ("stagingQueue", "s", AMQP | ONCE, "staging_queue", "s", None),
    ("connections", "3", {}, "connections", 3, 1),
    ("readers", "3", AMQP | ONCE, "readers", 3, 1),
    ("streamOffset", "First", AMQP, "stream_offset", "first", None),
    ("streamOffset", "12", AMQP, "stream_offset", 12, None),
    ("streamOffset", "2026-11-26T08:00:00Z", AMQP, "stream_offset", datetime(2026, 11, 26, 8, tzinfo=UTC), None),
    ("streamFilter", "A = 1", AMQP | {"streamOffset": "next"}, "stream_filter", "A = 1", None),
    ("maxMessagesPerTrigger", "7", {}, "max_messages", 7, None),
    ("maxBytesPerTrigger", "2m", {}, "max_bytes", 2 << 20, 64 << 20),
    ("maxBytesPerTrigger", "5k", {}, "peek_bytes", 5 << 10, None),
    ("windowBytes", "3m", {}, "window_bytes", 3 << 20, 128 << 20),
    ("maxMessageBytes", "1k", {}, "connection.max_message_bytes", 1 << 10, 100 << 20),
    ("partitionBytes", "1m", {}, "partition_bytes", 1 << 20, 16 << 20),
    ("bodyType", "TEXT", {}, "body_type", "text", "auto"),
    ("onBadMessage", "FAIL", {}, "on_bad_message", "fail", "keep"),
    ("onBadMessage", "deadletter", DEAD | {"onTooLarge": "deadLetter"}, "on_bad_message", "deadLetter", "keep"),
    ("onTooLarge", "drop", {}, "connection.on_too_large", "drop", "fail"),
    (
        "onTooLarge",
        "deadLetter",
        DEAD | {"onBadMessage": "deadLetter"},
        "connection.on_too_large",
        "deadLetter",
        "fail",
    ),
    ("idleTimeout", "500ms", {}, "idle_timeout", 0.5, 2),
    ("transaction", "NONE", {}, "transaction", "none", "auto"),
    ("transaction", "500", {}, "transaction", 500, "auto"),
    ("deliveryGuarantee", "Exactly-Once", AMQP, "exactly_once", True, False),
    ("onReplayMismatch", "send", AMQP | ONCE, "send_on_mismatch", True, False),
    ("writeId", "load-2026/7", AMQP | ONCE, "write_id", "load-2026/7", None),
    ("onBadRow", "DROP", {}, "drop_bad_rows", True, False),
    ("propertyColumns", "price", {}, "property_columns", ("price",), ()),
    ("propertyColumns", " * ", {}, "property_columns", ("*",), ()),
    ("propertyColumns", "x-trace", {}, "property_columns", ("x-trace",), ()),
    ("propertyColumns", " Price , count", {}, "property_columns", ("Price", "count"), ()),
    ("propertyColumns", '["Price", "count"]', {}, "property_columns", ("Price", "count"), ()),
    ("connectTimeout", "1s", {}, "connection.connect_timeout", 1, 10),
    ("receiptTimeout", "1s", {}, "connection.receipt_timeout", 1, 30),
    ("heartbeat", "500ms", {}, "connection.heartbeat", 0.5, 10),
    ("reconnectTimeout", "90s", {}, "connection.reconnect_timeout", 90, 600),
    ("reconnectTimeout", "0", {}, "connection.reconnect_timeout", 0, 600),
    ("reconnectTimeout", "0s", {}, "connection.reconnect_timeout", 0, 600),
    ("reconnectTimeout", "Forever", {}, "connection.reconnect_timeout", math.inf, 600),
]
ELSEWHERE = {"deadLetterQueue", "queue", "topic", "subscriptionName", "clientId", "sharedSubscription"}
WRONG = [
    ("brokerUrl", "host:61613", "stomp://HOST:PORT"),
    ("brokerUrl", "stomp://u:s3cr3t@host:1", "use the options user and password"),
    ("brokerUrl", "amqp://a:1/orders,amqp://b:1", "write the same path after each"),
    ("user", "", "not empty"),
    ("user", "a\nb", "without line ends"),
    ("passwordFile", "", "not empty"),
    ("passwordFile", "a\0b", "without line ends"),
    ("sslCaFile", "", "not empty"),
    ("sslCertFile", "", "not empty"),
    ("sslKeyFile", "", "not empty"),
    ("sslVerifyHostname", "yes", "one of true, false"),
    ("broker", "rabbit", "one of auto, artemis"),
    ("queue", "", "not empty"),
    ("queue", "[", "JSON array"),
    ("queue", "[]", "JSON array"),
    ("queue", '["a", 1]', "JSON array"),
    ("queue", '["a", ""]', "not empty"),
    ("queue", '["a", "a"]', "differ from each other"),
    ("queue", "queue://orders", "the name without its prefix, orders, in option queue"),
    ("queue", '["a", "topic://b"]', "the name without its prefix, b, in option topic"),
    ("topic", "topic://prices", "the name without its prefix, prices, in option topic"),
    ("deadLetterQueue", "temp-queue://x", "the name without its prefix, x, in option queue"),
    ("queue", "a,b", 'several names as a JSON array, ["a", "b"], or ["a,b"] for one with a comma'),
    ("brokerUrl", "stomp+ssl://a:1,stomp://b:2", "would be sent unencrypted"),
    ("topic", "", "not empty"),
    ("subscriptionName", "", "not empty"),
    ("clientId", "a\nb", "without line ends"),
    ("sharedSubscription", "yes", "one of true, false"),
    ("selector", " \n", "not blank"),
    ("selectorInSpark", "spark", "one of check, residual, off"),
    ("journalLocation", "", "not empty"),
    ("stagingQueue", '["a", "b"]', "one name"),
    ("connections", "17", "whole number from 1 to 16"),
    ("readers", "0", "whole number from 1"),
    ("journalLocation", "s3a://bucket/j", "s3a:// is not such a path"),
    ("journalLocation", "dbfs:/j", "dbfs: is not such a path"),
    ("journalLocation", "file://host/j", "file:// is not such a path"),
    ("journalLocation", "C:\\j", "C: is not such a path"),
    ("journalLocation", "journals/orders", "an absolute path"),
    ("journalLocation", "~/j", "an absolute path"),
    ("journalLocation", "file:j", "an absolute path"),
    ("maxJournalBytes", "0", "at least 1"),
    ("journalShared", "1", "one of true, false"),
    ("failOnDataLoss", "no", "one of true, false"),
    ("maxMessagesPerTrigger", "0", "whole number from 1"),
    ("maxMessagesPerTrigger", "-1", "whole number from 1"),
    ("maxMessagesPerTrigger", "many", "whole number from 1"),
    ("maxMessagesPerTrigger", "1.5", "whole number from 1"),
    ("maxMessagesPerTrigger", "1_000", "whole number from 1"),
    ("maxMessagesPerTrigger", "9" * 5000, "whole number from 1"),
    ("maxBytesPerTrigger", "64 megabytes", "a size like"),
    ("maxBytesPerTrigger", "0b", "at least 1 bytes"),
    ("maxBytesPerTrigger", "0", "at least 1 bytes"),
    ("windowBytes", "-1", "a size like"),
    ("maxMessageBytes", "999999999t", "at most 8,192t"),
    ("partitionBytes", "", "a size like"),
    ("bodyType", "json", "one of auto, text, bytes"),
    ("onBadMessage", "drop", "one of keep, fail, deadLetter"),
    ("onTooLarge", "skip", "one of fail, deadLetter, drop"),
    ("deadLetterQueue", "", "not empty"),
    ("deadLetterQueue", "a,b", "several names as a JSON array"),
    ("deadLetterQueue", '["a", "b"]', "one name"),
    ("idleTimeout", "0s", "a time from 1ms to 30d"),
    ("transaction", "0", "auto, task, none, or a number of rows from 1 up"),
    ("transaction", "batch", "auto, task, none, or a number of rows from 1 up"),
    ("deliveryGuarantee", "at-most-once", "one of at-least-once, exactly-once"),
    ("onReplayMismatch", "drop", "one of fail, send"),
    ("writeId", "", "1 to 200 letters"),
    ("writeId", "query:q/last", "query:NAME/BATCH, query:NAME/BATCH/WRITE or job:NAME/RUN"),
    ("writeId", "job:nightly", "query:NAME/BATCH, query:NAME/BATCH/WRITE or job:NAME/RUN"),
    ("writeId", "a'b", "1 to 200 letters"),
    ("writeId", "x" * 201, "1 to 200 letters"),
    ("onBadRow", "keep", "one of fail, drop"),
    ("propertyColumns", "", "names of properties; the name '' is empty"),
    ("propertyColumns", "a, *", "columns without another meaning in the sink; * has one"),
    ("propertyColumns", "a,,b", "names of properties; the name '' is empty"),
    ("propertyColumns", '["a", 1]', "JSON array"),
    ("propertyColumns", "JMSPriority", "the name 'JMSPriority'"),
    ("propertyColumns", "spark_jms_body", "begins with spark_jms_"),
    ("propertyColumns", "a,Text", "columns without another meaning in the sink; Text has one"),
    ("propertyColumns", "sequence", "columns without another meaning in the sink; sequence has one"),
    ("propertyColumns", "JMSXUserID", "columns without another meaning in the sink; JMSXUserID has one"),
    ("propertyColumns", "a,b,A", "columns that differ from each other"),
    ("streamOffset", "last", "first, next, the offset of a message, or a time with its offset from UTC"),
    ("streamOffset", "-1", "first, next, the offset"),
    ("streamOffset", "2026-11-26T08:00:00", "first, next, the offset"),
    ("streamFilter", " ", "not blank"),
    ("connectTimeout", "10", "a time with its unit"),
    ("receiptTimeout", "31d", "a time from 1ms to 30d"),
    ("heartbeat", "100ms", "a time from 500ms to 30d"),
    ("reconnectTimeout", "10", "a time with its unit, like 500ms, 10s, 15m or 1h, 0, or forever"),
    ("reconnectTimeout", "-1s", "or forever"),
    ("reconnectTimeout", "31d", "30d, 0, or forever"),
]
NEVER_WRONG = {"password", "sslKeyPassword"}  # whatever they hold
SCOPES = {option.name: option.scope for option in OPTIONS}


def parsers(name):
    """What reads an option of that name, with the least it needs beside."""
    both = {"source": (SourceOptions, URL if name in ELSEWHERE else SOURCE), "sink": (SinkOptions, URL)}
    return [both[scope] for scope in both if SCOPES[name] in (scope, "both")]


def found(options, path):
    for name in path.split("."):
        options = getattr(options, name)
    return options


def test_the_tables_know_every_option():
    assert {row[0] for row in TABLE} | ELSEWHERE == {*SCOPES}
    assert {row[0] for row in WRONG} | NEVER_WRONG == {*SCOPES}


@pytest.mark.parametrize(("name", "text", "further", "path", "value", "default"), TABLE)
@pytest.mark.parametrize("spelling", [str, str.lower, str.upper])
def test_reads(name, text, further, path, value, default, spelling):
    for parser, least in parsers(name):
        raw = {key: given for key, given in (least | further).items() if key != name} | {spelling(name): text}
        assert found(parser.parse(raw), path) == value


@pytest.mark.parametrize(("name", "text", "further", "path", "value", "default"), TABLE)
def test_left_out(name, text, further, path, value, default):
    for parser, least in parsers(name):
        if name not in ("brokerUrl", "journalLocation"):  # the second may be left out where its guarantee is
            assert found(parser.parse(least | further), path) == default


@pytest.mark.parametrize(("name", "text", "wanted"), WRONG)
def test_a_bad_value_names_the_option_and_what_would_do(name, text, wanted):
    for parser, least in parsers(name):
        with pytest.raises(InvalidOptionError) as error:
            parser.parse(least | {name: text})
        assert f"[JMS_INVALID_OPTION] Option {name} cannot be" in str(error.value)
        assert wanted in error.value.remedy
        assert SECRET not in str(error.value)


@pytest.mark.parametrize("parser", [SourceOptions, SinkOptions])
def test_a_path_is_explained(parser):
    with pytest.raises(UnknownOptionError, match=r"load\(\).*queue or topic"):
        parser.parse(SOURCE | {"path": "orders"})


@pytest.mark.parametrize("name", [name for name, scope in SCOPES.items() if scope == "source"])
def test_a_sink_refuses_what_is_for_reading(name):
    with pytest.raises(UnknownOptionError, match=f"{name} .*read"):
        SinkOptions.parse(URL | {name.upper(): "1"})


@pytest.mark.parametrize("name", [name for name, scope in SCOPES.items() if scope == "sink"])
def test_a_source_refuses_what_is_for_writing(name):
    with pytest.raises(UnknownOptionError, match=f"{name} .*writ"):
        SourceOptions.parse(SOURCE | {name: "1"})


SECRETS = TLS | {"user": "me", "password": SECRET, "sslCertFile": "c", "sslKeyPassword": SECRET, "queue": "orders"}


@pytest.mark.parametrize("parser", [SourceOptions, SinkOptions])
def test_no_secret_is_shown(parser):
    options = parser.parse(SECRETS)
    shown = [
        options,
        options.connection,
        options.connection.tls,
        options.connection.password,
        dataclasses.fields(options),
    ]
    for value in shown:
        assert SECRET not in f"{value!r} {value!s} {value}"
    assert options.connection.password.reveal() == SECRET


@pytest.mark.parametrize("parser", [SourceOptions, SinkOptions])
@pytest.mark.parametrize(
    "wrong", [{"heartbeat": "x"}, {"que": "x"}, {"topic": "x"}, {"passwordFile": "f"}, {"sslCertFile": ""}]
)
def test_no_secret_is_in_an_error(parser, wrong):
    with pytest.raises(OptionError) as error:
        parser.parse(SECRETS | wrong)
    assert SECRET not in f"{error.value!r} {error.value}"


@pytest.mark.parametrize("parser", [SourceOptions, SinkOptions])
def test_options_travel_to_executors(parser):
    options = parser.parse(SECRETS)
    assert pickle.loads(pickle.dumps(options)) == options


# --- the settings of a connection --------------------------------------------------------------------


def test_the_broker_must_be_given():
    for parser in (SourceOptions, SinkOptions):
        with pytest.raises(MissingOptionError, match=r"brokerUrl .*stomp://HOST:61613"):
            parser.parse({"queue": "orders"})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"user": "me", "password": SECRET, "passwordFile": "f"}, "password and passwordFile are both given"),
        ({"password": SECRET}, "password is given without user"),
        ({"passwordFile": "f"}, "passwordFile is given without user"),
        (TLS | {"sslKeyFile": "k"}, "sslKeyFile is given without sslCertFile"),
        (TLS | {"sslKeyPassword": SECRET}, "sslKeyPassword is given without sslCertFile"),
        ({"sslCaFile": "ca"}, "no address of brokerUrl uses TLS"),
        ({"sslCertFile": "c"}, "no address of brokerUrl uses TLS"),
    ],
)
@pytest.mark.parametrize("parser", [SourceOptions, SinkOptions])
def test_what_does_not_go_together(parser, given, reason):
    with pytest.raises(OptionConflictError, match="JMS_OPTION_CONFLICT") as error:
        parser.parse(SOURCE | given)
    assert reason in error.value.fact
    assert error.value.remedy
    assert SECRET not in str(error.value)


def test_a_field_that_is_named_like_an_option_has_its_value():
    @dataclasses.dataclass(frozen=True)
    class Some:
        idle_timeout: float
        other: int = 3
        readers: int = 1

    values = {"idleTimeout": 2.0, "readers": None, "unused": 1}
    assert made(Some, values, readers=4) == Some(2.0, 3, 4)
