import dataclasses

import pytest

from pyspark_jms.amqp.wire import performatives
from pyspark_jms.amqp.wire.performatives import Detach, Transfer


def test_fields_stand_in_the_order_of_the_specification():
    assert [field.name for field in dataclasses.fields(Detach)] == ["handle", "closed", "error"]
    assert [field.name for field in dataclasses.fields(Transfer)][:4] == [
        "handle", "delivery_id", "delivery_tag", "message_format",
    ]  # fmt: skip


@pytest.mark.parametrize("name", performatives.__all__)
def test_a_performative_is_frozen(name):
    cls = getattr(performatives, name)
    given = {field.name: None for field in dataclasses.fields(cls)}
    value = cls(**given)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, next(iter(given), "x"), 1)
