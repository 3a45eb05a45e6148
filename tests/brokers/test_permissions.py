"""docs/operations/permissions.md on Artemis: these permissions are enough for a feature, and each of them is needed."""

import re
import uuid
from pathlib import Path

import pytest
from numbered import fill
from rawstomp import RawStomp
from streaming import run_available

from pyspark_jms.testing import EmbeddedArtemis, User

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark]

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "permissions.md"
LEDGER = "pyspark-jms.commits.#"


def rows():
    """(feature, permissions that it needs, permissions to create the address)"""
    table = PAGE.read_text().partition("<!-- artemis: begin -->")[2].partition("<!-- artemis: end -->")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    return [(feature, _names(needs), _names(create)) for feature, _, needs, create in cells[2:]]


def _names(cell):
    return tuple(re.findall(r"`(\w+)`", cell))


def protocols(feature):
    return [name for name in ("STOMP", "AMQP") if f"over {name}" in feature or "over " not in feature]


def cases():
    """(feature, protocol, whether the address exists, permissions of the user, whether they are enough)"""
    for feature, needs, create in rows():
        for protocol in protocols(feature):
            yield feature, protocol, True, needs, True
            if create:
                yield feature, protocol, False, (*needs, *create), True
            for one in needs:
                yield feature, protocol, True, tuple(each for each in needs if each != one), False
            for one in create:
                yield feature, protocol, False, tuple(each for each in (*needs, *create) if each != one), False


CASES = list(cases())


def address(number):
    return f"permissions.{number}"


def user(number):
    feature, _, _, granted, _ = CASES[number]
    at = {address(number): set(granted)}
    if feature.startswith("write with"):
        at = {address(number): {"send"}, LEDGER: set(granted)}
    if feature == "`deadLetterQueue`":
        at = {address(number): set(granted), f"from.{number}": {"consume"}}
    return User(f"user{number}", "pw", permissions=set(), at=at)


@pytest.fixture(scope="module")
def artemis():
    ledger = [number for number, case in enumerate(CASES) if case[0].startswith("write with")]
    with EmbeddedArtemis(users=[user(number) for number in range(len(CASES)) if number not in ledger]) as broker:
        yield broker


def use(spark, broker, number, folder):
    """Use the feature as the user of this case."""
    feature, protocol, exists, _, _ = CASES[number]
    name, topic = address(number), "topic" in feature
    if exists:
        broker.create_queue(name, topic=topic)
    url = broker.url if protocol == "STOMP" else broker.amqp_url
    access = {"brokerUrl": url, "user": f"user{number}", "password": "pw", "reconnectTimeout": "0s"}
    where = {"topic" if topic else "queue": name}
    if feature.startswith("write"):
        write(spark, access | where, exactly_once="exactly-once" in feature)
    elif feature.startswith("look"):
        fill(broker, name, 3)
        assert spark.read.format("jms").options(**access, **where).load().count() == 3
    elif feature == "`deadLetterQueue`":
        divert(spark, broker, access, name, f"from.{number}", folder)
    else:
        durable = {"subscriptionName": "s", "clientId": f"c{number}"} if "subscriptionName" in feature else {}
        messages = spark.readStream.format("jms").options(**access, **where, **durable).load()
        run_available(messages, folder, sink="noop")


def write(spark, options, *, exactly_once):
    once = {"deliveryGuarantee": "exactly-once", "writeId": uuid.uuid4().hex} if exactly_once else {}
    rows = spark.createDataFrame([("hello",)], "text string").coalesce(1)
    rows.write.format("jms").mode("append").options(**options, **once).save()


def divert(spark, broker, access, dead, source, folder):
    with RawStomp(broker) as client:
        client.send(source, [([], "x" * 2000)])
    options = {"queue": source, "deadLetterQueue": dead, "onTooLarge": "deadLetter", "maxMessageBytes": "1k"}
    run_available(spark.readStream.format("jms").options(**access, **options).load(), folder, sink="noop")
    assert broker.message_count(dead) == 1


def id_of(number):
    feature, protocol, exists, granted, enough = CASES[number]
    words = (
        feature,
        protocol,
        "exists" if exists else "new",
        "+".join(granted) or "nothing",
        "" if enough else "refused",
    )
    return re.sub(r"\W+", "-", " ".join(words)).strip("-")


@pytest.mark.parametrize("number", range(len(CASES)), ids=id_of)
def test_permissions(spark, artemis, number, tmp_path, request):
    feature, _, exists, _, enough = CASES[number]
    broker = artemis
    if feature.startswith("write with"):  # one address for all queries: a broker for each case
        broker = EmbeddedArtemis(users=[user(number)])
        request.addfinalizer(broker.stop)
        broker.start()
        if exists:
            admin = {"brokerUrl": broker.url, "user": broker.user, "password": broker.password}
            broker.create_queue(address(number))
            write(spark, admin | {"queue": address(number)}, exactly_once=True)
    if enough:
        use(spark, broker, number, tmp_path)
        return
    with pytest.raises(Exception, match=r"JMS_SECURITY|JMS_INVALID_DESTINATION|JMS_COMMIT_IN_DOUBT"):
        use(spark, broker, number, tmp_path)
