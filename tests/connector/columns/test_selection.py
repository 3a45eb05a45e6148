"""What a selector lets through, and what it must not drop."""

import pickle
from contextlib import nullcontext

import pyarrow as pa
import pytest
import selector_strategies

from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.columns.selection import SelectorOptions, selection
from pyspark_jms.errors import InvalidSelectorError, SelectorIgnoredError, SelectorResidualError, UnsupportedError
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.stomp.dialects import DIALECTS

QUEUE, TOPIC = DestinationKind.QUEUE, DestinationKind.TOPIC
RESIDUAL = "JMSRedelivered = FALSE AND color = 'red'"  # Artemis' selectors do not see JMSRedelivered


def rows(*properties, redelivered=False, types=None):
    """``types``: of the properties of every row, as an envelope or AMQP has them."""
    stated = None if types is None else list(types.items())
    return pa.RecordBatch.from_pylist(
        [
            {"sequence": n, "properties": list(p.items()), "JMSRedelivered": redelivered, "property_types": stated}
            for n, p in enumerate(properties)
        ],
        schema=ARROW_SCHEMA,
    )


def sequences(batch):
    return batch.column("sequence").to_pylist()


def test_the_broker_gets_its_own_words():
    assert selection(SelectorOptions("NOT JMSPriority > 4"), "artemis", "artemis").text == "NOT (AMQPriority > 4)"


def test_conversion_is_asked_for_by_the_brokers_prefix():
    chosen = selection(SelectorOptions("convert_string_expressions:n > 5"), "artemis", "artemis")
    assert chosen.text.startswith("convert_string_expressions:n > 5")
    assert sequences(chosen.apply(rows({"n": "6"}, {"n": "7"}), QUEUE)) == [0, 1]
    chosen = selection(SelectorOptions("convert_string_expressions:n > JMSPriority"), "artemis", "artemis")
    assert chosen.text == "convert_string_expressions:n > AMQPriority"


@pytest.mark.parametrize("dialect", ["artemis", "artemis-amqp", "amqp", None])
def test_spark_converts_the_part_that_stays_with_it(dialect):
    options = SelectorOptions("convert_string_expressions:n / 2 = 3 AND m > 5", in_spark="residual")
    chosen = selection(options, "any", dialect)
    batch = rows({"n": "6", "m": "7"}, {"n": "x", "m": "7"}, types={"n": "string", "m": "string"})
    # The result of a calculation with a text is not computed, so every row is kept.
    assert sequences(chosen.apply(batch, QUEUE)) == [0, 1]
    chosen = selection(SelectorOptions("convert_string_expressions:5 < n OR n / 0 = 1", "residual"), "any", dialect)
    assert 0 in sequences(chosen.apply(batch, QUEUE))


def test_an_invalid_selector_shows_the_place():
    with pytest.raises(InvalidSelectorError, match=r"(?s)^\[JMS_INVALID_SELECTOR\] .*color == 'red'\n +\^") as caught:
        selection(SelectorOptions("color == 'red'"), "artemis", "artemis")
    assert str(caught.value).count("JMS_INVALID_SELECTOR") == 1


@pytest.mark.parametrize("shape", selector_strategies.NESTED, ids=list(selector_strategies.NESTED))
@pytest.mark.parametrize("broker", ["artemis", "classic", "rabbitmq"])
def test_nesting_is_refused_before_it_overflows_a_stack(shape, broker):
    words = DIALECTS[broker].selector_dialect
    nested = selector_strategies.NESTED[shape]
    with pytest.raises(InvalidSelectorError, match=r"\[JMS_INVALID_SELECTOR\] The selector nests .* more than 256"):
        selection(SelectorOptions(nested(3000), in_spark="residual"), broker, words)
    deepest = selection(SelectorOptions(nested(256), in_spark="residual"), broker, words)
    deepest.apply(rows({"a": "1"}), TOPIC)


@pytest.mark.parametrize("text", ["SELECT * FROM orders WHERE color = 'red'", "where color = 'red'"])
def test_a_statement_is_told_from_a_selector(text):
    with pytest.raises(InvalidSelectorError, match=r"(?s)\[JMS_INVALID_SELECTOR\].*WHERE: color = 'red'"):
        selection(SelectorOptions(text), "artemis", "artemis")


def test_a_part_that_stays_is_refused_or_sparks():
    for in_spark in ("check", "off"):
        with pytest.raises(SelectorResidualError, match=r"_RESIDUAL\].*JMSRedelivered.*selectorInSpark=residual"):
            selection(SelectorOptions(RESIDUAL, in_spark), "artemis", "artemis")
    split = selection(SelectorOptions(RESIDUAL, in_spark="residual"), "artemis", "artemis")
    assert split.text == "color = 'red'"
    assert split.may_drop(QUEUE)
    assert sequences(split.apply(rows({"color": "red"}, {"color": "red"}), QUEUE)) == [0, 1]
    assert sequences(split.apply(rows({"color": "red"}, redelivered=True), QUEUE)) == []
    with pytest.raises(SelectorIgnoredError):  # the other part is checked
        split.apply(rows({"color": "blue"}), QUEUE)


@pytest.mark.parametrize(
    ("broker", "fact"), [("artemis", "artemis cannot"), ("auto", "No broker that broker=auto may")]
)
def test_before_the_broker_is_known_no_broker_is_accused(broker, fact):
    given = {"brokerUrl": "amqp://localhost:5672", "user": "u", "password": "p", "queue": "q", "broker": broker}
    with pytest.raises(SelectorResidualError, match=rf"_RESIDUAL\] {fact}"):
        SourceOptions.parse(given | {"selector": "JMSReplyTo = 'x'"})


def test_what_marks_an_envelope_is_the_brokers_business_alone():
    chosen = selection(SelectorOptions("spark_jms_body = 'map' AND n = 1"), "artemis", "artemis")
    assert chosen.text == "spark_jms_body = 'map' AND n = 1"
    assert sequences(chosen.apply(rows({"n": "1"}), QUEUE)) == [0]  # rows no longer have it
    assert not chosen.may_drop(TOPIC)
    with pytest.raises(SelectorResidualError, match=r"JMS_SELECTOR_RESIDUAL.*spark_jms_body.*body_type"):
        selection(
            SelectorOptions("JMSRedelivered = FALSE OR spark_jms_body = 'map'", in_spark="residual"),
            "artemis",
            "artemis",
        )


@pytest.mark.parametrize("dialect", ["artemis", "classic", "artemis-amqp", "classic-amqp"])
def test_a_property_that_rows_do_not_show_is_the_brokers_business_alone(dialect):
    chosen = selection(SelectorOptions("JMS_AMQP_NATIVE = 'true' AND n = 1"), "any", dialect)
    assert sequences(chosen.apply(rows({"n": "1"}, types={"n": "int"}), QUEUE)) == [0]


@pytest.mark.parametrize("dialect", ["artemis", "classic", "artemis-amqp", "classic-amqp", "amqp"])
def test_spark_cannot_evaluate_a_property_that_rows_do_not_show(dialect):
    with pytest.raises(SelectorResidualError, match="about JMS_AMQP_NATIVE, and rows do not have"):
        selection(SelectorOptions("JMS_AMQP_NATIVE = 'true' OR n / 2 = 3", in_spark="residual"), "any", dialect)


def test_what_the_broker_may_have_meant_is_kept():
    chosen = selection(SelectorOptions("n > 5 OR NOT (s = '1')"), "artemis", "artemis")
    batch = rows({"n": "7"}, {"n": "6.5"}, {"s": "1"}, {"s": "2"})
    assert sequences(chosen.apply(batch, QUEUE)) == [0, 1, 2, 3]  # s may have been the number 1: NOT (1 = '1') is true


def test_what_cannot_match_stops_a_queue_and_is_dropped_from_a_subscription():
    chosen = selection(SelectorOptions("color = 'red'"), "artemis", "artemis")
    batch = rows({"color": "red"}, {"color": "blue"}, {})
    assert sequences(chosen.apply(batch, TOPIC)) == [0]
    assert chosen.may_drop(TOPIC)
    assert not chosen.may_drop(QUEUE)
    with pytest.raises(SelectorIgnoredError, match=r"JMS_SELECTOR_IGNORED\] 2 of 3 messages") as caught:
        chosen.apply(batch, QUEUE)
    assert "blue" not in str(caught.value)
    assert "journal" in caught.value.remedy


TYPED = [
    ("boolean", "true", "p = TRUE"),
    ("byte", "-9", "p = -9"),
    ("short", "9", "p < 10"),
    ("int", "9", "p = 9"),
    ("long", "9", "p BETWEEN 9 AND 10"),
    ("float", "1.5", "p = 1.5"),
    ("double", "1.0E10", "p > 1e9"),
    ("double", "NaN", "p <> 1.5"),
]


@pytest.mark.parametrize("broker", ["artemis", "classic", "rabbitmq"])
@pytest.mark.parametrize(("kind", "text", "by_type"), TYPED)
def test_over_stomp_a_typed_property_is_compared_as_the_text_that_the_broker_has(broker, kind, text, by_type):
    """And as of its type: the producer may have sent the type and the envelope."""
    batch, words = rows({"p": text}, types={"p": kind}), DIALECTS[broker].selector_dialect
    for selector in (f"p = '{text}'", f"p IN ('x', '{text}')", f"p LIKE '{text[:1]}%'", by_type):
        for by in (selector, f"({selector}) AND JMSXUserID IS NULL", f"({selector}) OR JMSXUserID = 'x'"):
            chosen = selection(SelectorOptions(by, in_spark="residual"), broker, words)
            assert sequences(chosen.apply(batch, QUEUE)) == [0], by
    with pytest.raises(SelectorIgnoredError) if words else nullcontext():
        chosen = selection(SelectorOptions("p = 'other'", in_spark="residual"), broker, words)
        assert sequences(chosen.apply(batch, QUEUE)) == []


@pytest.mark.parametrize("dialect", ["artemis-amqp", "classic-amqp"])
@pytest.mark.parametrize(("kind", "text", "by_type"), TYPED)
def test_over_amqp_a_property_is_compared_as_of_its_type(dialect, kind, text, by_type):
    batch = rows({"p": text}, types={"p": kind})
    assert sequences(selection(SelectorOptions(by_type), "any", dialect).apply(batch, QUEUE)) == [0]
    with pytest.raises(SelectorIgnoredError):
        selection(SelectorOptions(f"p = '{text}'"), "any", dialect).apply(batch, QUEUE)


def test_a_time_of_expiration_over_amqp_is_the_brokers_own():
    """Artemis counts a time to live from the arrival, and the row from the time of sending."""
    chosen = selection(SelectorOptions("JMSExpiration > 5"), "artemis", "artemis-amqp")
    assert chosen.text == "AMQExpiration > 5"
    assert sequences(chosen.apply(rows({}), QUEUE)) == [0]
    with pytest.raises(SelectorIgnoredError):
        selection(SelectorOptions("JMSExpiration > 5"), "artemis", "artemis").apply(rows({}), QUEUE)


@pytest.mark.parametrize("dialect", ["artemis-amqp", "classic-amqp"])
@pytest.mark.parametrize("header", ["JMSMessageID", "JMSCorrelationID"])
def test_an_id_that_the_broker_spells_otherwise_is_not_compared_again(dialect, header):
    """To Artemis the message-id "plain" is ID:plain; to Classic a uuid as correlation-id has no prefix."""
    chosen = selection(SelectorOptions(f"{header} NOT LIKE 'ID:AMQP%'"), dialect.partition("-")[0], dialect)
    spelled = ["ID:AMQP_NO_PREFIX:plain", "ID:AMQP_UUID:00000000-0000-0000-0000-000000000007"]
    batch = pa.RecordBatch.from_pylist([{"sequence": n, header: id_} for n, id_ in enumerate(spelled)], ARROW_SCHEMA)
    assert sequences(chosen.apply(batch, QUEUE)) == [0, 1]
    chosen = selection(SelectorOptions(f"{header} = 'ID:b'"), dialect.partition("-")[0], dialect)
    with pytest.raises(SelectorIgnoredError):
        chosen.apply(pa.RecordBatch.from_pylist([{header: "ID:a"}], ARROW_SCHEMA), QUEUE)


@pytest.mark.parametrize("dialect", ["artemis-amqp", "classic-amqp"])
@pytest.mark.parametrize(
    "text", ["NOT (u = '00000000-0000-0000-0000-000000000007')", "l IS NOT NULL", "n = 7", "n = '7'"]
)
def test_over_amqp_a_property_of_a_type_that_only_amqp_has_is_not_compared_again(dialect, text):
    properties = {"u": "00000000-0000-0000-0000-000000000007", "l": None, "n": "8"}
    batch = rows(properties, types={"u": "uuid", "l": "list", "n": "uint"})
    assert sequences(selection(SelectorOptions(text), dialect.partition("-")[0], dialect).apply(batch, QUEUE)) == [0]
    chosen = selection(SelectorOptions(f"({text}) AND color = 'red'"), dialect.partition("-")[0], dialect)
    with pytest.raises(SelectorIgnoredError):
        chosen.apply(batch, QUEUE)


def test_the_check_can_be_left_out():
    chosen = selection(SelectorOptions("color = 'red'", in_spark="off"), "artemis", "artemis")
    assert sequences(chosen.apply(rows({"color": "blue"}), QUEUE)) == [0]
    assert not chosen.may_drop(TOPIC)


def test_a_selector_travels_to_executors():
    assert pickle.loads(pickle.dumps(SelectorOptions(RESIDUAL, in_spark="residual"))) == SelectorOptions(
        RESIDUAL, in_spark="residual"
    )


def test_a_conversion_that_the_broker_does_not_have_is_refused():
    with pytest.raises(UnsupportedError, match=r"\[JMS_UNSUPPORTED\].*strings as numbers"):
        selection(SelectorOptions("convert_string_expressions:n = 5"), "classic", "classic-amqp")


@pytest.mark.parametrize(
    ("dialect", "text", "columns"),
    [
        ("artemis", "JMSType = 'a' AND AMQPriority > 4", {"JMSType", "JMSPriority"}),
        ("artemis", "region = 'EU' OR JMSType = 'a'", {"JMSType", "properties", "property_types"}),
        ("classic", "region = 'EU' OR JMSType = 'a'", {"JMSType", "properties", "property_types"}),
    ],
)
def test_the_columns_that_decide_about_rows_are_known(dialect, text, columns):
    broker = DIALECTS[dialect].selector_dialect
    assert selection(SelectorOptions(text), dialect, broker).columns() == columns | {"body_error"}
    assert selection(SelectorOptions(text, in_spark="off"), dialect, broker).columns() == set()


@pytest.mark.parametrize("null", [{"region": None}, {}], ids=["null", "absent"])
def test_a_property_that_is_null_is_absent(null):
    chosen = selection(SelectorOptions("region = 'EU' OR region IS NULL"), "artemis", "artemis-amqp")
    assert sequences(chosen.apply(rows({"region": "EU"}, null, types={"region": "string"}), QUEUE)) == [0, 1]
    with pytest.raises(SelectorIgnoredError, match="1 of 2 messages"):
        chosen.apply(rows({"region": "US"}, null, types={"region": "string"}), QUEUE)


@pytest.mark.parametrize(
    ("dialect", "in_spark"), [("artemis", "check"), (None, "residual")], ids=["pushed", "residual"]
)
def test_a_row_whose_message_has_a_time_that_no_column_holds_may_match(dialect, in_spark):
    chosen = selection(SelectorOptions("JMSTimestamp > 1000 AND a = 'x'", in_spark=in_spark), "any", dialect)
    made = rows({"a": "x"}, {"a": "x"}, {"a": "y"})
    assert sequences(chosen.apply(made, TOPIC)) == []
    asked = []
    assert sequences(chosen.apply(made, TOPIC, lambda row: bool(asked.append(row)) or row == 1)) == [1]
    assert asked == [0, 1, 2]


def test_on_a_broker_without_selectors_a_row_with_a_fault_is_kept():
    chosen = selection(SelectorOptions("color = 'red'", in_spark="residual"), "rabbitmq", None)
    made = rows({"color": "red"}, {}, {"color": "blue"}).to_pylist()
    made[1]["body_error"] = "property 'color' is not valid UTF-8"
    assert sequences(chosen.apply(pa.RecordBatch.from_pylist(made, schema=ARROW_SCHEMA), QUEUE)) == [0, 1]


def test_a_row_with_a_fault_may_lack_what_the_broker_compared():
    """The broker reads a property whose name or value the row cannot have."""
    plain = rows({"color": "red"}, {}).to_pylist()
    plain[1]["body_error"] = "property 'color' is not valid UTF-8"
    batch = pa.RecordBatch.from_pylist(plain, schema=ARROW_SCHEMA)
    chosen = selection(SelectorOptions("color = 'red'"), "artemis", "artemis")
    assert "body_error" in chosen.columns()
    for kind in (QUEUE, TOPIC):
        assert sequences(chosen.apply(batch, kind)) == [0, 1]
    with pytest.raises(SelectorIgnoredError):
        chosen.apply(rows({"color": "red"}, {}), QUEUE)
