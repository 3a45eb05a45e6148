"""What the engines rely on: steps are values, so that the same step is the same command wherever it is made."""

import inspect

import pytest

from pyspark_jms.delivery.register import steps

STEPS = [each for each in vars(steps).values() if inspect.isclass(each) and each.__module__ == steps.__name__]


@pytest.mark.parametrize("kind", STEPS, ids=lambda kind: kind.__name__)
def test_a_step_is_a_frozen_value(kind):
    values = ["x"] * len(inspect.signature(kind).parameters)
    assert kind(*values) == kind(*values)
    assert hash(kind(*values)) == hash(kind(*values))
    assert not hasattr(kind(*values), "__dict__")
