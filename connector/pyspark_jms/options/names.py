"""A key that is not an option of the source or sink → the error that names the option to use instead.

There are four kinds of remedies: for options of other connectors (mostly Kafka), for what is an option elsewhere and
another thing here, for misspelled names, and the list of all options.
"""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from pyspark_jms.errors import UnknownOptionError
from pyspark_jms.options.table import OPTIONS, Scope

__all__ = ["unknown_option"]

_CUTOFF = 0.8
_SHORTEST_PREFIX = 3

_NO_OFFSETS = (
    "A queue has no offsets: a query reads the messages that are on the queue. Remove the option. A stream of RabbitMQ"
    " has offsets: see streamOffset."
)
_NO_PARTITIONS = "A queue has no partitions. A batch has one read task for each partitionBytes."
_LARGER_BATCHES = "Use a longer trigger: trigger(processingTime=…)."
_DESTINATION = "Name the destination with option queue or topic."
_ACCOUNT = "Give the login with the options user and password, or user and passwordFile."
_ADDRESS = "Give the broker's address with option brokerUrl: amqp://HOST:5672 or stomp://HOST:61613."
_VIRTUAL_HOST = "The virtual host is the path of brokerUrl: amqp://HOST:5672/NAME or stomp://HOST:61613/NAME."
_GROUP = (
    "Queries that read one queue share its messages. Several queries share a topic's messages with subscriptionName and"
    " sharedSubscription=true."
)
_TLS = "TLS is brokerUrl amqps://HOST:5671 or stomp+ssl://HOST:61614, with sslCaFile, sslCertFile and sslKeyFile."
_COLUMN = "When writing, give rows a column {}: lit(…) sets it for all rows."
_HEADERS = "Headers and properties are columns of every row."

_KAFKA: Mapping[str, str] = MappingProxyType(
    {
        "subscribe": _DESTINATION,
        "subscribePattern": "Option topic takes a pattern in the broker's own syntax, option queue several names:"
        ' ["orders", "invoices"].',
        "assign": _NO_PARTITIONS + " " + _DESTINATION,
        "startingOffsets": _NO_OFFSETS,
        "startingOffsetsByTimestamp": _NO_OFFSETS,
        "startingOffsetsByTimestampStrategy": _NO_OFFSETS,
        "startingTimestamp": _NO_OFFSETS,
        "endingOffsets": _NO_OFFSETS,
        "endingOffsetsByTimestamp": _NO_OFFSETS,
        "endingTimestamp": _NO_OFFSETS,
        "maxOffsetsPerTrigger": "Use maxMessagesPerTrigger, or maxBytesPerTrigger.",
        "minOffsetsPerTrigger": _LARGER_BATCHES,
        "maxTriggerDelay": _LARGER_BATCHES,
        "minPartitions": _NO_PARTITIONS,
        "maxRecordsPerPartition": _NO_PARTITIONS,
        "groupIdPrefix": _GROUP,
        "includeHeaders": _HEADERS,
        "kafkaConsumer.pollTimeoutMs": "Use receiptTimeout.",
        "fetchOffset.numRetries": "A source reconnects by itself; see reconnectTimeout.",
        "fetchOffset.retryIntervalMs": "A source reconnects by itself; see reconnectTimeout.",
        "kafka.bootstrap.servers": _ADDRESS,
        "kafka.group.id": _GROUP,
        "kafka.security.protocol": f"{_TLS} {_ACCOUNT}",
        "kafka.sasl.jaas.config": _ACCOUNT,
        "kafka.sasl.mechanism": _ACCOUNT,
        "kafka.ssl.truststore.location": _TLS,
        "kafka.ssl.keystore.location": _TLS,
        "kafka.max.poll.records": "Use maxMessagesPerTrigger.",
    }
)
_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "bootstrap.servers": _ADDRESS,
        "url": _ADDRESS,
        "host": _ADDRESS,
        "port": _ADDRESS,
        "brokers": _ADDRESS,
        "passwordEnv": 'Read it in the program, .option("password", os.environ["NAME"]), or use passwordFile.',
        "minMessagesPerTrigger": _LARGER_BATCHES,
        "virtualHost": _VIRTUAL_HOST,
        "vhost": _VIRTUAL_HOST,
        "username": _ACCOUNT,
        "login": _ACCOUNT,
        "passcode": _ACCOUNT,
        "queueName": _DESTINATION,
        "topicName": _DESTINATION,
        "destination": f"{_DESTINATION} A sink also reads column destination, which names the destination of each row.",
        "prefetch": "Use windowBytes.",
        "prefetchSize": "Use windowBytes.",
        "prefetchCount": "Use windowBytes.",
        "batchSize": "Use maxMessagesPerTrigger for a read. For a write, option transaction takes a number of rows.",
        "maxMessages": "Use maxMessagesPerTrigger.",
        "maxFilesPerTrigger": "Use maxMessagesPerTrigger.",
        "rowsPerSecond": "Use maxMessagesPerTrigger.",
        "schema": "Format jms has a fixed schema. Parse the body with from_json.",
        "messageSelector": "Use selector.",
        "checkpointLocation": "Give it to writeStream.",
        "deliveryMode": _COLUMN.format("JMSDeliveryMode"),
        "priority": _COLUMN.format("JMSPriority"),
        "timeToLive": _COLUMN.format("time_to_live, in milliseconds"),
        "deliveryDelay": _COLUMN.format("delivery_delay, in milliseconds"),
    }
)
_ANSWERS = {
    name.lower(): (name, owner, answer)
    for owner, answers in (("format kafka", _KAFKA), ("", _OTHERS))
    for name, answer in answers.items()
}


def unknown_option(key: str, scope: Scope) -> UnknownOptionError:
    """Return the error for this key. ``scope``: whether a source or a sink got the key."""
    if key.lower() == "path":
        return UnknownOptionError(
            "A path was given to load(), start() or save().", "Name a destination with option queue or topic instead."
        )
    if (known := _ANSWERS.get(key.lower())) is not None:
        name, owner, answer = known
        return UnknownOptionError(_fact(name, owner), answer)
    if key.lower().startswith("kafka."):
        return UnknownOptionError(_fact(key, "format kafka"), f"Remove the option. {_ADDRESS}")
    names = [option.name for option in OPTIONS if option.scope in (scope, "both")]
    nearest = _nearest(key, names)
    remedy = f"Did you mean {nearest}?" if nearest else f"The options are {', '.join(names)}."
    return UnknownOptionError(_fact(key, ""), remedy)


def _fact(name: str, owner: str) -> str:
    if owner:
        return f"There is no option {name} in format jms; it is an option of {owner}."
    return f"There is no option {name}."


def _nearest(key: str, names: list[str]) -> str | None:
    """Return the name that is spelled almost like this one, or begins with it."""
    by_key = {name.lower(): name for name in names}
    close = difflib.get_close_matches(key.lower(), by_key, n=1, cutoff=_CUTOFF)
    if not close and len(key) >= _SHORTEST_PREFIX:
        close = [name for name in by_key if name.startswith(key.lower())][:1]
    return by_key[close[0]] if close else None
