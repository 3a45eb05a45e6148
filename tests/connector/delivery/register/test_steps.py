"""What the engines rely on: steps are values, so that the same step is the same command wherever it is made."""

import inspect

import pytest

from pyspark_jms.delivery.register import steps


@pytest.mark.parametrize("name", steps.__all__)
def test_a_step_is_a_frozen_value(name):
    kind = getattr(steps, name)
    values = ["x"] * len(inspect.signature(kind).parameters)
    assert kind(*values) == kind(*values)
    assert hash(kind(*values)) == hash(kind(*values))
    assert not hasattr(kind(*values), "__dict__")
