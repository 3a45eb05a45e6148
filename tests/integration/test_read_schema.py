"""Reads with a schema of the user: columns that are asked for, properties as columns, by Spark and by every engine."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from amqp_sending import put
from pyspark.errors.exceptions.captured import StreamingQueryException
from rawstomp import RawStomp
from streaming import access, journal_in, left, run_available

from pyspark_jms.jms.model import ERROR_PROPERTY

pytestmark = [pytest.mark.broker, pytest.mark.spark]

SCHEMA = (
    "text STRING, jmstype STRING, n INT, region STRING, at TIMESTAMP, price DECIMAL(9,2), ok BOOLEAN, body_error STRING"
)
AT_MS = 1_760_000_000_123
AT = datetime.fromtimestamp(AT_MS / 1000, UTC)


def fill(broker, queue, count):
    """Messages of which every third has a property n that is not a number."""
    headers = [("type", "order"), ("region", "EU"), ("at", str(AT_MS)), ("price", "7.5"), ("ok", "true")]
    with RawStomp(broker) as client:
        client.send(queue, [([*headers, ("n", "many" if k % 3 == 2 else str(k))], f"text {k}") for k in range(count)])


def wanted(count):
    rest = ("EU", AT, Decimal("7.50"), True)
    return [
        (f"text {k}", "order", None if k % 3 == 2 else k, *rest, "property 'n' is not an int" if k % 3 == 2 else None)
        for k in range(count)
    ]


def found(rows):
    utc = [row.asDict() | {"at": row.at.astimezone(UTC)} for row in rows]
    return sorted((tuple(row.values()) for row in utc), key=lambda row: int(row[0].split()[1]))


def options_of(broker, queue, engine, folder):
    readers = {"deliveryGuarantee": "exactly-once", "readers": "2"}
    once = {"journal": journal_in(folder / "journal"), "readers": readers}
    return (
        access(broker, "stomp" if engine in {"stomp", "journal"} else "amqp") | {"queue": queue} | once.get(engine, {})
    )


def deep(*engine):
    return pytest.param(*engine, marks=pytest.mark.deep)


@pytest.mark.parametrize("engine", [deep("stomp"), deep("amqp"), deep("journal"), "readers"])
def test_a_stream_has_the_columns_of_its_schema_and_its_checkpoint_takes_another(
    spark, broker, queue, tmp_path, engine
):
    options = options_of(broker, queue, engine, tmp_path)
    fill(broker, queue, 6)
    frame = spark.readStream.format("jms").options(**options).schema(SCHEMA).load()
    out, checkpoint = str(tmp_path / "out"), tmp_path / "checkpoint"
    run_available(frame, checkpoint, "parquet", path=out)
    assert found(spark.read.parquet(out).collect()) == wanted(6)
    fill(broker, queue, 3)
    frame = spark.readStream.format("jms").options(**options).schema("JMSPriority INT, N INT, text STRING").load()
    run_available(frame, checkpoint, "json", path=str(tmp_path / "more"))
    lines = [json.loads(line) for file in (tmp_path / "more").glob("*.json") for line in file.read_text().splitlines()]
    assert sorted(map(tuple, map(dict.items, lines))) == [(("JMSPriority", 4), ("text", f"text {k}")) for k in range(3)]
    assert left(broker, queue) == 0


def test_a_batch_read_and_a_view_have_the_columns_of_their_schema(spark, broker, queue, tmp_path):
    fill(broker, queue, 3)
    for engine in ("stomp", "amqp"):
        options = options_of(broker, queue, engine, tmp_path) | {"idleTimeout": "300ms"}
        rows = spark.read.format("jms").options(**options).schema(SCHEMA).load()
        assert found(rows.collect()) == wanted(3)
        assert rows.count() == 3
        given = ", ".join(f"{name} '{value}'" for name, value in options.items())
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW asked (n INT, Text STRING) USING jms OPTIONS ({given})")
        view = spark.sql("SELECT TEXT, N FROM asked WHERE n IS NOT NULL ORDER BY n")
        assert [tuple(row) for row in view.collect()] == [("text 0", 0), ("text 1", 1)]
    assert left(broker, queue, 3) == 3


@pytest.mark.deep
@pytest.mark.parametrize("engine", ["stomp", "readers"])
def test_a_property_of_another_type_goes_to_the_dead_letter_queue(spark, broker, queue, tmp_path, engine):
    fill(broker, queue, 6)
    options = options_of(broker, queue, engine, tmp_path) | {
        "onBadMessage": "deadLetter",
        "deadLetterQueue": f"{queue}.bad",
    }
    frame = spark.readStream.format("jms").options(**options).schema("n INT, text STRING").load()
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.n for row in rows) == [0, 1, 3, 4]
    bad = spark.read.format("jms").options(**access(broker), queue=f"{queue}.bad", idleTimeout="300ms").load().collect()
    assert sorted(row.text or row.bytes.decode() for row in bad) == ["text 2", "text 5"]
    assert {row.properties[ERROR_PROPERTY] for row in bad} == {"property 'n' is not an int"}


def test_a_property_of_another_type_fails_the_query_that_wants_it(spark, broker, queue, tmp_path):
    fill(broker, queue, 3)
    options = options_of(broker, queue, "stomp", tmp_path) | {"onBadMessage": "fail"}
    frame = spark.readStream.format("jms").options(**options).schema("n INT").load()
    with pytest.raises(
        StreamingQueryException, match=r"\[JMS_BAD_MESSAGE\] 1 of 3 messages .*property 'n' is not an int"
    ):
        run_available(frame, tmp_path / "checkpoint", "noop")
    assert left(broker, queue, 3) == 3


@pytest.mark.parametrize("case_sensitive", ["false", deep("true")])
@pytest.mark.parametrize("engine", ["stomp", "amqp"])
def test_a_property_column_has_the_exact_name_of_its_property(
    spark, set_spark, broker, queue, tmp_path, engine, case_sensitive
):
    """Columns of the fixed schema hide properties of their names, in upper and lower case."""
    headers = [("order-id", "5"), ("n", "7"), ("N", "8"), ("text", "property"), ("big", "1" * 38)]
    with RawStomp(broker) as client:
        client.send(queue, [(headers, "body")])
    options = options_of(broker, queue, engine, tmp_path) | {"idleTimeout": "300ms"}
    schema = "`order-id` INT, n INT, N STRING COLLATE UTF8_LCASE, TEXT STRING, big DECIMAL(38,0), `order.id` INT"
    set_spark("spark.sql.caseSensitive", case_sensitive)
    rows = spark.read.format("jms").options(**options).schema(schema).load().collect()
    assert [tuple(row) for row in rows] == [(5, 7, "8", "body", Decimal("1" * 38), None)]


def test_the_types_of_amqp_are_those_of_the_message(spark, broker, queue, tmp_path):
    """A long is no int by JMS, and a string is what its text is."""
    put(broker, queue, "text 0")
    options = options_of(broker, queue, "amqp", tmp_path)
    properties = "map('n', '7', 's', '7', 'd', '0.1')", "map('n', 'long', 's', 'string', 'd', 'double')"
    row = spark.sql(f"SELECT 'text 1' AS text, {properties[0]} AS properties, {properties[1]} AS property_types")
    row.write.format("jms").options(**options).mode("append").save()
    schema = "text STRING, n INT, s INT, d DOUBLE, body_error STRING, JMSXDeliveryCount INT"
    rows = spark.read.format("jms").options(**options, idleTimeout="300ms").schema(schema).load().collect()
    assert sorted(map(tuple, rows)) == [
        ("text 0", None, None, None, None, 1),
        ("text 1", None, 7, 0.1, "property 'n' was written as long, which is not readable as int", 1),
    ]


SETTINGS = {
    "spark.sql.timestampType": ("TIMESTAMP_NTZ",),
    "spark.sql.session.timeZone": ("GMT+02:00", "PST", "Europe/Berlin"),
    "spark.sql.ansi.enabled": ("false",),
    "spark.sql.caseSensitive": ("true",),
    "spark.sql.preserveCharVarcharTypeInfo": ("true",),
    "spark.sql.legacy.charVarcharAsString": ("true",),
    "spark.sql.ansi.enforceReservedKeywords": ("true",),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true",),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY",),
}
"""Settings of a session that change what types, literals and names of SQL mean."""


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        pytest.param(name, value, marks=[] if "timestampType" in name else pytest.mark.deep)
        for name, values in SETTINGS.items()
        for value in values
    ],
)
def test_the_settings_of_a_session_change_no_type_of_a_column(
    spark, set_spark, broker, queue, tmp_path, setting, value
):
    options = options_of(broker, queue, "stomp", tmp_path)
    set_spark(setting, value)
    # 1792888200000: an hour that Berlin has twice
    moment = "TIMESTAMP_LTZ'2026-10-25 00:30:00Z'"
    row = spark.sql(f"SELECT 'x' AS text, {moment} AS t, {moment} + INTERVAL 9999 DAYS AS JMSExpiration")
    row.write.format("jms").options(**options, propertyColumns="t").mode("append").save()
    reader = spark.read.format("jms").options(**options, idleTimeout="300ms")
    (read,) = (
        reader.load().selectExpr("text", "properties['t'] AS t", "unix_millis(JMSTimestamp) > 0 AS sent").collect()
    )
    assert tuple(read) == ("x", "1792888200000", True)
    asked = reader.schema("text STRING, t TIMESTAMP_LTZ, JMSTimestamp TIMESTAMP_LTZ").load()
    assert asked.selectExpr("unix_millis(t)").collect()[0][0] == 1792888200000
    given = ", ".join(f"`{name}` '{text}'" for name, text in options.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW whole USING jms OPTIONS ({given})")
    assert spark.sql("SELECT text FROM whole").collect()[0][0] == "x"
