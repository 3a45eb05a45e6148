import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selector_schema import schema_columns

from jms_selector.meaning.conversions import readings
from jms_selector.syntax.dialects import ARTEMIS, SPEC
from jms_selector.syntax.kinds import Kind
from jms_selector.targets.arrow.candidates import _lookup_first, _readings, typed_column

TEXTS = ["5", "-5", "128", "99999", "3000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808"]
TEXTS += [
    "9999999999999999999",
    "0",
    "-0",
    "05",
    "+5",
    "5.0",
    "1.0E10",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e3",
    "true",
    "false",
]
TEXTS += ["TRUE", "", "x", "٣", "12345678.9"]


def test_readings_are_those_of_each_text():
    texts = pa.array(TEXTS)
    found = _readings(texts, len(TEXTS) + 1)
    for place, text in enumerate(TEXTS):
        kinds = {kind for kind, (member, _) in found.items() if member[place]}
        assert kinds == {value.kind for value in readings(text)}, text
        for value in readings(text):
            data = found[value.kind][1]
            read = data[place].as_py() if isinstance(data, pa.Array) else data[place]
            assert read == value.value or (math.isnan(read) and math.isnan(value.value))
    assert not any(member[-1] for member, _ in found.values())


_maps = st.lists(
    st.one_of(st.none(), st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.text("xy"))), max_size=4)),
    max_size=12,
)


@given(_maps, st.integers(0, 3))
def test_lookup_takes_the_first_entry_of_a_key(rows, start):
    maps = pa.array(rows, pa.map_(pa.string(), pa.string())).slice(start)
    expected = [next((v for k, v in row or [] if k == "a"), None) for row in rows[start:]]
    assert _lookup_first(maps, "a").to_pylist() == expected


def test_lookup_in_rows_with_equal_numbers_of_entries():
    maps = pa.array([[("a", str(n)), ("b", "x")] for n in range(5)], pa.map_(pa.string(), pa.string()))
    assert _lookup_first(maps, "a").to_pylist() == ["0", "1", "2", "3", "4"]


def test_absence_by_dialect():
    batch = pa.record_batch({"JMSPriority": pa.array([1], pa.int32())})
    known = schema_columns(batch, ARTEMIS)

    def rows(column, mask):
        return mask[column.codes].tolist()

    for name in ("JMSCorrelationID", "AMQSize"):
        column = known.candidates(name)
        assert rows(column, column.undecided) == [True]
    assert schema_columns(batch, SPEC).candidates("JMSCorrelationID").undecided is None
    time = known.candidates("JMSTimestamp")
    assert rows(time, time.kinds[Kind.LONG][0]) == rows(time, time.kinds[Kind.NULL][0]) == [True]
    assert known.candidates("JMSXDeliveryCount").kinds[Kind.NULL][0].all()


@pytest.mark.parametrize(
    ("values", "arrow", "kind"),
    [
        ([1, None], pa.int8(), Kind.BYTE),
        (["x", None], pa.large_string(), Kind.STRING),
        ([True, None], pa.bool_(), Kind.BOOLEAN),
    ],
)
def test_typed_columns(values, arrow, kind):
    column = typed_column(pa.table({"a": pa.array(values, arrow)}), "a", SPEC)
    assert column.kinds[kind][0][column.codes].tolist() == [True, False]
    assert column.kinds[Kind.NULL][0][column.codes].tolist() == [False, True]


def test_delivery_modes_by_the_brokers_words():
    table = pa.table({"JMSDeliveryMode": ["PERSISTENT", "NON_PERSISTENT"]})
    column = typed_column(table, "AMQDurable", ARTEMIS)
    assert column.kinds[Kind.STRING][1].take(pa.array(column.codes)).to_pylist() == ["DURABLE", "NON_DURABLE"]
    assert np.asarray(column.codes).tolist() == [0, 1]


@pytest.mark.parametrize(("zone", "moment"), [("Europe/Berlin", 1792888200000), ("GMT+02:00", 0), ("PST", 1)])
def test_a_time_is_read_without_its_zone(zone, moment):
    batch = pa.record_batch({"JMSTimestamp": pa.array([moment * 1000 + 999, None], pa.timestamp("us", tz=zone))})
    _, times = schema_columns(batch, SPEC).candidates("JMSTimestamp").kinds[Kind.LONG]
    assert times[0] == moment
