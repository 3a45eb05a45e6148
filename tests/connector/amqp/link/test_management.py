"""What differs from one protocol to the other; the rest is in tests/connector/management."""

import dataclasses

import pytest

from pyspark_jms.amqp.dialects import ARTEMIS, DIALECTS
from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.errors import UnsupportedError


def test_the_broker_names_its_version(broker, settings_for):
    with AmqpManagementLink(settings_for(broker)) as link:
        assert link.attribute("broker", "version") in link._connection.server


def test_a_broker_without_management(broker, settings_for, monkeypatch):
    monkeypatch.setitem(DIALECTS, "artemis", dataclasses.replace(ARTEMIS, management=None))
    with pytest.raises(UnsupportedError, match=r"artemis .*management .*AMQP"):
        AmqpManagementLink(settings_for(broker))
