"""A selector passes exactly the messages whose rows the condition keeps, or the error names the part that differs."""

import math
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import permutations
from random import Random

import pytest
from generated import examples, generated
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from selector_schema import push

from jms_selector import Message, evaluate, parse
from jms_selector.syntax.kinds import Kind, Value, to_float
from pyspark_jms.columns.sql_selectors import MAX_DEPTH, declared_types, selector_text
from pyspark_jms.errors import SchemaError, UnsupportedConditionError


@pytest.mark.parametrize(
    ("condition", "schema", "selector"),
    [
        ("JMSPriority > 4 AND orderId = 7", None, "JMSPriority > 4 AND orderId = 7"),
        ("4 < jmspriority and ORDERID == 7", "orderId INT", "JMSPriority > 4 AND orderId = 7"),
        ("NOT (a = 1 OR b IS NULL)", None, "a IS NOT NULL AND a <> 1 AND b IS NOT NULL"),
        ("!a != 1", None, "a = 1"),
        ("a = 1 OR a = 2 AND b = 3", None, "a = 1 OR a = 2 AND b = 3"),
        ("a BETWEEN 1 AND 3", None, "a >= 1 AND a <= 3"),
        ("a NOT BETWEEN 1 AND 3", None, "a < 1 OR a > 3"),
        ("a IN (1, 2)", None, "a = 1 OR a = 2"),
        ("a IN (7, 2.5, 1e0)", "a INT", "a = 7 OR a = 2.5 OR a = 1.0"),
        ("a NOT IN (1)", None, "a IS NOT NULL AND a <> 1"),
        ("region IN ('EU', 'it''s')", None, "region IN ('EU', 'it''s')"),
        ("NOT region IN ('EU')", None, "region IS NOT NULL AND region NOT IN ('EU')"),
        ("region LIKE 'a_%'", None, "region LIKE 'a_%'"),
        ("region NOT LIKE '50!%' ESCAPE '!'", None, "region IS NOT NULL AND region NOT LIKE '50!%' ESCAPE '!'"),
        ("flag AND NOT other", None, "flag = TRUE AND other = FALSE"),
        ("flag <> TRUE", "flag BOOLEAN", "flag = FALSE"),
        ("price > 9.5", None, "price IS NOT NULL AND NOT (price <= 9.5)"),  # NaN is above all numbers in Spark
        ("price > 9 AND price < 10.5", None, "price IS NOT NULL AND NOT (price <= 9.0) AND price < 10.5"),
        ("NOT price < 9.5", "price DOUBLE", "price IS NOT NULL AND NOT (price < 9.5)"),
        ("n = 9007199254740993", "n DOUBLE", "n = 9007199254740992.0"),  # a double in Spark, too
        ("n > 2.5", "n BIGINT", "n > 2.5"),
        ("n = 5.00", "n BIGINT", "n = 5"),
        ("price = -0.0", "price DOUBLE", "price = 0.0 OR price = - 0.0"),  # equal in Spark; not on Artemis and Classic
        (
            "price <> 0 AND price < 0",
            "price FLOAT",
            "price IS NOT NULL AND price <> 0.0 AND price <> - 0.0 AND price < - 0.0",
        ),
        ("price >= 0", "price DOUBLE", "price IS NOT NULL AND NOT (price < - 0.0)"),
        ("n = -0.0D", "n INT", "n = 0.0"),
        (
            "n = m",
            "n INT, m BIGINT",
            "n IS NOT NULL AND m IS NOT NULL AND n = m OR m IS NOT NULL AND n IS NOT NULL AND m = n",
        ),  # Artemis and Classic need the narrower number on the left
        ("NOT n = m", "n INT, m BIGINT", "n IS NOT NULL AND m IS NOT NULL AND n <> m AND m <> n"),
        (
            "n > m",
            "n SMALLINT, m TINYINT",
            "n IS NOT NULL AND m IS NOT NULL AND n > m OR m IS NOT NULL AND n IS NOT NULL AND m < n",
        ),
        ("n > m", "n TINYINT, m BYTE", "n IS NOT NULL AND m IS NOT NULL AND n > m"),
        ("JMSType = region", "region STRING", "JMSType IS NOT NULL AND region IS NOT NULL AND JMSType = region"),
        ("JMSDeliveryMode = 2", None, "JMSDeliveryMode = 'PERSISTENT'"),
        ("JMSDeliveryMode <> 2", None, "JMSDeliveryMode = 'NON_PERSISTENT'"),
        ("JMSDeliveryMode > 0", None, "JMSDeliveryMode IN ('NON_PERSISTENT', 'PERSISTENT')"),
        ("JMSTimestamp >= TIMESTAMP '1970-01-01 00:00:01Z'", None, "JMSTimestamp >= 1000"),
        ("JMSTimestamp < TIMESTAMP '1970-01-01 00:00:01Z'", None, "JMSTimestamp <> 0 AND JMSTimestamp < 1000"),
        ("JMSTimestamp IS NULL", None, "JMSTimestamp IS NULL OR JMSTimestamp = 0"),
        ("JMSTimestamp IS NOT NULL", None, "JMSTimestamp <> 0"),
        ("JMSMessageID = 'ID:1'", None, "JMSMessageID = 'ID:1'"),
        ("JMSXGroupID = 'g' AND `JMS_x` = 1", None, "JMSXGroupID = 'g' AND JMS_x = 1"),
        ("price IS NULL", "price DECIMAL(9,2)", "price IS NULL"),
        ("region = 'EU'", "region STRING COLLATE UTF8_BINARY", "region = 'EU'"),
        ("region IS NULL", "region STRING COLLATE UTF8_LCASE", "region IS NULL"),
    ],
)
def test_a_condition_and_its_selector(condition, schema, selector):
    found = selector_text(condition, None if schema is None else declared_types(schema))
    assert found == selector
    assert parse(found, strict=True)


@pytest.mark.parametrize(
    ("condition", "schema", "part"),
    [
        (
            "JMSPriority > 4 AND text = 'x'",
            None,
            r"text \(at character 21\) is column text, which selectors do not see",
        ),
        ("body_type = 'text'", None, "column body_type"),
        ("jmsreplyto IS NULL", None, "column JMSReplyTo"),
        ("JMSExpiration > TIMESTAMP '2026-01-01 00:00:00Z'", None, "column JMSExpiration"),
        ("JMSDestination = 'queue://a'", None, "column JMSDestination"),
        ("JMSRedelivered", None, "column JMSRedelivered"),
        ("properties IS NULL", None, "column properties"),
        ("destination = 'a'", None, "column of the sink"),
        ("JMSPrio = 4", None, "JMSPrio .*reserved for headers"),
        ("`order-id` = 4", None, "order-id is not a Java identifier"),
        ("escape_ = 4 AND `escape` = 4", None, "escape is a reserved word of selectors"),
        ("JMS_AMQP_NATIVE = 1", None, "rows do not show"),
        ("_AMQ_GROUP_ID = 'x'", None, "rows do not show"),
        ("orderId = 7 AND region = 'EU'", "orderId INT", "region .* not a column of the schema"),
        ("orderId = 7 AND orderid = 8", None, "orderid .* also written orderId"),
        ("orderId IS NULL OR ORDERID = 8", None, "ORDERID .* also written orderId"),
        ("orderId = 7 AND orderId = '7'", None, "orderId .* compared as string here and as bigint before"),
        ("orderId = '7'", "orderId INT", r"compares orderId \(int\) with a string"),
        ("orderId = 7", "orderId STRING", r"compares orderId \(string\) with a bigint"),
        ("orderId", "orderId INT", "not a condition: its type is int"),
        ("price > 5", "price DECIMAL(9,2)", "whose type is decimal"),
        ("at > TIMESTAMP '2026-01-01 00:00:00Z'", None, "another column than JMSTimestamp.* BIGINT"),
        ("at > TIMESTAMP '2026-01-01 00:00:00Z'", "at TIMESTAMP", "another column than JMSTimestamp"),
        ("at = 5", "at TIMESTAMP", "whose type is timestamp"),
        ("JMSTimestamp > 1000", None, "Write TIMESTAMP"),
        ("JMSTimestamp > '2026-01-01'", None, "Write TIMESTAMP"),
        ("JMSTimestamp = TIMESTAMP '2026-01-01 00:00:00.0005Z'", None, "milliseconds"),
        ("JMSTimestamp > TIMESTAMP '1969-01-01 00:00:00Z'", None, "after 1970"),
        ("JMSDeliveryMode = 'PERSISTENT'", None, "JMSDeliveryMode"),
        ("JMSDeliveryMode = 3", None, "never true: JMSDeliveryMode is 1 or 2"),
        ("JMSDeliveryMode = JMSPriority", None, "compares delivery mode with int"),
        ("JMSMessageID = 'ID:AMQP_UUID:1'", None, "another"),
        ("JMSCorrelationID LIKE 'ID:AMQP_%'", None, "another"),
        ("region > 'EU'", None, "selectors order only numbers"),
        ("region BETWEEN 'A' AND 'B'", None, "selectors order only numbers"),
        ("flag > FALSE", None, "selectors order only numbers"),
        ("a = b", None, "types are not known.* selector_for"),
        ("a = b", "a FLOAT, b FLOAT", "compares float with float"),
        ("a < b", "a STRING, b STRING", "compares string with string"),
        ("n = 16777217", "n FLOAT", "round otherwise"),
        ("n > 9007199254740992.5", "n BIGINT", "round otherwise"),
        ("n > 4.99999999999999999999", "n BIGINT", "round otherwise"),
        ("n > 0.0000000000000000001", "n BIGINT", "round otherwise"),
        ("1 = 1", None, "compares no header or property"),
        ("TRUE", None, "not a condition on a header or property"),
        ("(a = 1) = (b = 1)", None, "a = 1 .* a condition that is compared"),
        ("(a = 1) IS NULL", None, "test for null"),
        ("a IN (1, NULL)", None, "NULL"),
        ("a IN (1, b)", "a INT, b INT", "a column in its list"),
        ("1 IN (a)", "a INT", "a column in its list"),
        ("a IN (9007199254740993, 1e0)", "a BIGINT", "round otherwise"),
        ("n LIKE '7%'", "n INT", "LIKE"),
        ("region LIKE other", None, "LIKE"),
        ("region = 'eu'", "region STRING COLLATE UTF8_LCASE", "type is string collate utf8_lcase"),
        ("region IN ('eu', 'us')", "region string collate `de`", "type is string collate"),
        ("region LIKE 'e%'", "region STRING COLLATE UTF8_LCASE", "LIKE"),
        ("region = other", "region STRING COLLATE UTF8_LCASE, other STRING", "compares string collate utf8_lcase"),
        ("jmsType = 'order'", "JMSType STRING COLLATE UTF8_LCASE", "type is string collate utf8_lcase"),
        ("region = 'EU' COLLATE UTF8_LCASE", None, "COLLATE"),
        ("region = '${system:user.name}'", None, r"\$\{ \(at character 11\) begins a variable"),
        ("region LIKE 'a!b' ESCAPE '!'", None, "an escape that Spark refuses"),
        ("region LIKE 'a' ESCAPE '%'", None, "an escape that Spark refuses"),
        ("NOT " * (MAX_DEPTH + 1) + "a = 1", None, "more than 100 levels"),
        ("(" * 5000 + "a = 1" + ")" * 5000 + " OR b > 'x'", None, "selectors order only numbers"),
    ],
)
def test_a_condition_that_no_selector_equals(condition, schema, part):
    with pytest.raises(UnsupportedConditionError, match=rf"\[JMS_UNSUPPORTED_CONDITION\] .*{part}"):
        selector_text(condition, None if schema is None else declared_types(schema))


def test_the_columns_of_a_schema():
    schema = "a INT, `b-c` decimal(9,2) COMMENT 'x, y', m map<string,struct<a:int,b:int>> NOT NULL, z:string"
    assert declared_types(schema) == {"a": "INT", "b-c": "decimal", "m": "map", "z": "string"}
    with pytest.raises(SchemaError, match=r"\[JMS_SCHEMA\] .*'orderId'"):
        declared_types("orderId")
    with pytest.raises(SchemaError, match="differ only in case"):
        selector_text("a = 1", {"a": "int", "A": "int"})


# --- the same messages --------------------------------------------------------------------------

TYPES = {
    "y": "tinyint",
    "h": "smallint",
    "i": "int",
    "b": "bigint",
    "f": "float",
    "d": "double",
    "s": "string",
    "r": "string",
    "t": "boolean",
}
"""Of property columns."""

INTEGERS = (0, 1, 5, 7, -7, 16_777_217, (1 << 31) - 1, 1 << 53, (1 << 53) + 1, (1 << 63) - 1)
FLOATS = (0.0, -0.0, 0.5, 0.1, 5.0, -7.5, 16_777_216.0, 9007199254740992.0, 1e300, math.inf, -math.inf, math.nan)
STRINGS = ("", "EU", "a%b", "a_b", "it's", "axb", "7", "💰", "a\nb")
MILLIS = (1000, 1001, 1_700_000_000_000)


def as_single(number):
    return to_float(number) if abs(number) < 1e38 or math.isinf(number) or math.isnan(number) else 0.5


NARROW = [value for value in INTEGERS if value < 1 << 31]
VALUES = {
    "y": (None, 0, 5, 7, -7),
    "h": (None, 0, 5, 7, 300),
    "i": (None, *NARROW),
    "b": (None, *INTEGERS),
    "f": (None, *map(as_single, FLOATS)),
    "d": (None, *FLOATS),
    "s": (None, *STRINGS),
    "r": (None, *STRINGS),
    "t": (None, True, False),
    "JMSType": (None, *STRINGS),
    "JMSPriority": (4, 5, 7),
    "JMSDeliveryMode": (1, 2),
    "JMSTimestamp": (None, *MILLIS),
}


def some_rows(seed):
    chosen = Random(seed)
    return [{name: chosen.choice(values) for name, values in VALUES.items()} for _ in range(25)]


rows = st.integers(0, 1 << 32).map(some_rows)
KINDS = {
    "y": Kind.BYTE,
    "h": Kind.SHORT,
    "i": Kind.INT,
    "b": Kind.LONG,
    "f": Kind.FLOAT,
    "d": Kind.DOUBLE,
    "t": Kind.BOOLEAN,
}


def message_of(row):
    """The message whose row this is: the values that a broker sees."""
    seen = {name: value for name, value in row.items() if value is not None}
    headers = {
        "JMSPriority": seen["JMSPriority"],
        "JMSDeliveryMode": ("", "NON_PERSISTENT", "PERSISTENT")[seen["JMSDeliveryMode"]],
        "JMSTimestamp": seen.get("JMSTimestamp", 0),
    }
    if "JMSType" in seen:
        headers["JMSType"] = seen["JMSType"]
    properties = {n: Value(KINDS.get(n, Kind.STRING), v) for n, v in seen.items() if not n.startswith("JMS")}
    return Message(Message.of(headers).headers, properties)


def order(value):
    """Spark's order: NaN equals NaN and is above all numbers; decimals and whole numbers are compared exactly."""
    if isinstance(value, float):
        return (1, 0) if math.isnan(value) else (0, value) if math.isinf(value) else (0, Fraction(value))
    return (0, Fraction(value)) if isinstance(value, Decimal) else (0, value)


def pair(left, right):
    """Two numbers as Spark casts them before it compares them."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    return order(left), order(right)


TESTS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compare(operator, left, right):
    if left is None or right is None:
        return None
    return TESTS[operator](*pair(left, right)) if not isinstance(left, str) else TESTS[operator](left, right)


def common(values):
    """The values of a list, cast to their common type: doubles if one is a double."""
    values = [*values]
    return [float(value) for value in values] if float in map(type, values) else values


def negate(truth):
    return None if truth is None else not truth


def conjoin(a, b):
    return False if a is False or b is False else None if a is None or b is None else True


def disjoin(a, b):
    return negate(conjoin(negate(a), negate(b)))


def like(text, pattern):
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[n:], pattern[1:]) for n in range(len(text) + 1))
    if pattern[0] == "!":
        return text[:1] == pattern[1] and like(text[1:], pattern[2:])
    return bool(text) and pattern[0] in {"_", text[0]} and like(text[1:], pattern[1:])


def timestamp(millis):
    seconds, rest = divmod(millis, 1000)
    day = {1: "1970-01-01 00:00:01", 1_700_000_000: "2023-11-14 22:13:20"}[seconds]
    return f"TIMESTAMP '{day}.{rest:03d}Z'"


numbers = st.one_of(
    st.sampled_from(INTEGERS).map(lambda n: (str(n), n)),
    st.sampled_from(["0.5", "0.1", "5.0", "-7.5", "-0.0", "9007199254740992.5", "4.99999999999999999999"]).map(
        lambda t: (t, Decimal(t))
    ),
    st.sampled_from(["5e0", "1e-1", "-0e0", "9007199254740992D"]).map(lambda t: (t, float(t.rstrip("D")))),
)


def listed(values):
    return st.lists(values, min_size=1, max_size=3)


operands = st.one_of(
    st.tuples(st.sampled_from(["y", "h", "i", "b", "f", "d", "JMSPriority"]), listed(numbers)),
    st.tuples(st.just("JMSDeliveryMode"), listed(st.sampled_from([1, 2, 3]).map(lambda n: (str(n), n)))),
    st.tuples(st.just("JMSTimestamp"), listed(st.sampled_from(MILLIS).map(lambda n: (timestamp(n), n)))),
)
texts = st.sampled_from(STRINGS).map(lambda t: ("'" + t.replace("'", "''") + "'", t))
text_columns = st.sampled_from(["s", "r", "JMSType"])


@st.composite
def conditions_of_one_column(draw):
    """(text, row → true, false or None) of one comparison, test or pattern."""
    form = draw(st.sampled_from(["order", "text", "between", "in", "like", "null", "boolean", "columns"]))
    outside = draw(st.sampled_from(["", "NOT "]))
    turned = negate if outside else bool_or_none
    if form == "boolean":
        wanted = draw(st.sampled_from([None, True, False]))
        if wanted is None:
            return "t", lambda row: row["t"]
        return f"t <> {wanted}", lambda row: None if row["t"] is None else row["t"] is not wanted
    if form == "null":
        name = draw(st.sampled_from([*TYPES, "JMSTimestamp", "JMSType"]))
        return f"{name} IS {outside}NULL", lambda row: (row[name] is None) is not bool(outside)
    if form == "columns":
        wholes = ("y", "h", "i", "b", "JMSPriority")
        left, right = draw(st.sampled_from([*permutations(wholes, 2), ("s", "JMSType"), ("r", "s")]))
        operator = draw(st.sampled_from([*TESTS] if left in wholes else ["=", "<>"]))
        return f"{left} {operator} {right}", lambda row: compare(operator, row[left], row[right])
    if form == "text":
        name, (text, value), operator = draw(text_columns), draw(texts), draw(st.sampled_from(["=", "<>"]))
        return f"{name} {operator} {text}", lambda row: compare(operator, row[name], value)
    if form == "like":
        name, pattern = draw(text_columns), draw(st.sampled_from(["%", "a_b", "a!_b", "a%", "E_", "_", "a!%!!%"]))
        return (
            f"{name} {outside}LIKE '{pattern}' ESCAPE '!'",
            lambda row: None if row[name] is None else turned(like(row[name], pattern)),
        )
    name, values = draw(operands)
    low, high = values[0], values[-1]
    if form == "in":
        return f"{name} {outside}IN ({', '.join(text for text, _ in values)})", lambda row: turned(
            reduce(disjoin, [compare("=", row[name], value) for value in common(value for _, value in values)])
        )
    if form == "between":
        return f"{name} {outside}BETWEEN {low[0]} AND {high[0]}", lambda row: turned(
            conjoin(compare(">=", row[name], low[1]), compare("<=", row[name], high[1]))
        )
    operator = draw(st.sampled_from([*TESTS]))
    if draw(st.booleans()):
        return f"{low[0]} {operator} {name}", lambda row: compare(operator, low[1], row[name])
    return f"{name} {operator} {low[0]}", lambda row: compare(operator, row[name], low[1])


def bool_or_none(truth):
    return truth


def combined(parts):
    """NOT, AND and OR of conditions."""

    def both(word, join):
        return st.tuples(parts, parts).map(
            lambda sides: (
                f"({sides[0][0]}) {word} ({sides[1][0]})",
                lambda row: join(sides[0][1](row), sides[1][1](row)),
            )
        )

    negated = parts.map(lambda part: (f"NOT ({part[0]})", lambda row: negate(part[1](row))))
    return st.one_of(negated, both("AND", conjoin), both("OR", disjoin))


conditions = st.recursive(conditions_of_one_column(), combined, max_leaves=6)
sound = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])


def selector_or_none(text):
    """The selector of a generated condition; None if a number is refused, as few of them are."""
    try:
        return selector_text(text, TYPES)
    except UnsupportedConditionError as error:
        if "round otherwise" in error.fact or "never true" in error.fact:
            return None
        raise


def selector_or_reject(text):
    return selector_or_none(text) or reject()


@sound
@given(conditions, rows)
def test_a_selector_passes_exactly_the_messages_whose_rows_the_condition_keeps(condition, some):
    text, keeps = condition
    selector = selector_or_reject(text)
    for row in some:
        assert (evaluate(selector, message_of(row)) is True) is (keeps(row) is True), (text, selector, row)


@sound
@given(conditions, rows, st.sampled_from(["artemis", "artemis-amqp"]))
def test_a_broker_delivers_the_messages_whose_rows_the_condition_keeps(condition, some, dialect):
    text, keeps = condition
    pushed = push(selector_or_reject(text), dialect)
    assert pushed.residual is None
    sent = parse(pushed.text, dialect=dialect)
    words = {"JMSPriority": "AMQPriority", "JMSTimestamp": "AMQTimestamp", "JMSDeliveryMode": "AMQDurable"}
    for row in some:
        message = message_of(row)
        headers = {words.get(name, name): value for name, value in message.headers.items()}
        if "AMQDurable" in headers and dialect == "artemis":
            headers["AMQDurable"] = Value(Kind.STRING, ("", "NON_DURABLE", "DURABLE")[row["JMSDeliveryMode"]])
        seen = Message(headers | message.headers, message.properties)
        assert (evaluate(sent, seen, dialect) is True) is (keeps(row) is True), (text, pushed.text, row)


def test_spark_keeps_the_rows_whose_messages_the_selector_passes(spark, examples):
    """Not the rules of Spark as this file has them, but Spark: all conditions are columns of one query."""
    from pyspark.sql import functions as F  # imported here: `make unit` needs no pyspark

    some = [row for seed in range(3) for row in some_rows(seed)]
    made = dict.fromkeys(text for text, _ in generated(conditions, examples(300), 39))
    pairs = [(text, selector) for text in made if (selector := selector_or_none(text))]
    assert len(pairs) > examples(160)
    types = TYPES | {"JMSType": "string", "JMSPriority": "int", "JMSDeliveryMode": "int", "JMSTimestamp": "bigint"}
    schema = ", ".join(["n int", *(f"{name} {types[name]}" for name in VALUES)])
    frame = spark.createDataFrame([(n, *(row[name] for name in VALUES)) for n, row in enumerate(some)], schema)
    frame = frame.withColumn("JMSTimestamp", F.timestamp_millis("JMSTimestamp"))
    kept = F.array(*(F.coalesce(F.expr(text), F.lit(False)) for text, _ in pairs))
    by_spark = [row.kept for row in frame.select("n", kept.alias("kept")).orderBy("n").collect()]
    messages = list(map(message_of, some))
    for number, (text, selector) in enumerate(pairs):
        parsed = parse(selector)
        for row, message, passed in zip(some, messages, by_spark, strict=True):
            assert (evaluate(parsed, message) is True) is passed[number], (text, selector, row)
