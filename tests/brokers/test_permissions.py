"""docs/security.md on Artemis: these permissions are enough for a feature, and each of them is needed."""

import re

import feature_uses
import pytest
from rawstomp import RawStomp
from waiting import await_count

from pyspark_jms.errors import JMSError
from pyspark_jms.testing import EmbeddedArtemis, User

pytestmark = [pytest.mark.slow, pytest.mark.broker]

CASES = list(feature_uses.cases("artemis"))


def address(number):
    return f"permissions.{number}"


def user(number):
    feature, _, _, granted, _ = CASES[number]
    at = {address(number): set(granted)}
    if feature == "`deadLetterQueue`":
        at = {address(number): set(granted), f"from.{number}": {"consume"}}
    return User(f"user{number}", "pw", permissions=set(), at=at)


@pytest.fixture(scope="module")
def artemis():
    with EmbeddedArtemis(users=[user(number) for number in range(len(CASES))], start_timeout=180) as broker:
        yield broker


def use(broker, number):
    """Use the feature as the user of this case."""
    feature, protocol, exists, _, _ = CASES[number]
    name, topic = address(number), "topic" in feature
    if exists:
        broker.create_queue(name, topic=topic)
    url = broker.url if protocol == "STOMP" else broker.amqp_url
    access = {"brokerUrl": url, "user": f"user{number}", "password": "pw", "reconnectTimeout": "0s"}
    if feature == "`deadLetterQueue`":
        source, large = f"from.{number}", [([], "x" * 2000)]
        feature_uses.divert(
            access, name, source, lambda: send(broker, source, large), lambda: broker.message_count(source)
        )
        await_count(broker, name, 1)
    else:
        feature_uses.use(feature, access, name, lambda count: send(broker, name, [([], "hello")] * count, topic=topic))


def send(broker, name, messages, **kind):
    with RawStomp(broker) as client:
        client.send(name, messages, **kind)


def id_of(number):
    feature, protocol, exists, granted, enough = CASES[number]
    parts = (
        feature,
        protocol,
        "exists" if exists else "new",
        "+".join(granted) or "nothing",
        "" if enough else "refused",
    )
    return re.sub(r"\W+", "-", " ".join(parts)).strip("-")


@pytest.mark.parametrize("number", range(len(CASES)), ids=id_of)
def test_permissions(artemis, number):
    if CASES[number][-1]:
        use(artemis, number)
        return
    with pytest.raises(JMSError, match=r"permission|refused|may not"):
        use(artemis, number)
