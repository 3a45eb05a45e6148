"""What a column gives is what ``convert`` gives: every cell, every error, on a real Spark."""

import math
import struct

import pytest
from generated import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import SparkRuntimeException
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructType

from pyspark_jms.columns.schema import DDL
from pyspark_jms.errors import (
    InvalidOptionError,
    JMSError,
    MessageEOFError,
    MessageFormatError,
    UnsupportedConditionError,
    WriteIdentityError,
)
from pyspark_jms.functions import jms_map, jms_property, jms_stream, jms_text, selector_for, write_id
from pyspark_jms.jms.conversions import ValueType, convert, render

TYPES = [*ValueType]
PROPERTY_TYPES = TYPES[:8]
ROW = (
    "id int, properties map<string,string>, property_types map<string,string>,"
    " map map<string,struct<type:string,value:string>>, stream array<struct<type:string,value:string>>"
)
SPARK_TYPES = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "string", "binary"]

TEXTS = [
    *(None, "", "true", "FALSE", "yes", " true", "0", "-0", "+7", "007", "7", "127", "128", "-128", "-129"),
    *("32767", "32768", "2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "99999999999999999999", " 7", "7 ", "\x007", "7\n", "7\u00a0", "1_0", "0x10", "7L"),
    *("--7", "+", "-", "٣", "-٣7", "３", "\U0001d7d8", "1.0", "1.", ".5", "1e10", "1E10", "1.0E10", " 1.5\t"),
    *("\x001.5", "1.5f", "1.5D", "1.5ff", "0x1p3", "0X1.8P-1f", "0x1", "NaN", "nan", "-NaN", "Infinity"),
    *("-Infinity", "+Infinity", "infinity", "inf", "1e39", "1e999", "-0.0", "4.9E-324", "1e-400", "0.1", "16777217"),
    *("16777217.0000000000000000001", "9999999.0", "1e7", "0.001", "1e-4", "1,5", "1 5", "c", "cc", "\0", "\n"),
    *("\uffff", "💰", "é", "AA==", "AAA=", "AAAA", "A===", "AA=A", "AAAA\n", "=", "====", "AB==", "+/+/"),
]
WRITTEN = [*TYPES, None, "Integer", ""]
CELLS = [(text, written) for text in TEXTS for written in WRITTEN]


def outcome(text, written, read):
    try:
        return convert(text, written, read)
    except JMSError as error:
        return error


def rows(spark, cells):
    """A row a cell: the value is property ``x``, map item ``x`` and the first element of the stream."""
    data = [(i, {"x": t}, {"x": w}, {"x": (w, t)}, [(w, t)]) for i, (t, w) in enumerate(cells)]
    return spark.createDataFrame(data, ROW)


def columns(df, *, null_on_error=True):
    """Name -> (type read, column), of every type by every function."""
    made = {}
    for read in TYPES:
        made[f"map_{read}"] = read, jms_map(df, "x", read, null_on_error=null_on_error)
        made[f"stream_{read}"] = read, jms_stream(df, 0, read, null_on_error=null_on_error)
        if read in PROPERTY_TYPES:
            made[f"property_{read}"] = read, jms_property(df, "x", read, null_on_error=null_on_error)
    return made


def same(found, expected, *, old_java=False):
    if isinstance(expected, float) and isinstance(found, float):
        return struct.pack("d", found) == struct.pack("d", expected) or (math.isnan(found) and math.isnan(expected))
    if found != expected and old_java and isinstance(expected, str) and isinstance(found, str):
        return len(expected) <= len(found) and float(found) == pytest.approx(float(expected), rel=1e-6, abs=1e-44)
    return type(found) is type(expected) and found == expected


def check(spark, cells):
    df = rows(spark, cells)
    made = columns(df)
    old = spark._jvm.java.lang.Runtime.version().feature() < 19
    answers = df.select("id", *[column.alias(name) for name, (_, column) in made.items()]).collect()
    assert len(answers) == len(cells)
    for answer in answers:
        text, written = cells[answer["id"]]
        for name, (read, _) in made.items():
            # A property that is a char is one of AMQP: JMS has no such property.
            expected = outcome(text, "string" if name.startswith("property") and written == "char" else written, read)
            expected = None if isinstance(expected, JMSError) else expected
            found = bytes(answer[name]) if isinstance(answer[name], bytearray) else answer[name]
            floating = old and read == "string" and written in {"float", "double"}
            assert same(found, expected, old_java=floating), (name, written, text)


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.deep)])
def test_every_cell_gives_what_convert_gives(spark, set_spark, ansi):
    set_spark("spark.sql.ansi.enabled", ansi)
    check(spark, CELLS)


_numbers = st.one_of(
    st.integers(-(1 << 64), 1 << 64).map(str),
    st.floats().map(lambda number: render(number, ValueType.DOUBLE)),
    st.floats(width=32).map(lambda number: render(number, ValueType.FLOAT)),
    st.text("0123456789+-.eExXpPfFdDNaIinty \t\0٣_", max_size=10),
)
_texts = st.one_of(_numbers, st.text(max_size=3), st.text("AQgw+/=", max_size=8), st.sampled_from(TEXTS))


@pytest.mark.deep
@settings(max_examples=examples(4), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(_texts, st.sampled_from(WRITTEN)), min_size=200, max_size=600))
def test_generated_cells_give_what_convert_gives(spark, cells):
    check(spark, cells)


FAILING = [
    (text, written, read)
    for read in TYPES
    for written, text in [*((w, "x=") for w in TYPES), (None, "x="), ("no type", "1"), ("int", None)]
    if isinstance(outcome(text, written, read), JMSError)
]


def failure(df, column):
    with pytest.raises(SparkRuntimeException) as caught:
        df.select(column).collect()
    return str(caught.value)


@pytest.fixture(scope="module")
def failing(spark):
    """Every failing cell as a row of constants, which Spark evaluates without a job."""
    made = [f"({i}, {_sql(written)}, {_sql(text)})" for i, (text, written, _) in enumerate(FAILING)]
    values = spark.sql(f"SELECT * FROM VALUES {', '.join(made)} AS cells(id, type, value)")
    element = "named_struct('type', type, 'value', value)"
    return values.selectExpr(
        "id",
        "map('x', value) AS properties",
        "map('x', type) AS property_types",
        f"map('x', {element}) AS map",
        f"array({element}) AS stream",
    )


def _sql(text):
    return "CAST(NULL AS STRING)" if text is None else f"'{text}'"


def _failing():
    """The first cell of each type read; the others are deep."""
    seen = set()
    for index, cell in enumerate(FAILING):
        yield pytest.param(index, *cell, marks=pytest.mark.deep if cell[2] in seen else ())
        seen.add(cell[2])


@pytest.mark.parametrize(("index", "text", "written", "read"), [*_failing()])
def test_an_error_is_converts_and_says_where(failing, index, text, written, read):
    error = outcome(text, written, read)
    reason = str(type(error)(f"Map item 'x': {error.fact}", error.remedy))
    df = failing.where(f"id = {index}")
    assert reason in failure(df, jms_map(df, "x", read))
    assert reason.replace("Map item 'x'", "Stream element 0") in failure(df, jms_stream(df, 0, read))
    if read in PROPERTY_TYPES and written != "char":
        assert reason.replace("Map item", "Property") in failure(df, jms_property(df, "x", read))


def test_types_of_the_columns(spark):
    df = spark.createDataFrame([], DDL)
    expected = dict(zip(TYPES, SPARK_TYPES, strict=True))
    for null_on_error in (True, False):
        made = columns(df, null_on_error=null_on_error).values()
        fields = df.select(*[column for _, column in made]).schema
        assert [field.dataType.simpleString() for field in fields] == [expected[read] for read, _ in made]


def test_names_of_the_columns(spark):
    df = spark.createDataFrame([], DDL)
    made = df.select(jms_property(df, "price", "int"), jms_map(df, "a.b", "int"), jms_stream(df, 3, "int"))
    assert made.columns == ["price", "a.b", "stream[3]"]


def one(df, *made):
    return tuple(df.select(*made).collect()[0])


def test_what_is_absent_is_a_null(spark):
    df = spark.createDataFrame([(1, {}, {}, {}, [])], ROW)
    assert one(df, jms_property(df, "x", "boolean"), jms_property(df, "x", "string")) == (False, None)
    assert one(df, jms_map(df, "x", "boolean"), jms_map(df, "x", "bytes")) == (False, None)
    assert "[JMS_NUMBER_FORMAT] Property 'x': A null, or an absent value" in failure(df, jms_property(df, "x", "int"))
    assert "[JMS_NULL_VALUE] Map item 'x': A null, or an absent value" in failure(df, jms_map(df, "x", "double"))


def test_a_message_without_properties_has_none_and_one_without_such_a_body_is_null(spark):
    df = spark.createDataFrame([(1, None, None, None, None)], ROW)
    assert one(df, jms_property(df, "x", "boolean"), jms_property(df, "x", "string")) == (False, None)
    assert "[JMS_NUMBER_FORMAT]" in failure(df, jms_property(df, "x", "int"))
    made = [jms_map(df, "x", read) for read in TYPES] + [jms_stream(df, 0, read) for read in TYPES]
    assert set(one(df, *made)) == {None}


@pytest.mark.deep
def test_beyond_the_end_of_a_stream(spark):
    df = spark.createDataFrame([(1, {}, {}, {}, [("int", "1"), None])], ROW)
    assert one(df, jms_stream(df, 0, "long"), jms_stream(df, 1, "string")) == (1, None)
    reason = "[JMS_MESSAGE_EOF] Stream element 2: It is beyond the end of the stream. Ask size(stream) first."
    for read in ("boolean", "int", "string"):
        assert reason in failure(df, jms_stream(df, 2, read))
    assert set(one(df, *[jms_stream(df, 2, read, null_on_error=True) for read in TYPES])) == {None}


def test_refused_before_spark_is_asked(spark):
    df = spark.createDataFrame([], DDL)
    for function, where in ((jms_property, "x"), (jms_map, "x"), (jms_stream, 0)):
        with pytest.raises(MessageFormatError, match=r"\[JMS_MESSAGE_FORMAT\].* boolean, byte, short"):
            function(df, where, "Integer")
    for read in ("char", "bytes"):
        with pytest.raises(MessageFormatError, match=f"property .*{read}"):
            jms_property(df, "x", read)
    with pytest.raises(MessageEOFError, match=r"\b0\b"):
        jms_stream(df, -1, "int")


def test_ways_to_say_where(spark):
    df = rows(spark, [("7", "byte")])
    ways = [
        jms_property(df, "x", "int"),
        jms_property(df.properties, "x", "int"),
        jms_property("properties", "x", "int"),
    ]
    assert one(df, *ways) == (7, 7, 7)
    assert one(df, jms_map(df.map, "x", "int"), jms_map("map", "x", "int")) == (7, 7)
    assert one(df, jms_stream(df.stream, 0, "int"), jms_stream("stream", 0, "int")) == (7, 7)
    renamed = df.selectExpr("properties as p", "property_types as t")
    assert one(
        renamed, jms_property("p", "x", "short", types="t"), jms_property("p", "x", "short", types=renamed.t)
    ) == (7, 7)


def test_without_types_everything_was_written_as_a_string(spark):
    df = rows(spark, [("7", "double")])
    untyped = df.drop("property_types")
    assert one(untyped, jms_property(untyped, "x", "int"), jms_property("properties", "x", "int", types=None)) == (7, 7)
    assert "A value written as double cannot be read as int" in failure(df, jms_property(df, "x", "int"))


def test_a_property_of_a_type_that_only_amqp_has_is_read_as_a_string_is(spark):
    cells = [("7", "uint"), ("7.50", "decimal64"), ("true", "symbol"), ("💰", "char"), (None, "list"), ("7", "ubyte")]
    df = rows(spark, cells)
    reads = ("string", "byte", "double", "boolean")
    found = df.orderBy("id").select(*[jms_property(df, "x", read, null_on_error=True) for read in reads]).collect()
    for (text, _), answer in zip(cells, found, strict=True):
        wanted = [outcome(text, "string", read) for read in reads]
        assert list(answer) == [None if isinstance(value, JMSError) else value for value in wanted]


def test_in_where_and_in_sql(spark):
    df = rows(spark, [(str(n), "int") for n in range(100)])
    kept = df.where((jms_property(df, "x", "long") >= 90) & (jms_map(df, "x", "string") != "95"))
    kept = kept.where(jms_stream("stream", 0, "int") % 2 == 1)
    assert [row.id for row in kept.orderBy("id").collect()] == [91, 93, 97, 99]


@pytest.mark.deep
def test_large_values(spark):
    digits, binary = "0" * 1_000_000 + "7", "QUJD" * 1_000_000
    df = spark.createDataFrame(
        [(1, {"x": digits}, {}, {"x": ("bytes", binary)}, [("string", "1" * 1_000_000 + "x")])], ROW
    )
    assert one(df, jms_property(df, "x", "int")) == (7,)
    assert len(one(df, jms_map(df, "x", "bytes"))[0]) == 3_000_000
    assert one(df, jms_stream(df, 0, "double", null_on_error=True)) == (None,)


def test_a_select_of_five_is_within_what_java_compiles(spark, set_spark):
    """HotSpot interprets a method of more than 8,000 bytes."""
    set_spark("spark.sql.adaptive.enabled", "false")
    data = [(n, {f"p{i}": str(n) for i in range(5)}, {f"p{i}": "int" for i in range(5)}, {}, []) for n in range(3)]
    df = spark.createDataFrame(spark.sparkContext.parallelize(data), ROW)
    plan = df.select(*[jms_property(df, f"p{i}", "int") for i in range(5)])
    stages = plan._jdf.queryExecution().debug().codegenToSeq()
    sizes = [stages.apply(i)._3().maxMethodCodeSize() for i in range(stages.size())]
    assert 0 < max(sizes) < 8000


# --- the body as text --------------------------------------------------------------------------------

BODY = "body_type string, text string, bytes binary, body_error string"
BODIES = [
    (("text", '{"n": 1}', None, None), '{"n": 1}'),
    (("text", "", None, None), ""),
    (("bytes", None, bytearray('{"n": "ä😀"}'.encode()), None), '{"n": "ä😀"}'),
    (("bytes", None, bytearray(b"a\0b"), None), "a\0b"),
    (("bytes", None, bytearray(b""), None), ""),
    (("bytes", None, bytearray(b"\xff\xfe"), None), None),
    (("bytes", None, bytearray(b"ok \xed\xa0\x80"), None), None),  # half of a surrogate pair
    (("object", None, bytearray(b"\xac\xed"), None), None),
    (("object", None, bytearray(b"readable"), None), None),
    (("map", None, bytearray(b"{}"), "it is no envelope"), None),
    (("bytes", None, bytearray(b"cut"), "half of it was lost"), None),
    (("map", None, None, None), None),
    (("message", None, None, None), None),
]


def test_a_body_is_a_text_in_whichever_column_it_arrived(spark):
    df = spark.createDataFrame([row for row, _ in BODIES], BODY).coalesce(1)
    expected = [text for _, text in BODIES]
    assert [row.text for row in df.select(jms_text()).collect()] == expected
    assert [row.text for row in df.select(jms_text(df)).collect()] == expected
    assert df.select(jms_text(df)).columns == ["text"]
    recipe = df.where("body_type = 'bytes' AND body_error IS NULL OR body_type = 'text'")
    sql = recipe.selectExpr("coalesce(text, try_validate_utf8(string(bytes))) AS t", "try_validate_utf8('x') AS ok")
    assert [row.t for row in sql.collect()] == [
        t for (kind, *_, error), t in BODIES if kind in "text bytes" and not error
    ]


def test_json_is_read_from_bytes_and_texts_alike(spark):
    df = spark.createDataFrame([row for row, _ in BODIES[:3]], BODY)
    parsed = df.select(F.from_json(jms_text(), "n string").n).collect()
    assert sorted(row[0] for row in parsed if row[0]) == ["1", "ä😀"]


# --- writes of a batch ------------------------------------------------------------------------------------


def test_an_id_with_a_name_of_the_query_needs_no_spark():
    assert write_id(None, 17, query="orders") == "query:orders/17"
    assert write_id(None, 17, "dead", query="orders") == "query:orders/17/dead"


@pytest.mark.parametrize(("number", "query"), [(-1, "orders"), ("x", "orders"), (1, ""), (1, "a b"), (1, "a/b")])
def test_an_id_that_no_write_can_have(number, query):
    with pytest.raises(InvalidOptionError, match=r"write_id was called with query"):
        write_id(None, number, query=query)


def test_outside_of_a_batch_the_query_must_be_named(spark):
    with pytest.raises(WriteIdentityError, match=r"\[JMS_WRITE_IDENTITY\] .*Spark Connect.*query=NAME"):
        write_id(spark.range(1), 0)


def test_the_batch_is_the_one_that_the_thread_processes(spark):
    names, context = ("sql.streaming.queryId", "streaming.sql.batchId"), spark.sparkContext
    for name, text in zip(names, ("0f-a", "7"), strict=True):
        context.setLocalProperty(name, text)
    try:
        assert write_id(spark.range(1), 7, "dead") == "query:0f-a/7/dead"
        with pytest.raises(WriteIdentityError, match="batch 8, and this thread processes batch 7"):
            write_id(spark.range(1), 8)
    finally:
        for name in names:
            context.setLocalProperty(name, None)


@pytest.mark.parametrize("schema", ["text STRING, orderId INT, region STRING", None, "StructType"])
def test_a_selector_of_a_condition_needs_no_session(schema):
    if schema == "StructType":
        schema = StructType().add("text", StringType()).add("orderId", IntegerType()).add("region", StringType())
    selector = selector_for("NOT (JMSPriority <= 4 OR orderId <> 7) AND region LIKE 'E%'", schema)
    assert selector == "JMSPriority > 4 AND orderId = 7 AND region LIKE 'E%'"
    with pytest.raises(UnsupportedConditionError, match=r"\[JMS_UNSUPPORTED_CONDITION\] .*upper\( .*where\(\)"):
        selector_for("orderId = 7 AND upper(region) = 'EU'", schema)
