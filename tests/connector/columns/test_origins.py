import numpy as np
import pytest

from pyspark_jms.columns.origins import Origins, between, longest_name, origin_at, origins, spelled
from pyspark_jms.jms.model import Destination

A, B, C = (Destination.parse(f"queue://{name}") for name in ("a", "é", "c"))
EACH = [A] * 3 + [B] + [C] * 2


def counted():
    return origins([(A, 3), (B, 1), (C, 2)])


def test_one_destination_stands_for_itself():
    assert origins([(A, 7)]) == between(A, 2, 5) == origin_at(A, 6) == A
    assert spelled(A, np.arange(7), str).as_py() == "queue://a"
    assert longest_name(A) == 1


def test_each_message_has_the_destination_that_it_was_read_from():
    assert [origin_at(counted(), message) for message in range(6)] == EACH
    assert spelled(counted(), np.array([5, 0, 3, 3]), lambda each: each.name).to_pylist() == ["c", "a", "é", "é"]
    assert longest_name(counted()) == 2


@pytest.mark.parametrize(("first", "last"), [(first, last) for last in range(1, 7) for first in range(last)])
def test_a_part_of_the_messages(first, last):
    found = between(counted(), first, last)
    assert isinstance(found, Origins)
    assert [origin_at(found, message) for message in range(last - first)] == EACH[first:last]
    assert found.ends[-1] == last - first
