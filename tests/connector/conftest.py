"""Certificates for tests of TLS, and a broker that refuses: at every station."""

import pytest
from certificates import Authority

from pyspark_jms.testing import PERMISSIONS, AddressSettings, EmbeddedArtemis, User

_CREATES = {"createAddress", "createDurableQueue", "createNonDurableQueue"}
_LISTENS = {"send", "consume", "browse", "createAddress", "createNonDurableQueue"}
_USERS = (
    User("worker", "pw", permissions=_CREATES | {"send", "consume", "browse", "deleteDurableQueue"}),  # all but manage
    User("producer", "pw", permissions=_CREATES | {"send"}),
    User("consumer", "pw", permissions={"consume"}),
    User("reader", "pw", permissions=_CREATES | {"consume", "browse"}),
    User("manager", "pw", permissions=_LISTENS | {"manage"}),
    User("listener", "pw", permissions=_LISTENS),
    User("asker", "pw", permissions={"send", "consume", "browse", "manage"}),
    User("no-ledger", "pw", permissions=_CREATES | {"send", "consume"}, at={"pyspark-jms.commits.#": set()}),
    User("mine-only", "pw", permissions=set(), at={"mine.#": PERMISSIONS, "pyspark-jms.commits.#": PERMISSIONS}),
)
_SETTINGS = (
    AddressSettings(match="full.#", max_size_messages=3, address_full_policy="FAIL"),
    AddressSettings(match="closed.#", auto_create_queues=False, auto_create_addresses=False),
    AddressSettings(match="fixed.#", auto_create_queues=False),
)


@pytest.fixture(scope="session")
def restricted():
    """A broker with users that may do little, whose addresses ``full.#`` take 3 messages and ``closed.#`` none.

    The password of each user is ``pw``. A message is delivered five times at most. No queue of ``fixed.#`` comes to be
    by itself.
    """
    with EmbeddedArtemis(users=_USERS, address_settings=_SETTINGS, max_delivery_attempts=5) as broker:
        yield broker


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"), "ours")


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"), "theirs")
