import pytest

from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.sink.links import SinkLink
from pyspark_jms.stomp.sink import StompSinkLink


@pytest.mark.parametrize("value", [StompSinkLink, AmqpSinkLink])
def test_both_protocols_have_the_port_for_writing(value):
    assert {name for name in vars(SinkLink) if not name.startswith("_") and not hasattr(value, name)} == set()
