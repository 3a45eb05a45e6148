import pyarrow as pa
import pytest

from pyspark_jms.columns.amqp_types import jms_types


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_types_of_amqp_become_those_that_hold_their_values(kind):
    words = ["uint", None, "int", "uuid", "ubyte", "described type", "nonsense"]
    found = jms_types(pa.array(words, pa.string()).view(kind), of_elements=True)
    assert found.view(pa.string()).to_pylist() == ["long", None, "int", "string", "short", "string", "nonsense"]
    assert found.type == kind


def test_a_char_is_an_element_of_jms_and_no_property():
    types = pa.array(["char", "uint"])
    assert jms_types(types, of_elements=True).to_pylist() == ["char", "long"]
    assert jms_types(types, of_elements=False).to_pylist() == ["string", "long"]


def test_others_stay_as_they_are():
    types = pa.array(["int", None])
    assert jms_types(types, of_elements=True) is types
