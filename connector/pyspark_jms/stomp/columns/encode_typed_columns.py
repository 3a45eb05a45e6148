"""Columns of option ``propertyColumns`` → header lines of SEND."""

from collections.abc import Mapping

import pyarrow as pa

from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_properties import TypedColumn
from pyspark_jms.columns.strings import Piece
from pyspark_jms.errors import SchemaError
from pyspark_jms.stomp.columns.encode_properties import left_out, name_problem
from pyspark_jms.stomp.columns.escapes import escape_column
from pyspark_jms.stomp.columns.header_line import header_line
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["column_lines"]


def column_lines(rows: Rows, columns: Mapping[str, TypedColumn], dialect: Dialect) -> list[Piece]:
    """A line for each value that is not null, as pieces of the rows' frames."""
    lines: list[Piece] = []
    for name, column in columns.items():
        _check_name(name, dialect)
        values = _escaped(rows, name, column.texts)
        lines += header_line(dialect.send_property_names.get(name, name), values)
    return lines


def _check_name(name: str, dialect: Dialect) -> None:
    problem = "is a property that the broker sets" if left_out(name, dialect) else name_problem(name, dialect)
    if problem:
        raise SchemaError(f"The name of column {name} of propertyColumns {problem}.", "Rename it.")


def _escaped(rows: Rows, name: str, texts: pa.Array) -> pa.Array:
    fact = f"has a column {name} that is not UTF-8"
    return escape_column(texts, lambda index: rows.refuse(index, fact, "Encode it, in base64 for example."))
