"""Defaults of rows: the values that no message may have are refused."""

import pytest

from pyspark_jms.columns.send_defaults import SendDefaults
from pyspark_jms.errors import InvalidOptionError
from pyspark_jms.jms.model import DeliveryMode, Destination


def defaults(**changed):
    usual = {"destination": None, "delivery_mode": DeliveryMode.PERSISTENT, "priority": 4}
    return SendDefaults(**usual | {"time_to_live_ms": 0, "delivery_delay_ms": 0} | changed)


@pytest.mark.parametrize(
    "wrong", [{"priority": 10}, {"priority": -1}, {"time_to_live_ms": -1}, {"delivery_delay_ms": -1}]
)
def test_defaults_that_no_message_may_have_are_refused(wrong):
    with pytest.raises(InvalidOptionError):
        defaults(**wrong)


def test_a_message_of_jms_without_further_values_is_persistent_of_priority_4_and_never_expires():
    orders = Destination.parse("queue://orders")
    assert SendDefaults.of_jms(orders) == defaults(destination=orders)


@pytest.mark.parametrize("priority", [0, 9])
def test_every_priority_of_jms_is_accepted(priority):
    assert defaults(priority=priority).priority == priority
