"""Connection settings, management links, and a broker with a restricted user."""

import pytest
from connection_settings import settings_over

from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis, User
from pyspark_jms.tools.check import receive

_SETTINGS = (
    AddressSettings(match="brittle.#", max_delivery_attempts=3, dead_letter_address=""),
    AddressSettings(match="patient.#", max_delivery_attempts=-1),
)


@pytest.fixture(autouse=True)
def _short_silences(monkeypatch):
    """The check waits for a silence after each test, and twice after it has received a queue."""
    monkeypatch.setattr(receive, "_QUIET_SECONDS", 0.8)


@pytest.fixture(scope="session")
def guarded():
    """A broker whose user ``worker`` has the permissions of a production user: no creation, no management."""
    with EmbeddedArtemis(
        users=[User("worker", "pw", permissions={"send", "consume", "browse"})], address_settings=_SETTINGS
    ) as broker:
        yield broker


@pytest.fixture
def settings_for():
    return settings_over


@pytest.fixture
def open_link(settings_for):
    """``open_link(broker)``: a management link, closed at the end."""
    links = []

    def open_link(broker):
        links.append(StompManagementLink(settings_for(broker)))
        return links[-1]

    yield open_link
    for link in links:
        link.close()


@pytest.fixture
def named():
    """``named(findings)``: name -> finding."""

    def named(findings):
        return {finding.name: finding for finding in findings}

    return named
