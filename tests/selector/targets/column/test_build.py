"""The Spark column against the row-wise evaluator: 20,000 pairs of a generated selector and message in few jobs."""

from random import Random

import pyarrow as pa
import pytest
import selector_strategies
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql.pandas import functions

from jms_selector import arrow, column, parse
from jms_selector.errors import EvaluationError, UnsupportedSelectorError
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.lenient import MAX_NAMES, may_match
from jms_selector.syntax.build import MAX_NESTING
from jms_selector.syntax.tree import conditions, names, postorder
from jms_selector.targets.column.build import MAX_CONDITIONS

pytestmark = pytest.mark.spark

MESSAGES = 340
SELECTORS = 60
PER_JOB = 20
assert MESSAGES * SELECTORS > 20_000

DDL = {
    **dict.fromkeys(("JMSMessageID", "JMSDestination", "JMSCorrelationID", "JMSType", "JMSReplyTo"), "string"),
    **dict.fromkeys(("JMSTimestamp", "JMSExpiration", "JMSDeliveryTime"), "timestamp"),
    "JMSDeliveryMode": "int",
    "JMSPriority": "int",
    "JMSRedelivered": "boolean",
    "properties": "map<string,string>",
    "property_types": "map<string,string>",
}


def frame(spark, rows):
    schema = ", ".join(f"{name} {kind}" for name, kind in DDL.items())
    return spark.createDataFrame([tuple(row[name] for name in DDL) for row in rows], schema).repartition(1)


def generated():
    found = []

    @seed(11)
    @settings(
        max_examples=SELECTORS,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(selector_strategies.selectors(), st.sampled_from(["spec", "spec", "artemis", "classic"]), st.booleans())
    def draw(text, dialect, convert):
        found.append((text, dialect, convert and dialect != "spec"))

    draw()
    return found


@pytest.fixture(scope="module")
def messages():
    random = Random(5)
    return [selector_strategies.message(random, selector_strategies.NAMES) for _ in range(MESSAGES)]


@pytest.mark.deep
def test_a_column_keeps_what_the_evaluator_keeps(spark, messages, report):
    rows = [selector_strategies.row_of(m, types=place % 2 == 0) for place, m in enumerate(messages)]
    numbered = [row | {"JMSDestination": f"queue://{place}"} for place, row in enumerate(rows)]
    df = frame(spark, numbered).cache()
    pairs = 0
    cases = generated()
    for start in range(0, len(cases), PER_JOB):
        part = cases[start : start + PER_JOB]
        columns = [column(text, dialect=d, convert=c).alias(f"c{n}") for n, (text, d, c) in enumerate(part)]
        found = {row[0]: row[1:] for row in df.select("JMSDestination", *columns).collect()}
        for n, (text, dialect, convert) in enumerate(part):
            selector = parse(text)
            for place, row in enumerate(numbered):
                pairs += 1
                kept = found[row["JMSDestination"]][n]
                assert kept == may_match(selector, row, dialect, convert=convert), (text, dialect, row)
                _check_against_types(selector, messages[place], row, dialect, convert, kept)
    report(f"Spark column: {pairs} pairs as the row evaluator has them")


def _check_against_types(selector, message, row, dialect, convert, kept):
    """Where every type is stated the column is exact; elsewhere nothing that matches is dropped."""
    if "JMSDestination" in names(selector.root):
        return
    try:
        truth = evaluate(selector, message, dialect, convert=convert) is True
    except EvaluationError:
        return
    beyond = any(len(names(node)) > MAX_NAMES for node in postorder(selector.root, conditions))
    if row["property_types"] and dialect == "spec" and not beyond:
        assert kept == truth, (selector.text, message)
    assert kept or not truth, (selector.text, message)


def test_ids_that_a_broker_spells_otherwise_are_kept(spark):
    """As :func:`may_match` and the Arrow mask keep them: to Artemis the message-id ``x`` is ID:x."""
    ids = ["ID:AMQP_NO_PREFIX:x", "ID:a", "ID:b", None]
    rows = [dict.fromkeys(DDL) | {"JMSMessageID": id_, "JMSCorrelationID": id_} for id_ in ids]
    texts = ["JMSMessageID = 'ID:b'", "JMSCorrelationID <> 'ID:AMQP_NO_PREFIX:x'"]
    kept = {text: [may_match(parse(text), row, "artemis-amqp") for row in rows] for text in texts}
    assert list(kept.values()) == [[True, False, True, True], [True, True, True, False]]
    schema = [name for name, kind in DDL.items() if kind == "string"]
    batch = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in schema})
    columns = [column(text, dialect="artemis-amqp") for text in texts]
    found = frame(spark, rows).select(*columns).collect()
    for n, (text, expected) in enumerate(kept.items()):
        assert [row[n] for row in found] == arrow.keep(text, batch, "artemis-amqp").to_pylist() == expected


def test_properties_of_a_type_that_only_amqp_has_are_kept(spark):
    """As :func:`may_match` keeps them: the broker may convert such a value in its own way."""
    values = [("7", None), ("7", "string"), ("7", "int"), ("x", "uuid"), ("7", "uint"), (None, "list"), (None, None)]
    rows = [
        dict.fromkeys(DDL) | {"properties": {"p": value}, "property_types": {"p": kind} if kind else {}}
        for value, kind in values
    ]
    cases = [(text, d) for text in ("p = 'y'", "NOT (p = 'x')", "p IS NOT NULL") for d in ("artemis-amqp", "spec")]
    found = frame(spark, rows).select(*[column(text, dialect=d) for text, d in cases]).collect()
    for n, (text, dialect) in enumerate(cases):
        assert [row[n] for row in found] == [may_match(text, row, dialect) for row in rows], (text, dialect)
    assert [row[0] for row in found] == [False, False, False, True, True, True, False]


def test_in_a_stream(spark, tmp_path):
    sent = [(1, "red"), (9, "red"), (9, "blue")]
    messages = [selector_strategies.Message.of(HEADERS, n=n, color=color) for n, color in sent]
    rows = [selector_strategies.row_of(message, types=False) for message in messages]
    frame(spark, rows).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(", ".join(f"{n} {k}" for n, k in DDL.items())).parquet(str(tmp_path / "in"))
    query = (
        stream.where(column("color = 'red' AND n > 5"))
        .writeStream.format("memory")
        .queryName("selected")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.awaitTermination(120)
    (row,) = spark.table("selected").collect()
    assert row.properties == {"color": "red", "n": "9"}


HEADERS = {"JMSDeliveryMode": "PERSISTENT", "JMSTimestamp": 5}


@pytest.mark.deep
def test_long_and_deep(spark):
    row = selector_strategies.row_of(selector_strategies.Message.of(HEADERS, a=2999), types=False)
    df = frame(spark, [row])
    assert df.where(column(" OR ".join(f"a = {n}" for n in range(3000)))).count() == 1
    assert df.where(column(" OR ".join(f"a{n} = {n}" for n in range(3000)))).count() == 0
    for nested in selector_strategies.NESTED.values():
        text = nested(MAX_NESTING)
        assert df.where(column(text)).count() == may_match(parse(text), row), text


@pytest.mark.parametrize(
    "text",
    [
        "a * a * a * a > 0",
        pytest.param("a" + " + 1" * 10 + " > 3008", marks=pytest.mark.deep),
        pytest.param("a*a + a*a > 0", marks=pytest.mark.deep),
    ],
)
def test_a_long_calculation_does_not_blow_up_the_plan(spark, text):
    """Of ``a * a * a * a`` the expression took the driver's heap."""
    message = selector_strategies.Message.of(HEADERS, a=2999)
    df = frame(spark, [selector_strategies.row_of(message, types=True)])
    kept = df.where(column(text))
    assert len(str(kept._jdf.queryExecution().optimizedPlan())) < 20_000
    assert kept.count() == 1


@pytest.mark.releases
@pytest.mark.skipif(hasattr(functions, "arrow_udf"), reason="this release has Arrow functions")
@pytest.mark.parametrize("text", [" OR ".join(["a > 5"] * (MAX_CONDITIONS + 1)), "a * a * a > 0"])
def test_without_arrow_functions_a_long_selector_is_refused(text):
    with pytest.raises(UnsupportedSelectorError, match=r"\[JMS_UNSUPPORTED_SELECTOR\].* 4\.1"):
        column(text)


@pytest.mark.releases
@pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this release has no Arrow functions")
def test_the_arrow_function_and_the_expression_agree(spark, messages):
    """The form of a long selector, for one that has both."""
    rows = [selector_strategies.row_of(m, types=place % 2 == 0) for place, m in enumerate(messages)]
    df = frame(spark, rows)
    for text in ("a > 5 OR NOT (b = 'red') AND JMSPriority < 5", "JMSTimestamp = 2500 AND x IS NULL"):
        long = " OR ".join([text] * MAX_CONDITIONS)
        found = df.select(column(text, dialect="artemis"), column(long, dialect="artemis")).collect()
        assert [row[0] for row in found] == [row[1] for row in found]


def test_a_blank_selector_keeps_everything(spark):
    message = selector_strategies.Message.of(HEADERS)
    assert frame(spark, [selector_strategies.row_of(message, types=False)]).where(column(" ")).count() == 1
