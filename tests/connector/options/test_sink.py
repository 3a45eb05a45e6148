"""Options of a write that depend on each other."""

import pyarrow as pa
import pytest

from pyspark_jms.errors import (
    InvalidDestinationError,
    InvalidOptionError,
    OptionConflictError,
    SchemaError,
    UnknownOptionError,
)
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.sink import SinkOptions, check_schema
from pyspark_jms.options.source import SourceOptions

URL = {"brokerUrl": "stomp://host:1"}
SOURCE = URL | {"queue": "orders"}


@pytest.mark.parametrize(
    ("given", "destination"),
    [
        ({}, None),
        ({"queue": "a"}, Destination.parse("queue://a")),
        ({"queue": '["a,b"]'}, Destination.parse("queue://a,b")),
        ({"topic": "a"}, Destination.parse("topic://a")),
    ],
)
def test_where_a_sink_sends_by_default(given, destination):
    assert SinkOptions.parse(URL | given).destination == destination


def test_queue_and_topic():
    with pytest.raises(OptionConflictError, match=r"queue and topic .*column destination"):
        SinkOptions.parse(SOURCE | {"topic": "news"})


def test_a_sink_has_one_default():
    with pytest.raises(InvalidOptionError, match="column destination"):
        SinkOptions.parse(URL | {"queue": '["a", "b"]'})


def test_what_spark_hands_a_sink_of_its_own_is_let_through():
    SinkOptions.parse(URL | {"checkpointLocation": "/c", "queryName": "q"})
    with pytest.raises(UnknownOptionError, match="checkpointLocation"):
        SourceOptions.parse(SOURCE | {"checkpointLocation": "/c"})


@pytest.mark.parametrize(
    "given",
    [
        {"brokerUrl": "amqp://h:1", "deliveryGuarantee": "exactly-once", "transaction": "500"},
        {"brokerUrl": "amqp://h:1", "deliveryGuarantee": "exactly-once", "transaction": "none"},
        {"onReplayMismatch": "fail"},
        {"writeId": "w1"},
    ],
)
def test_what_does_not_go_together_in_a_sink(given):
    with pytest.raises(OptionConflictError, match="deliveryGuarantee=exactly-once"):
        SinkOptions.parse(URL | given)


TEXT = pa.schema({"text": pa.string()})


def options(**more):
    return SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1"} | more)


def test_a_destination_is_an_option_or_a_column_of_any_spelling():
    check_schema(options(queue="q"), TEXT)
    check_schema(options(), TEXT.append(pa.field("Destination", pa.string())))
    with pytest.raises(InvalidDestinationError, match="no column destination"):
        check_schema(options(), TEXT)


def test_columns_are_those_of_the_sink_and_of_the_option():
    price = TEXT.append(pa.field("price", pa.float64()))
    check_schema(options(queue="q", propertyColumns="price"), price)
    with pytest.raises(SchemaError, match="price"):
        check_schema(options(queue="q"), price)
