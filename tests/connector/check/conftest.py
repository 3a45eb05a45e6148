"""Settings as the command makes them, a link to ask with, and a broker whose users may not do everything."""

import dataclasses

import pytest

from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.network.settings import ConnectionSettings, Password
from pyspark_jms.stomp.link.management import ManagementLink
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis, User

_SETTINGS = (
    AddressSettings(match="brittle.#", max_delivery_attempts=3, dead_letter_address=""),
    AddressSettings(match="patient.#", max_delivery_attempts=-1),
)


@pytest.fixture(scope="session")
def guarded():
    """Its user ``worker`` has what a production user has: no queue is created, no question answered."""
    with EmbeddedArtemis(
        users=[User("worker", "pw", permissions={"send", "consume", "browse"})], address_settings=_SETTINGS
    ) as broker:
        yield broker


@pytest.fixture
def settings_for():
    def settings_for(broker, *, user=None, **changes):
        settings = ConnectionSettings(
            addresses=parse_broker_url(broker.url),
            user=user or broker.user,
            password=Password(value="pw" if user else broker.password),
        )
        return dataclasses.replace(settings, **changes)

    return settings_for


@pytest.fixture
def asks(settings_for):
    """``asks(broker)``: a link, closed at the end."""
    links = []

    def asks(broker):
        links.append(ManagementLink(settings_for(broker)))
        return links[-1]

    yield asks
    for link in links:
        link.close()


@pytest.fixture
def named():
    """``named(findings)``: by name, each once."""

    def named(findings):
        return {finding.name: finding for finding in findings}

    return named
