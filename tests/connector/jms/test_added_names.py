import pytest

from jms_selector.syntax.dialects import DIALECTS
from pyspark_jms.jms.added_names import ANY_BROKER, ARTEMIS, CLASSIC, RABBITMQ


@pytest.mark.parametrize("name", ["NATIVE_MESSAGE_ID", "JMS_AMQP_TTL", "__HDR_X", "mqtt.qos.level", "scheduledJobId"])
def test_what_a_broker_adds(name):
    assert all(name in broker for broker in (ANY_BROKER, ARTEMIS, CLASSIC, RABBITMQ))


@pytest.mark.parametrize("name", ["n", "HDR", "mqtt.content.type", "mqtt.ordered.user.property.0.n", "receipt"])
def test_what_an_application_may_set(name):
    assert name not in ANY_BROKER


@pytest.mark.parametrize(
    ("dialect", "added"),
    [("artemis", ARTEMIS), ("classic", CLASSIC), ("artemis-amqp", ANY_BROKER), ("classic-amqp", ANY_BROKER)],
)
def test_a_selector_on_a_name_that_rows_do_not_have_is_left_to_the_broker(dialect, added):
    names = {*added.names, *(f"{prefix}x" for prefix in added.prefixes)}
    # Two headers of SEND cannot be identifiers of a selector: they have hyphens.
    assert not [name for name in names if "-" not in name and DIALECTS[dialect].shows(name)]
