import numpy as np
import pyarrow as pa

from pyspark_jms.columns.schema import IGNORED_BY_SINK, TYPED_VALUE
from pyspark_jms.columns.sink_columns import row_ends, sink_columns

TEXT_MAP = pa.map_(pa.string(), pa.string())


def test_columns_come_under_their_own_name_without_the_ignored_and_the_empty():
    batch = pa.record_batch(
        {"TEXT": pa.array(["a"]), "jmsType": pa.array([None], pa.string()), "bytes": pa.nulls(1)}
        | {name: pa.array(["x"]) for name in IGNORED_BY_SINK}
    )
    assert {name: array.to_pylist() for name, array in sink_columns(batch).items()} == {"text": ["a"]}


def test_row_ends_count_what_can_come_into_a_frame():
    columns = {
        "text": pa.array(["skipped", "ab", None, "é"])[1:],
        "bytes": pa.array([b"abc", None, b""], pa.large_binary()),
        "properties": pa.array([[("x" * 9, "y")], [("k", "v"), ("k2", None)], None, []], TEXT_MAP)[1:],
        "JMSPriority": pa.array([1, 2, 3]),
    }
    assert row_ends(columns, 3).tolist() == [9 + 7 + 1, *[17 + n for n in (2 + 3 + 4, 9, 9 + 2)]]


def test_row_ends_count_the_elements_of_maps_and_streams():
    element = {"type": "int", "value": "12"}
    columns = {
        "map": pa.array([[("x", element)], [("name", element)], None], pa.map_(pa.string(), TYPED_VALUE))[1:],
        "stream": pa.array([[element], [element, None]], pa.large_list(TYPED_VALUE)),
    }
    ends = row_ends(columns, 2)
    assert np.diff(ends).tolist() == [(40 + 4 + 3 + 2) + (40 + 3 + 2), (40 + 3 + 2) + 40]


# --- typed columns -----------------------------------------------------------------------------------


def test_a_property_has_its_name_as_the_option_spells_it():
    batch = pa.record_batch({"PRICE": pa.array([1]), "text": pa.array(["a"]), "none": pa.nulls(1)})
    assert set(sink_columns(batch, ["Price", "none"])) == {"properties.Price", "text"}


def test_every_other_column_comes_as_a_property_without_those_that_a_provider_sets():
    batch = pa.record_batch({"TEXT": ["a"], "n": [1], "none": pa.nulls(1), "JMSXDeliveryCount": [1], "sequence": [7]})
    assert set(sink_columns(batch, ("*",))) == {"text", "properties.n"}
