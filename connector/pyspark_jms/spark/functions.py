"""Typed values in Spark: ``getIntProperty("n")`` and its like as columns over the schema's ``properties``, ``map``
and ``stream``; and the body as text, whichever column it arrived in.

The typed ones give what :func:`pyspark_jms.functions.convert` gives, its errors included. All are made of built-in
functions, so Spark compiles them. A row whose ``map`` or ``stream`` is null has no such body: there the column is
null.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jms_selector.meaning.conversions import JAVA_DOUBLE
from pyspark_jms.columns.schema import SPARK_TYPES
from pyspark_jms.columns.sql_selectors import declared_types, selector_text
from pyspark_jms.delivery.commit_token import identity_of
from pyspark_jms.errors import InvalidOptionError, JMSError, MessageEOFError, MessageFormatError, WriteIdentityError
from pyspark_jms.jms.conversions import BASE64, READABLE_AS, ValueType, convert, null_as, value_type
from pyspark_jms.jms.rules import AMQP_TYPES

__all__ = ["jms_map", "jms_property", "jms_stream", "jms_text", "selector_for", "write_id"]

_T = ValueType


def jms_text(df: DataFrame | None = None) -> Column:
    """Return the body as text, whether it arrived as text or as bytes: ``from_json(jms_text(), schema)``.

    Texts of STOMP producers that send a content-length, as stomp.py does, arrive as bytes. ``df`` has the columns of
    the schema; without it the function takes the columns by their names. Bytes are read as UTF-8. The column is null
    for bytes that are not UTF-8, for a map, stream or object, and if ``body_error`` states that the body could not be
    mapped.
    """
    named = F.col if df is None else df.__getitem__
    decoded = F.when(
        (named("body_type") == "bytes") & named("body_error").isNull(),
        F.try_validate_utf8(named("bytes").cast("string")),
    )
    return F.coalesce(named("text"), decoded).alias("text")


def jms_property(
    df_or_col: DataFrame | Column | str,
    name: str,
    type: str,  # noqa: A002 - JMS calls it so
    *,
    types: Column | str | None = "property_types",
    null_on_error: bool = False,
) -> Column:
    """Return the property as a Java client reads it: ``jms_property(df, "price", "double")``.

    ``df_or_col`` is a DataFrame with the columns of the schema, or its column ``properties``. ``types`` is the column
    of the types; a DataFrame has its own. A property without a type counts as a string, which can be read as every
    type. An absent property is a null: it is false as boolean, null as string, and an error as a number. With
    ``null_on_error`` the result is null instead of an error.
    """
    properties, written = _properties(df_or_col, types)
    read = value_type(type)
    if read in {_T.CHAR, _T.BYTES}:
        raise MessageFormatError(f"A property is never a {read}.", "It can be read as string.")
    how = _Read(read, f"Property {name!r}", null_on_error=null_on_error)
    type_of_it = F.lit(None) if written is None else _jms_type(written[name])
    return how.value_of(properties[name], type_of_it).alias(name)


def _jms_type(written: Column) -> Column:
    """A property with a type that only AMQP has is readable as every type, as a string is."""
    return F.when(written.isin(*AMQP_TYPES), F.lit(str(_T.STRING))).otherwise(written)


def _properties(df_or_col: DataFrame | Column | str, types: Column | str | None) -> tuple[Column, Column | None]:
    if isinstance(df_or_col, DataFrame):
        typed = "property_types" in df_or_col.columns
        return df_or_col["properties"], df_or_col["property_types"] if typed else None
    return _column(df_or_col), None if types is None else _column(types)


def jms_map(
    df_or_col: DataFrame | Column | str,
    name: str,
    type: str,  # noqa: A002 - JMS calls it so
    *,
    null_on_error: bool = False,
) -> Column:
    """Return the item of a MapMessage as a Java client reads it: ``jms_map("map", "price", "double")``.

    ``df_or_col`` is a DataFrame with the columns of the schema, or its column ``map``. An absent item is a null, as in
    :func:`jms_property`.
    """
    items = _column(df_or_col, "map")
    how = _Read(value_type(type), f"Map item {name!r}", null_on_error=null_on_error)
    return how.value_of(items[name]["value"], items[name]["type"], [(items.isNull(), F.lit(None))]).alias(name)


def jms_stream(
    df_or_col: DataFrame | Column | str,
    index: int,
    type: str,  # noqa: A002 - JMS calls it so
    *,
    null_on_error: bool = False,
) -> Column:
    """Return an element of a StreamMessage as a Java client reads it: ``jms_stream("stream", 0, "int")``.

    ``df_or_col`` is a DataFrame with the columns of the schema, or its column ``stream``. ``index`` counts from 0; an
    index beyond the last element is a ``MessageEOFException``.
    """
    if index < 0:
        raise MessageEOFError(f"There is no stream element {index}.", "Elements are counted from 0.")
    elements = _column(df_or_col, "stream")
    how = _Read(value_type(type), f"Stream element {index}", null_on_error=null_on_error)
    element = F.get(elements, F.lit(index))
    beyond = how.error(MessageEOFError("It is beyond the end of the stream.", "Ask size(stream) first."))
    exceptions = [(elements.isNull(), F.lit(None)), (F.size(elements) <= index, beyond)]
    return how.value_of(element["value"], element["type"], exceptions).alias(f"stream[{index}]")


def _column(df_or_col: DataFrame | Column | str, name: str = "") -> Column:
    if isinstance(df_or_col, DataFrame):
        return df_or_col[name]
    return F.col(df_or_col) if isinstance(df_or_col, str) else df_or_col


_Case: TypeAlias = tuple[Column, Column]
"""A condition, and what holds where it is true."""


def _first(cases: Sequence[_Case], otherwise: Column) -> Column:
    if not cases:
        return otherwise
    return reduce(lambda found, case: found.when(*case), cases[1:], F.when(*cases[0])).otherwise(otherwise)


# --- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Read:
    """How one value is read: as which type, what to call it in an error, and whether an error is a null."""

    read: ValueType
    what: str
    null_on_error: bool

    def value_of(self, text: Column, written: Column, exceptions: Sequence[_Case] = ()) -> Column:
        """``convert(text, written, read)``; where there is no value, first of all what the ``exceptions`` state.

        Java compiles no method of more than 8,000 bytes, and Spark makes one method of all columns of a select. So
        what is seldom or never needed stands behind the value, and is raised in one place.
        """
        written = F.coalesce(written, F.lit(str(_T.STRING)))
        null = [(text.isNull(), F.lit(null_as(self.read)))] if self.read in _NULLABLE else []
        absent = _first([*exceptions, *null], self._problem(text, written))
        return F.coalesce(_value(self.read, text, written), absent).cast(SPARK_TYPES[self.read])

    def error(self, error: JMSError) -> Column:
        return self._raised(F.lit(self._text(error)))

    def _problem(self, text: Column, written: Column) -> Column:
        """Return what ``convert`` raises, when there is no value."""
        errors = {source: error for source in _T if (error := _error(_NO_VALUE, source, self.read))}
        texts = F.create_map(*(F.lit(word) for source, error in errors.items() for word in (source, self._text(error))))
        null = _error(None, None, self.read)
        cases = [(text.isNull(), F.lit(self._text(null)))] if null else []
        unknown = _error(_NO_VALUE, "unknown", self.read)
        assert unknown is not None
        return self._raised(_first(cases, F.coalesce(texts[written], F.lit(self._text(unknown)))))

    def _raised(self, message: Column) -> Column:
        return F.lit(None) if self.null_on_error else F.raise_error(message)

    def _text(self, error: JMSError) -> str:
        return str(type(error)(f"{self.what}: {error.fact}", error.remedy))


_NULLABLE = frozenset({_T.BOOLEAN, _T.STRING, _T.BYTES})

_NO_VALUE = "=="
"""A text of no type but boolean and string, which take every text."""


def _error(text: str | None, written: str | None, read: ValueType) -> JMSError | None:
    try:
        convert(text, written, read)
    except JMSError as error:
        return error
    return None


# --- values: null where there is none ------------------------------------------------------------

_INTEGERS = (_T.BYTE, _T.SHORT, _T.INT, _T.LONG)
_FLOATS = (_T.FLOAT, _T.DOUBLE)

_TRUE = r"\A[Tt][Rr][Uu][Ee]\z"
_INTEGER = r"\A[+-]?[0-9]+\z"
_OTHER_DIGITS = r"\A[+-]?\p{Nd}+\z"
_FLOATING = rf"\A[\x00-\x20]*{JAVA_DOUBLE}[\x00-\x20]*\z"
_CHAR = r"\A[^\x{10000}-\x{10FFFF}]\z"
_BASE64 = rf"\A(?:{BASE64})\z"


def _value(read: ValueType, text: Column, written: Column) -> Column:
    """Spark looks both up once, and not at every mention, when a condition that is always evaluated has them twice."""
    others = [str(source) for source in _T if read in READABLE_AS[source] and source is not _T.STRING]
    there = text.isNotNull() & (text >= "")
    return F.when(there & (written.isin(others) | (written == _T.STRING)), _parsed(read, text, written))


def _parsed(read: ValueType, text: Column, written: Column) -> Column:
    match read:
        case _T.BOOLEAN:
            return text.rlike(_TRUE)
        case _T.CHAR:
            return F.when((written == _T.CHAR) & text.rlike(_CHAR), text)
        case _T.BYTES:
            return F.when((written == _T.BYTES) & text.rlike(_BASE64), F.unbase64(text))
        case _T.FLOAT | _T.DOUBLE:
            return F.when(text.rlike(_FLOATING), _cast(read, text, written, _FLOATS))
        case _T.STRING:
            return _rendered(text, written)
    other_digits = (written == _T.STRING) & text.rlike(_OTHER_DIGITS)
    return F.when(text.rlike(_INTEGER), _cast(read, text, written, _INTEGERS)).when(
        other_digits, F.translate(text, *_digits()).try_cast(SPARK_TYPES[read])
    )


def _rendered(text: Column, written: Column) -> Column:
    return (
        F.when(written == _T.STRING, text)
        .when(written.isin(*_INTEGERS), F.when(text.rlike(_INTEGER), _cast(_T.STRING, text, written, _INTEGERS)))
        .when(written.isin(*_FLOATS), F.when(text.rlike(_FLOATING), _cast(_T.STRING, text, written, _FLOATS)))
        .when(written == _T.BOOLEAN, text.rlike(_TRUE).cast("string"))
        .when(text.rlike(_CHAR), text)
    )


def _cast(read: ValueType, text: Column, written: Column, family: tuple[ValueType, ...]) -> Column:
    """Text as the number it was written as, and that as ``read``; a string at once as ``read``.

    Spark's cast is Java's ``valueOf`` once blanks are kept from integers, and ``inf`` and ``nan`` from the others.
    """
    parsed_as = {source: source for source in family if read in READABLE_AS[source]}
    if read in family:
        parsed_as[_T.STRING] = read
    cases = [
        (written == source, text.try_cast(SPARK_TYPES[type_]).cast(SPARK_TYPES[read]))
        for source, type_ in parsed_as.items()
    ]
    return _first(cases, F.lit(None))


@cache
def _digits() -> tuple[str, str]:
    """The decimal digits of 16 bits beyond ASCII, and what each means."""
    found = [c for c in map(chr, range(0x80, 0x10000)) if unicodedata.category(c) == "Nd"]
    return "".join(found), "".join(str(unicodedata.decimal(c)) for c in found)


# --- writes of a batch ------------------------------------------------------------------------------------


def write_id(batch: DataFrame, number: int, name: str = "", *, query: str | None = None) -> str:
    """Return the option ``writeId`` of an exactly-once write in ``foreachBatch``: ``query:NAME/BATCH``, or with the
    name of the write ``query:NAME/BATCH/WRITE``.

    Call it in the function that ``foreachBatch`` calls, with the two arguments of that function; threads of the
    function may use the result. ``name`` distinguishes several writes of one batch. ``query`` names the query. Give
    it where Spark does not name the query: on Spark Connect, and in other threads. The name stays the same when the
    query starts again from its checkpoint. A query with another checkpoint needs another name, and no two queries
    share a name.
    """
    owner = _running_query(batch, number) if query is None else query
    found = f"query:{owner}/{number}" + (f"/{name}" if name else "")
    if identity_of(found) is None:
        raise InvalidOptionError(
            f"write_id was called with query {owner!r} and number {number!r}.",
            "query is 1 to 100 letters, digits and any of . _ -, and number is the batch id that foreachBatch gives.",
        )
    return found


def _running_query(batch: DataFrame, number: int) -> str:
    """The id of the query whose batch is processed in this thread."""
    try:
        context = batch.sparkSession.sparkContext
    except AttributeError:  # Spark Connect
        context = None
    names = ("sql.streaming.queryId", "streaming.sql.batchId")
    query, current = (context.getLocalProperty(name) if context else None for name in names)
    if query is None:
        raise WriteIdentityError(
            "write_id was called where Spark does not name the query that the batch belongs to: on Spark Connect, or in"
            " another thread than the one that calls the function of foreachBatch.",
            "Call it in that thread, or give it query=NAME: a name that only this query has.",
        )
    if current != str(number):
        raise WriteIdentityError(
            f"write_id was called for batch {number}, and this thread processes batch {current}.",
            "Give it the batch id that foreachBatch gives.",
        )
    return str(query)


# --- selectors ----------------------------------------------------------------------------------


def selector_for(condition: str, schema: str | StructType | None = None) -> str:
    """Return the JMS selector that matches the messages whose rows a SQL condition keeps. It needs no Spark session.

        .option("selector", selector_for("JMSPriority > 4 AND orderId = 7"))

    ``schema`` is the schema of the read, and has the types of the properties: ``"orderId INT, region STRING"``. Without
    it, the literals show the types. If a selector cannot have a part of the condition, such as a function, arithmetic
    or column ``text``, the function raises ``UnsupportedConditionError``, which names the part: filter by it in Spark.
    """
    if isinstance(schema, StructType):
        return selector_text(condition, {field.name: field.dataType.simpleString() for field in schema})
    return selector_text(condition, None if schema is None else declared_types(schema))
