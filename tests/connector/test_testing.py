import inspect

import pytest

from pyspark_jms import testing


@pytest.mark.parametrize("name", sorted(set(testing.__all__) - {"PERMISSIONS"}))
def test_every_public_name_is_described(name):
    assert inspect.getdoc(getattr(testing, name))
