"""Spark checks the batches of a source against its own rendering of the DDL, field by field."""

from pyspark_jms.columns.schema import ARROW_SCHEMA, COLUMNS, DDL, IGNORED_BY_SINK, SINK_ONLY


def test_the_arrow_schema_is_what_spark_makes_of_the_ddl(spark):
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    spark_schema = StructType.fromDDL(DDL)
    assert spark_schema.fieldNames() == list(COLUMNS)
    assert to_arrow_schema(spark_schema, timezone="UTC") == ARROW_SCHEMA


def test_the_sink_ignores_columns_that_exist_and_adds_others():
    assert not IGNORED_BY_SINK - set(COLUMNS)
    assert not set(SINK_ONLY) & set(COLUMNS)
