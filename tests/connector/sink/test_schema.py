import pyarrow as pa
import pytest

from pyspark_jms.errors import InvalidDestinationError, SchemaError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.schema import check_schema

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
