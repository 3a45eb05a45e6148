"""The Arrow masks against the row evaluator: in `make test-deep` more than 20,000 pairs of a selector and a message."""

import numpy as np
import pyarrow as pa
import pytest
import selector_strategies
from generated import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selector_schema import keep, masks, message_of, outcomes

from jms_selector.errors import EvaluationError, UnsupportedSelectorError
from jms_selector.meaning.evaluate import Message, evaluate
from jms_selector.syntax.build import MAX_NESTING
from jms_selector.syntax.kinds import Kind, Value
from jms_selector.syntax.parse import parse
from jms_selector.targets.arrow.masks import exact

DIALECTS = ("spec", "artemis", "classic")
MESSAGES = 80
EXAMPLES = 280
assert MESSAGES * EXAMPLES > 20_000

generated = settings(
    max_examples=examples(EXAMPLES), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@generated
@given(
    selector_strategies.selectors(),
    selector_strategies.messages(MESSAGES),
    st.sampled_from(DIALECTS),
    st.booleans(),
    st.booleans(),
)
def test_masks_over_the_schema_are_the_outcomes_of_each_row(text, messages, dialect, types, convert):
    rows = [selector_strategies.row_of(message, types=types) for message in messages]
    selector = parse(text)
    batch = selector_strategies.batch_of(rows)
    expected = [tuple(outcomes(selector, row, dialect, convert=convert)) for row in rows]
    found = masks(selector, batch, dialect, convert=convert)
    assert list(zip(*(mask.tolist() for mask in found), strict=True)) == expected
    assert keep(selector, batch, dialect, convert=convert).to_pylist() == [true for true, _, _ in expected]


@pytest.mark.parametrize("text", ["a = 'x'", "NOT (a = '7')", "a IS NOT NULL", "a = b", "JMSXDeliveryCount > a"])
@pytest.mark.parametrize("dialect", [*DIALECTS, "artemis-amqp", "classic-amqp"])
def test_masks_of_types_that_only_amqp_has_are_the_outcomes_of_each_row(text, dialect):
    empty = dict.fromkeys(selector_strategies.SCHEMA.names)
    values = [(None, None), ("7", None), ("7", "int"), ("x", "uuid"), ("7", "uint"), ("8", "uint"), (None, "list")]
    rows = [
        empty | {"properties": {"a": value, "b": "7"}, "property_types": {"a": kind} if kind else {}}
        for value, kind in values
    ]
    for some in (rows, rows[:3], rows[-1:]):
        expected = [tuple(outcomes(text, row, dialect)) for row in some]
        found = masks(text, selector_strategies.batch_of(some), dialect)
        assert list(zip(*(mask.tolist() for mask in found), strict=True)) == expected


TYPES = {
    "a": (Kind.INT, pa.int32()),
    "b": (Kind.LONG, pa.int64()),
    "c": (Kind.STRING, pa.string()),
    "x": (Kind.DOUBLE, pa.float64()),
    "y": (Kind.BOOLEAN, pa.bool_()),
    "s": (Kind.SHORT, pa.int16()),
    "f": (Kind.FLOAT, pa.float32()),
    "by": (Kind.BYTE, pa.int8()),
}


def typed_columns(seed, rows):
    random = np.random.default_rng(seed)
    columns = {}
    for name, (kind, _) in TYPES.items():
        pool = [None, None, *(v.value for v in selector_strategies.VALUES if v.kind is kind)]
        columns[name] = [pool[place] for place in random.integers(0, len(pool), rows)]
    return columns


@generated
@given(
    selector_strategies.selectors(headers=None, names=tuple(TYPES)),
    st.integers(0, 1 << 32),
    st.sampled_from(DIALECTS),
)
def test_typed_columns_are_exact(text, seed, dialect):
    columns = typed_columns(seed, MESSAGES)
    table = pa.table({name: pa.array(columns[name], kind) for name, (_, kind) in TYPES.items()})
    selector = parse(text)
    expected = []
    for place in range(MESSAGES):
        given_values = {name: columns[name][place] for name in TYPES}
        message = Message({}, {n: Value(TYPES[n][0], v) for n, v in given_values.items() if v is not None})
        try:
            expected.append(evaluate(selector, message, dialect))
        except EvaluationError:
            expected.append(None)
    try:
        found = exact(selector, table, dialect)
    except UnsupportedSelectorError:
        return  # for concatenated strings, or a division that may be NULL beside other types
    assert found.to_pylist() == expected


def test_missing_columns_are_null_and_columns_of_other_types_refused():
    table = pa.table({"a": pa.array([1, None], pa.int32()), "t": pa.array([[1], [2]])})
    assert exact("a = 1 OR z = 1", table).to_pylist() == [True, None]
    assert exact("a IS NULL", table).to_pylist() == [False, True]
    with pytest.raises(TypeError, match=r"t .*list"):
        exact("t = 1", table)


def test_a_blank_selector_keeps_everything():
    batch = selector_strategies.batch_of([])
    assert keep(" ", batch).to_pylist() == []
    assert exact("", pa.table({"a": [1, 2]})).to_pylist() == [True, True]


def test_a_slice_of_a_batch_and_a_table_of_chunks():
    messages = [message_of({"JMSDeliveryMode": "PERSISTENT", "JMSTimestamp": 1}, a=n, b="x" * n) for n in range(20)]
    batch = selector_strategies.batch_of([selector_strategies.row_of(m, types=True) for m in messages])
    expected = [5 < n < 12 for n in range(20)]
    text = "a > 5 AND NOT (a >= 12)"
    assert keep(text, batch.slice(3, 12)).to_pylist() == expected[3:15]
    table = pa.Table.from_batches([batch.slice(0, 7), batch.slice(7)])
    assert keep(text, table).to_pylist() == expected


def test_three_thousand_terms():
    text = " OR ".join(f"a = {n}" for n in range(3000))
    batch = selector_strategies.batch_of(
        [
            selector_strategies.row_of(
                message_of({"JMSDeliveryMode": "PERSISTENT", "JMSTimestamp": 1}, a=n), types=False
            )
            for n in (5, 2999, 3000)
        ]
    )
    assert keep(text, batch).to_pylist() == [True, True, False]


@pytest.mark.parametrize("shape", selector_strategies.NESTED, ids=list(selector_strategies.NESTED))
def test_the_deepest_selector_is_evaluated(shape):
    row = selector_strategies.row_of(message_of({"JMSDeliveryMode": "PERSISTENT", "JMSTimestamp": 1}, a=1), types=False)
    selector = parse(selector_strategies.NESTED[shape](MAX_NESTING))
    assert keep(selector, selector_strategies.batch_of([row])).to_pylist() == [outcomes(selector, row).true]


def test_a_header_that_is_never_null_has_its_default_in_typed_columns():
    table = pa.table({"a": [1, 2], "JMSXDeliveryCount": pa.array([3, None], pa.int32())})
    assert exact("JMSXDeliveryCount = 1", table, "classic").to_pylist() == [False, True]
    assert exact("JMSXDeliveryCount = 3", table, "classic").to_pylist() == [True, False]
    assert exact("JMSXGroupSeq = 0 AND NOT JMSRedelivered", table, "classic").to_pylist() == [True, True]
    longs = pa.table({"JMSXDeliveryCount": pa.array([3, None], pa.int64())})
    assert exact("JMSXDeliveryCount < 3", longs, "classic").to_pylist() == [False, True]
    assert exact("JMSXDeliveryCount IS NULL", table, "artemis").to_pylist() == [True, True]
