"""``format("jms")``: the entry point that Spark finds, and the readers and writers that it makes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from pyspark_jms.columns.schema import DDL, TYPE_NAME, read_columns
from pyspark_jms.errors import MissingOptionError, SchemaError, UnsupportedError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.options.values import hide_secrets
from pyspark_jms.spark.calls import freeze_gc, short_traceback
from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL, arrow_type

__all__ = ["JmsDataSource"]

_OF_TABLE = "provider"
"""Spark adds this option, and owner, location, path, comment and all table properties, for CREATE TABLE only."""
_TABLE_REMEDY = (
    "Use CREATE TEMPORARY VIEW name USING jms OPTIONS (brokerUrl '…', queue '…'), which has its options in every query,"
    " or spark.read and df.write."
)


class JmsDataSource(DataSource):
    """JMS queues and topics over STOMP or AMQP. Options: docs/options.md; schema: docs/schema.md."""

    def __init__(self, options: dict[str, str]) -> None:
        # In place: Spark has the mapping in a local variable of its own, which a traceback may show.
        options.update(hide_secrets(options))
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return "jms"

    @short_traceback
    def schema(self) -> str:
        """The fixed schema. Called by ``load()``, so the options are checked here, before anything connects.

        Spark does not call it for a read with a schema of the user: ``reader`` and ``streamReader`` check then.
        """
        if _OF_TABLE in {key.lower() for key in self.options}:
            raise UnsupportedError(
                "CREATE TABLE cannot use format jms: Spark does not pass the options of a table to a Python data source"
                " when the table is read or written.",
                _TABLE_REMEDY,
            )
        SourceOptions.parse(self.options)
        return DDL

    @short_traceback
    def streamReader(self, schema: StructType) -> Any:
        options = _source_options(self.options, "stream", schema)
        if HAS_ADMISSION_CONTROL:
            from pyspark_jms.spark.stream_reader import JmsStreamReader

            return JmsStreamReader(options)
        from pyspark_jms.spark.stream_reading import JmsBasicStreamReader

        return JmsBasicStreamReader(options)

    @short_traceback
    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        from pyspark_jms.spark.writers import JmsStreamWriter

        freeze_gc()
        if overwrite:
            raise UnsupportedError(
                "Output mode complete would send the whole result with every batch.", "Use outputMode('append')."
            )
        return JmsStreamWriter(_sink_options(self.options, schema))

    @short_traceback
    def reader(self, schema: StructType) -> Any:
        """A peek: a batch read has no commit after which messages could be acknowledged."""
        from pyspark_jms.spark.batch_reader import JmsPeek

        return JmsPeek(_source_options(self.options, "batch", schema))

    @short_traceback
    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from pyspark_jms.spark.writers import JmsBatchWriter

        freeze_gc()
        return JmsBatchWriter(_sink_options(self.options, schema), overwrite=overwrite)


def _source_options(raw: Mapping[str, str], reading: Literal["stream", "batch"], schema: StructType) -> SourceOptions:
    _require_options(raw)
    options = SourceOptions.parse(raw, reading)
    fields = [_arrow_field(field).with_nullable(field.nullable) for field in schema]
    return replace(options, columns=read_columns(fields, [field.dataType.simpleString() for field in schema]))


def _sink_options(raw: Mapping[str, str], schema: StructType) -> SinkOptions:
    """Columns are checked where the plan is made: before any task runs, and also when there are no rows."""
    from pyspark_jms.options.sink import check_schema

    _require_options(raw)
    options = SinkOptions.parse(raw)
    fields = [_arrow_field(field).with_metadata({TYPE_NAME: field.dataType.simpleString()}) for field in schema]
    check_schema(options, pa.schema(fields))
    return options


def _require_options(raw: Mapping[str, str]) -> None:
    """A table of Spark's catalog that was created with columns or by a write arrives here, without its options."""
    if not raw:
        raise MissingOptionError(
            "Format jms got no option at all: Spark does not pass the options of a table of its catalog, and without"
            " options nothing names the broker.",
            _TABLE_REMEDY,
        )


def _arrow_field(field: StructField) -> pa.Field:
    try:
        return pa.field(field.name, arrow_type(_of_any_length(field.dataType)))
    except PySparkTypeError:
        raise SchemaError(
            f"Column {field.name} has the type {field.dataType.simpleString()}, which Arrow does not have.",
            "Cast or drop the column.",
        ) from None


def _of_any_length(found: DataType) -> DataType:
    """Return the type with strings for CHAR and VARCHAR, as tasks get them.

    Spark names CHAR and VARCHAR in a plan if spark.sql.preserveCharVarcharTypeInfo is set.
    """
    match found:
        case CharType() | VarcharType():
            return StringType()
        case ArrayType():
            return ArrayType(_of_any_length(found.elementType))
        case MapType():
            return MapType(_of_any_length(found.keyType), _of_any_length(found.valueType))
        case StructType():
            return StructType([StructField(field.name, _of_any_length(field.dataType)) for field in found])
    return found
