"""What differs from one protocol to the other; the rest is in tests/connector/management."""

import dataclasses

import pytest

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.stomp.dialects import ARTEMIS, DIALECTS
from pyspark_jms.stomp.link.management import StompManagementLink


def test_the_broker_names_its_version(broker, settings_for):
    with StompManagementLink(settings_for(broker)) as link:
        assert link.attribute("broker", "version") in link._connection.server


def test_a_broker_without_management(broker, settings_for, monkeypatch):
    monkeypatch.setitem(DIALECTS, "artemis", dataclasses.replace(ARTEMIS, management=None))
    with pytest.raises(UnsupportedError, match=r"artemis .*management .*STOMP"):
        StompManagementLink(settings_for(broker))
