import pytest

from pyspark_jms.amqp.dialects import BROKER_J
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.features import Feature


def test_a_subscription_that_another_connection_takes_over_is_no_lock():
    with pytest.raises(UnsupportedError, match="lets a second connection take a durable subscription over"):
        BROKER_J.require(Feature.EXACTLY_ONCE_WRITE)
