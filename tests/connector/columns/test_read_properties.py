"""Properties as columns of a type: the conversions of JMS, and rows with the columns that are asked for."""

from datetime import UTC, datetime
from decimal import Decimal, localcontext

import pyarrow as pa
import pytest
from generated import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyspark_jms.columns.read_properties import asked_rows, body_errors, read_property
from pyspark_jms.columns.schema import ARROW_SCHEMA, WantedColumns, read_columns
from pyspark_jms.errors import MessageError
from pyspark_jms.jms.conversions import READABLE_AS, ValueType, convert
from pyspark_jms.sentences import MAX_FAULTS_SHOWN

TIMESTAMP = ARROW_SCHEMA.field("JMSTimestamp").type
TARGETS = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
}
USUAL = ["0", "7", "-3", "127", "128", "-32769", "2147483648", "9223372036854775807", "9223372036854775808", "true"]
UNUSUAL = [
    "+5",
    "007",
    "-0",
    "",
    " 7",
    "7 ",
    "x",
    "1e2",
    "1E10",
    "1.5",
    "-1.50",
    "NaN",
    "Infinity",
    "0x1p3",
    "1.5f",
    "TRUE",
]
UNUSUAL += ["faLse", "٣", "1_0", "3.4028236e38", "1e-400", "16777217", "0.1", "a\nb", "1\n", "\x00"]
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(USUAL + UNUSUAL),
    st.integers(-(1 << 65), 1 << 65).map(str),
    st.floats().map(repr),
    st.text(),
)
AMQP_ONLY = ["uint", "timestamp", "decimal32", "uuid"]


def read(texts, types, wanted):
    return read_property("n", pa.array(texts, pa.string()), pa.array(types, pa.string()), wanted)


def by_the_table(text, written, target):
    """What ``convert`` gives for one value, in the precision of the column."""
    if text is None:
        return None
    try:
        return convert(text, None if written in AMQP_ONLY else written, target)
    except MessageError:
        return MessageError


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(TEXTS, st.sampled_from([None, *TARGETS, *AMQP_ONLY])), max_size=15),
    st.sampled_from(list(TARGETS)),
    st.booleans(),
)
def test_each_value_is_what_the_conversions_of_jms_give(values, target, alike):
    if alike:
        values = [(text, values[0][1]) for text, _ in values]
    texts, types = [text for text, _ in values], [written for _, written in values]
    column, reasons = read(texts, types, TARGETS[target])
    assert column.type == TARGETS[target]
    column.validate(full=True)
    wanted = [by_the_table(text, written, target) for text, written in values]
    assert set(reasons) == {row for row, value in enumerate(wanted) if value is MessageError}
    given = pa.array([None if value is MessageError else value for value in wanted], TARGETS[target])
    assert str(column.to_pylist()) == str(given.to_pylist())  # NaN is like NaN, and 0.0 unlike -0.0


@pytest.mark.parametrize("written", [None, *TARGETS])
def test_what_the_table_does_not_allow_names_both_types(written):
    for target, kind in TARGETS.items():
        column, reasons = read(["1"], [written], kind)
        if written is None or ValueType(target) in READABLE_AS[ValueType(written)]:
            assert (column.null_count, reasons) == (0, {})
        else:
            assert reasons == {0: f"property 'n' was written as {written}, which is not readable as {target}"}


def test_a_text_that_does_not_fit_is_never_shown():
    assert read(["s3cret", "5"], [None, None], pa.int32()) == (
        pa.array([None, 5], pa.int32()),
        {0: "property 'n' is not an int"},
    )


@pytest.mark.parametrize(
    ("text", "written", "value"),
    [
        ("0", "long", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1760000000123", None, datetime(2025, 10, 9, 8, 53, 20, 123000, tzinfo=UTC)),
        ("1760000000123", "timestamp", datetime(2025, 10, 9, 8, 53, 20, 123000, tzinfo=UTC)),
        ("7", "int", datetime(1970, 1, 1, microsecond=7000, tzinfo=UTC)),
        ("-62135596800000", "long", datetime(1, 1, 1, tzinfo=UTC)),
        ("-62135596800001", "long", "property 'n' is not a timestamp"),
        ("9223372036854775807", "long", "property 'n' is not a timestamp"),
        ("2025-10-09", None, "property 'n' is not a timestamp"),
        ("1.5", "double", "property 'n' was written as double, which is not readable as timestamp"),
    ],
)
def test_a_timestamp_is_a_long_of_milliseconds(text, written, value):
    column, reasons = read([text], [written], TIMESTAMP)
    assert [reasons.get(0, column[0].as_py())] == [value]


NOT_EXACT = "property 'n' is not an exact decimal(5,2)"


@pytest.mark.parametrize(
    ("text", "written", "value"),
    [
        ("1.5", None, Decimal("1.50")),
        ("-999.99", "decimal64", Decimal("-999.99")),
        ("1E+2", "decimal128", Decimal("100.00")),
        ("1.50000", None, Decimal("1.50")),
        (".5", None, Decimal("0.50")),
        ("007", "long", Decimal("7.00")),
        ("-0", "int", Decimal("0.00")),
        ("1.505", None, NOT_EXACT),
        ("1000", "long", NOT_EXACT),
        ("1e9999", None, NOT_EXACT),
        ("NaN", "decimal32", NOT_EXACT),
        ("", None, NOT_EXACT),
        ("٣", None, NOT_EXACT),
        ("1" * 100_000, None, NOT_EXACT),
        ("x", "long", NOT_EXACT),
        ("0.5", "double", "property 'n' was written as double, which is not readable as decimal"),
        ("true", "boolean", "property 'n' was written as boolean, which is not readable as decimal"),
    ],
)
def test_a_decimal_is_exact_or_null(text, written, value):
    column, reasons = read([text], [written], pa.decimal128(5, 2))
    assert [reasons.get(0, column[0].as_py())] == [value]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3), st.integers(1, 38), st.integers(0, 4))
@example(Decimal("100000000000000000000000001.501"), 29, 2)
def test_decimals_of_any_precision(number, precision, scale):
    wanted = pa.decimal128(precision, min(scale, precision))
    column, reasons = read([str(number)], [None], wanted)
    if reasons:
        assert column.null_count == 1
        too_long = abs(number) >= Decimal(10) ** (precision - wanted.scale)
        with localcontext(prec=60):  # round refuses more digits than the context has, and 28 are the default
            assert too_long or number != round(number, wanted.scale)
    else:
        assert column[0].as_py() == number


# --- rows --------------------------------------------------------------------------------------------


def rows(*given):
    return pa.RecordBatch.from_pylist([dict(row) for row in given], schema=ARROW_SCHEMA)


def asked(batch, *fields):
    made = [pa.field(*field) for field in fields]
    columns = read_columns(made, [str(field.type) for field in made])
    return asked_rows(columns, batch)


def test_rows_have_the_columns_that_are_asked_for_with_their_names():
    batch = rows(
        {"text": "a", "JMSPriority": 4, "properties": [("n", "7"), ("region", "EU")]},
        {"text": "b", "properties": [("region", "US")]},
        {"text": "c", "properties": [("n", "9")]},
        {"properties": [("n", "")], "property_types": [("n", "string")]},
        {"properties": [("n", None)], "property_types": [("n", "list")]},
    )
    found, errors = asked(
        batch, ("TEXT", pa.string()), ("n", pa.int32()), ("jmspriority", pa.int32()), ("N", pa.int32())
    )
    assert found.schema.names == ["TEXT", "n", "jmspriority", "N"]
    assert found.column("TEXT").to_pylist() == ["a", "b", "c", None, None]
    assert found.column("n").to_pylist() == [7, None, 9, None, None]
    assert found.column("jmspriority").to_pylist() == [4, None, None, None, None]
    assert found.column("N").null_count == 5
    assert errors.to_pylist() == [None, None, None, "property 'n' is not an int", None]
    for start, length in ((1, 3), (0, 0), (3, 1)):
        cut, _ = asked(batch.slice(start, length), ("n", pa.int32()), ("text", pa.string()))
        assert cut.to_pydict() == found.select(["n"]).slice(start, length).to_pydict() | {
            "text": found.column("TEXT").to_pylist()[start : start + length]
        }


def test_a_property_may_come_without_the_maps():
    wanted = WantedColumns.of({"text"}, ["n"])
    batch = pa.RecordBatch.from_pylist(
        [{"text": "a", "properties.n": "7"}, {"properties.n": "7", "property_types.n": "long"}], schema=wanted.schema
    )
    found, errors = asked(batch, ("n", pa.int32()), ("text", pa.string()))
    assert found.to_pylist() == [{"n": 7, "text": "a"}, {"n": None, "text": None}]
    assert errors.to_pylist() == [None, "property 'n' was written as long, which is not readable as int"]


def test_reasons_follow_those_of_the_message():
    properties = [(f"p{n:02}", "x") for n in range(12)]
    batch = rows({"properties": properties, "body_error": "text is not valid UTF-8"}, {"properties": properties[:1]})
    found, errors = asked(batch, ("body_error", pa.string()), *((name, pa.int64()) for name, _ in properties))
    assert found.column("body_error").equals(errors)
    first, second = errors.to_pylist()
    assert first.startswith("text is not valid UTF-8; property 'p00' is not a long; ")
    assert first.count("property") == MAX_FAULTS_SHOWN
    assert first.endswith("; and more")
    assert second == "property 'p00' is not a long"


def with_errors(*errors):
    return pa.record_batch({"body_error": pa.array(errors, pa.string())})


def test_only_rows_with_an_error_are_named():
    assert body_errors(with_errors(None, "a", None, "")) == {1: "a", 3: ""}


def test_no_row_is_bad():
    assert body_errors(with_errors(None, None)) == {}


def test_row_numbers_are_those_of_a_slice():
    assert body_errors(with_errors(None, "a", None, "b").slice(1)) == {0: "a", 2: "b"}


def test_a_property_that_is_not_of_its_columns_type_is_an_error_too():
    kind = pa.map_(pa.string(), pa.string())
    texts = {"properties": pa.array([[("n", "x")], [("n", "1")]], kind), "property_types": pa.nulls(2, kind)}
    bad = pa.record_batch({"body_error": pa.nulls(2, pa.string()), **texts})
    columns = read_columns([pa.field("n", pa.int32())], ["int"])
    assert body_errors(bad, columns) == {0: "property 'n' is not an int"}
