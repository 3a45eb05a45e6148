import json

import pytest

from pyspark_jms.errors import IllegalStateError
from pyspark_jms.spark.offsets import offset, sequence


@pytest.mark.parametrize("count", [0, 1, 2**62])
def test_an_offset_survives_sparks_log(count):
    assert sequence(json.loads(json.dumps(offset(count)))) == count


@pytest.mark.parametrize("foreign", [{}, {"offset": 3}, {"seq": None}, {"seq": "x"}, None])
def test_refuses_an_offset_of_another_source(foreign):
    with pytest.raises(IllegalStateError, match="checkpointLocation"):
        sequence(foreign)
