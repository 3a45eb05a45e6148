"""``load()`` reports wrong options before anything connects."""

import uuid

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql import types
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    CharType,
    DayTimeIntervalType,
    DecimalType,
    MapType,
    StringType,
    StructType,
    VarcharType,
)

from pyspark_jms.columns.schema import ARROW_SCHEMA, COLUMNS
from pyspark_jms.errors import JMSError, SchemaError, UnsupportedError
from pyspark_jms.spark.releases import arrow_type
from pyspark_jms.spark.source import JmsDataSource

NOWHERE = {"brokerUrl": "stomp://localhost:1", "queue": "q"}


@pytest.mark.releases
def test_load_gives_the_schema_and_connects_nowhere(spark):
    frame = spark.readStream.format("jms").options(**NOWHERE).load()
    assert tuple(frame.columns) == COLUMNS
    assert arrow_type(frame.schema) == pa.struct(ARROW_SCHEMA)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        pytest.param({"queue": "q"}, r"\[JMS_MISSING_OPTION\] Option brokerUrl", marks=pytest.mark.releases),
        (NOWHERE | {"quue": "q"}, r"\[JMS_UNKNOWN_OPTION\] There is no option quue. Did you mean queue\?"),
    ],
)
def test_load_refuses(spark, options, reason):
    """The tests of options have each error."""
    with pytest.raises(AnalysisException, match=reason) as caught:
        spark.readStream.format("jms").options(**options).load()
    assert str(caught.value).count("/pyspark_jms/") == 1  # the frame of the wrapper, and none of the parser


@pytest.mark.releases
def test_a_password_is_in_no_error_and_no_plan(spark, capfd):
    secret = "my-5ecret-word"
    options = NOWHERE | {"user": "u", "password": secret}
    spark.readStream.format("jms").options(**options).load().explain(extended=True)
    with pytest.raises(AnalysisException) as caught:
        spark.readStream.format("jms").options(**options, queueu="q").load()
    assert secret not in str(caught.value)
    assert secret not in capfd.readouterr().out


def test_a_wrong_schema_is_an_error_before_anything_connects(spark, tmp_path):
    """`tests/connector/columns/test_schema.py` has each error."""
    schema, reason = "text STRING NOT NULL", r"\[JMS_SCHEMA\] Column text is declared NOT NULL"
    with pytest.raises(AnalysisException, match=reason):
        spark.read.format("jms").options(**NOWHERE).schema(schema).load().collect()
    frame = spark.readStream.format("jms").options(**NOWHERE).schema(schema).load()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException, match=reason):
        query.awaitTermination(60)


def test_a_table_of_the_catalog_is_refused_with_the_view_to_use_instead(spark):
    name = f"jms_{uuid.uuid4().hex[:8]}"
    options = "OPTIONS (brokerUrl 'stomp://localhost:1', queue 'q')"
    with pytest.raises(AnalysisException, match=r"\[JMS_UNSUPPORTED\] CREATE TABLE .*CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE {name} USING jms {options} COMMENT 'orders' TBLPROPERTIES ('a' = 'b')")
    spark.sql(f"CREATE TABLE {name} (text STRING) USING jms {options}")
    for statement in (f"SELECT * FROM {name}", f"INSERT INTO {name} SELECT 'a'"):
        with pytest.raises(AnalysisException, match=r"\[JMS_MISSING_OPTION\] .*CREATE TEMPORARY VIEW"):
            spark.sql(statement).collect()
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TEMPORARY VIEW {name} USING jms {options}")
    assert tuple(spark.table(name).columns) == COLUMNS
    spark.catalog.dropTempView(name)
    spark.sql(f"CREATE TEMPORARY VIEW {name} (orderId INT, text STRING) USING jms {options}")
    assert spark.table(name).dtypes == [("orderId", "int"), ("text", "string")]
    spark.catalog.dropTempView(name)


@pytest.mark.parametrize("mode", ["error", "errorifexists", "ignore", None])
def test_spark_itself_refuses_other_save_modes(spark, mode):
    """docs/errors.md: Spark does not call a data source for them, and its advice names a mode that is refused, too."""
    writer = spark.createDataFrame([("a",)], "text string").write.format("jms").options(**NOWHERE)
    with pytest.raises(AnalysisException, match=r"UNSUPPORTED_DATA_SOURCE_SAVE_MODE.*Append"):
        (writer if mode is None else writer.mode(mode)).save()


def test_complete_mode_is_refused():
    source = JmsDataSource(NOWHERE)
    with pytest.raises(UnsupportedError, match="append"):
        source.streamWriter(None, True)


def test_the_fixed_schema_asks_for_all_columns_and_another_one_for_its_own():
    whole = from_arrow_schema(ARROW_SCHEMA)
    assert JmsDataSource(NOWHERE).streamReader(whole)._options.columns is None
    columns = (
        JmsDataSource(NOWHERE)
        .reader(StructType().add("Text", StringType()).add("n", DecimalType(9, 2)))
        ._options.columns
    )
    assert (columns.fixed, columns.properties) == (("text", None), ("n",))
    with pytest.raises(SchemaError, match="no column"):
        JmsDataSource(NOWHERE).reader(StructType())
    with pytest.raises(SchemaError, match="Arrow does not have"):
        JmsDataSource(NOWHERE).reader(StructType().add("n", CalendarIntervalType()))


# --- the sink ----------------------------------------------------------------------------------------

INTERVALS = {"calendarinterval": CalendarIntervalType(), "day-time": DayTimeIntervalType()}
TO = {"brokerUrl": "stomp://localhost:1", "queue": "q"}


@pytest.mark.releases
@pytest.mark.parametrize("make", [JmsDataSource.writer, JmsDataSource.streamWriter])
@pytest.mark.parametrize(
    ("options", "columns", "reason"),
    [
        (TO, "text string, JMSPrio integer", r"\[JMS_SCHEMA\] .*no column 'JMSPrio'; the nearest is JMSPriority"),
        (TO, "text binary", r"\[JMS_SCHEMA\] Column text has the type binary; .*string"),
        (TO | {"propertyColumns": "price"}, "price date", r"\[JMS_SCHEMA\] Column price .*boolean"),
        (TO | {"propertyColumns": "price"}, "text string", r"\[JMS_SCHEMA\] .*'price'"),
        (TO, "JMSExpiration timestamp_ntz", r"\[JMS_SCHEMA\] Column JMSExpiration has .*timestamp_ntz; .*session"),
        (TO, "time_to_live day-time", r"\[JMS_SCHEMA\] Column time_to_live .*Cast it to .*bigint, in milliseconds"),
        (TO, "text calendarinterval", r"\[JMS_SCHEMA\] Column text has the type interval, .*Cast"),
        ({"brokerUrl": "stomp://localhost:1"}, "text string", r"\[JMS_INVALID_DESTINATION\] .*option queue or topic"),
        (TO | {"propertyColumns": "text"}, "text string", r"\[JMS_INVALID_OPTION\] Option propertyColumns"),
    ],
)
def test_columns_are_checked_where_the_plan_is_made(make, options, columns, reason):
    schema = StructType()
    for column in columns.split(", "):
        name, kind = column.split(" ")
        schema.add(name, INTERVALS.get(kind, kind))
    with pytest.raises(JMSError, match=reason):
        make(JmsDataSource(options), schema, False)


@pytest.mark.releases
@pytest.mark.parametrize("make", [JmsDataSource.writer, JmsDataSource.streamWriter])
def test_columns_that_fit_are_taken(make):
    schema = (
        StructType().add("PRICE", "float").add("text", "string").add("properties", MapType(StringType(), StringType()))
    )
    make(JmsDataSource(TO | {"propertyColumns": "price"}), schema, False)
    make(JmsDataSource({"brokerUrl": "stomp://h:1"}), StructType().add("Destination", "string"), False)


@pytest.mark.parametrize(("kind", "name"), [("VariantType", "variant"), ("TimeType", r"time\(6\)")])
def test_a_type_is_named_as_spark_names_it(kind, name):
    kind = getattr(types, kind, None)  # TIME is from Spark 4.1 on
    if kind is None:
        pytest.skip("this Spark does not have the type")
    for columns, options in ((("text", kind()), TO), (("v", ArrayType(kind())), TO | {"propertyColumns": "v"})):
        with pytest.raises(SchemaError, match=rf"has the type (array<)?{name}>?[,;]"):
            JmsDataSource(options).writer(StructType().add(*columns), False)


def test_strings_of_a_stated_length_are_strings_also_inside_of_others():
    named = MapType(CharType(4), VarcharType(8))
    element = StructType().add("type", VarcharType(8)).add("value", CharType(4))
    schema = StructType().add("text", CharType(3)).add("properties", named).add("stream", ArrayType(element))
    schema = schema.add("code", VarcharType(3)).add("map", MapType(CharType(1), element))
    JmsDataSource(TO | {"propertyColumns": "code"}).writer(schema, False)
