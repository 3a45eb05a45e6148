import pytest

from pyspark_jms.errors import UnknownOptionError
from pyspark_jms.options.names import _KAFKA, _OTHERS, unknown_option
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.options.table import OPTIONS

SOURCE = {"brokerUrl": "stomp://host:1", "queue": "orders"}
BOTH = [(SourceOptions, "source"), (SinkOptions, "sink")]

KAFKA = [
    ("maxOffsetsPerTrigger", "Use maxMessagesPerTrigger"),
    ("minOffsetsPerTrigger", "trigger(processingTime=…)"),
    ("maxTriggerDelay", "trigger(processingTime=…)"),
    ("startingOffsets", "A queue has no offsets"),
    ("endingOffsets", "A queue has no offsets"),
    ("startingTimestamp", "A queue has no offsets"),
    ("subscribe", "option queue or topic"),
    ("subscribePattern", "Option topic takes a pattern"),
    ("assign", "A queue has no partitions"),
    ("minPartitions", "partitionBytes"),
    ("groupIdPrefix", "sharedSubscription=true"),
    ("kafka.group.id", "sharedSubscription=true"),
    ("kafka.bootstrap.servers", "brokerUrl: amqp://HOST:5672"),
    ("kafka.security.protocol", "amqps://HOST:5671"),
    ("includeHeaders", "columns of every row"),
]


@pytest.mark.parametrize(("key", "says"), KAFKA)
@pytest.mark.parametrize("spelling", [str, str.lower, str.upper])
@pytest.mark.parametrize("parser", [SourceOptions, SinkOptions])
def test_an_option_of_kafka_gets_its_own_answer(parser, key, says, spelling):
    with pytest.raises(UnknownOptionError) as refused:
        parser.parse(SOURCE | {spelling(key): "x"})
    assert refused.value.fact == f"There is no option {key} in format jms; it is an option of format kafka."
    assert says in refused.value.remedy
    assert "Did you mean" not in str(refused.value)


def test_any_other_option_of_kafka_is_recognised_by_its_beginning():
    error = unknown_option("kafka.fetch.min.bytes", "source")
    assert str(error).startswith(
        "[JMS_UNKNOWN_OPTION] There is no option kafka.fetch.min.bytes in format jms; it is an opt"
    )
    assert "brokerUrl" in error.remedy


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("username", "option"),
        ("url", "brokerUrl"),
        ("queueName", "queue or topic"),
        ("virtualHost", "amqp://HOST:5672/NAME"),
        ("passwordEnv", 'os.environ["NAME"]'),
        ("minMessagesPerTrigger", "trigger(processingTime=…)"),
    ],
)
@pytest.mark.parametrize(("_parser", "scope"), BOTH)
def test_names_of_other_connectors_get_an_answer(_parser, scope, key, says):
    error = unknown_option(key.upper(), scope)
    assert error.fact == f"There is no option {key}."
    assert says in error.remedy


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("deliveryMode", "JMSDeliveryMode"),
        ("priority", "JMSPriority"),
        ("timeToLive", "time_to_live, in milliseconds"),
        ("deliveryDelay", "delivery_delay, in milliseconds"),
    ],
)
def test_what_a_row_sets_has_its_column_as_answer(key, column):
    error = unknown_option(key, "sink")
    assert error.remedy == f"When writing, give rows a column {column}: lit(…) sets it for all rows."


def test_no_answer_is_in_the_way_of_an_option():
    names = {option.name.lower() for option in OPTIONS}
    assert not names & {name.lower() for name in (*_KAFKA, *_OTHERS)}


NEAR = [
    ("que", "queue", None),
    ("quue", "queue", "queue"),
    ("brokerURI", "brokerUrl", "brokerUrl"),
    ("maxMesagesPerTrigger", "maxMessagesPerTrigger", None),
    ("JOURNALLOCATIN", "journalLocation", None),
    ("passwordfiel", "passwordFile", "passwordFile"),
    ("sslCa", "sslCaFile", "sslCaFile"),
    ("propertyColumn", None, "propertyColumns"),
    ("onBadRows", None, "onBadRow"),
    ("selectr", "selector", None),
]


@pytest.mark.parametrize(("key", "reading", "writing"), NEAR)
def test_a_near_miss_gets_the_name_of_its_own_side(key, reading, writing):
    for scope, nearest in (("source", reading), ("sink", writing)):
        reason = unknown_option(key, scope).remedy
        names = {option.name for option in OPTIONS if option.scope in (scope, "both")}
        if nearest is not None:
            assert reason == f"Did you mean {nearest}?"
        elif reason.startswith("Did you mean"):
            assert reason.removeprefix("Did you mean ").rstrip("?") in names


@pytest.mark.parametrize("key", ["xyzzy", "mode", "delimiter", "trigger", "maxOffsets", "checkpointDir", "ackMode"])
def test_a_far_miss_gets_the_list_of_its_side(key):
    assert unknown_option(key, "source").remedy.startswith("The options are brokerUrl, user, ")
    reason = unknown_option(key, "sink").remedy
    assert reason.startswith("The options are brokerUrl, user, ")
    assert "selector" not in reason
    assert "propertyColumns" in reason
