"""docs/operations/permissions.md on Artemis: these permissions are enough for a feature, and each of them is needed."""

import contextlib
import re
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from numbered import fill
from rawstomp import RawStomp
from streaming import left
from waiting import await_count, wait_until

from pyspark_jms.errors import JMSError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.sink.sending_once import send_exactly_once
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.source.peek import peek
from pyspark_jms.source.stream import StreamSource
from pyspark_jms.spark.protocols import sink_protocol, source_protocol
from pyspark_jms.testing import EmbeddedArtemis, User

pytestmark = [pytest.mark.slow, pytest.mark.broker]

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
    with EmbeddedArtemis(
        users=[user(number) for number in range(len(CASES)) if number not in ledger], start_timeout=180
    ) as broker:
        yield broker


def use(broker, number):
    """Use the feature as the user of this case, by the engines that Spark calls."""
    feature, protocol, exists, _, _ = CASES[number]
    name, topic = address(number), "topic" in feature
    if exists or feature.startswith("write with"):  # of these the ledger is new
        broker.create_queue(name, topic=topic)
    url = broker.url if protocol == "STOMP" else broker.amqp_url
    access = {"brokerUrl": url, "user": f"user{number}", "password": "pw", "reconnectTimeout": "0s"}
    where = {"topic" if topic else "queue": name}
    if feature.startswith("write"):
        write(access | where, exactly_once="exactly-once" in feature)
    elif feature.startswith("look"):
        fill(broker, name, 3)
        options = SourceOptions.parse(access | where)
        assert sum(batch.num_rows for batch in peek(options, source_protocol(options))) == 3
    elif feature == "`deadLetterQueue`":
        divert(broker, access, name, f"from.{number}")
    else:
        durable = {"subscriptionName": "s", "clientId": f"c{number}"} if "subscriptionName" in feature else {}
        with reading(access | where | durable) as latest_offset:
            if not topic:
                fill(broker, name, 3)
                wait_until(lambda: latest_offset()["seq"] == 3, what="the messages")


@contextlib.contextmanager
def reading(options):
    """A subscribed source. The value gives its newest offset."""
    parsed = SourceOptions.parse(options)
    source = StreamSource(parsed, source_protocol(parsed))
    try:
        start = source.initial_offset()
        source.latest_offset(start)
        yield lambda: source.latest_offset(start)
    finally:
        source.stop()


def write(options, *, exactly_once, batch=1):
    once = {"deliveryGuarantee": "exactly-once"} if exactly_once else {}
    parsed, rows = SinkOptions.parse(options | once), iter([pa.record_batch({"text": ["hello"]})])
    if exactly_once:
        ledger, execution = "pyspark-jms.commits.q", uuid.uuid4().hex
        task = LedgerTask(
            queue=ledger, write=f"q/{batch}", partition=0, batch=batch, execution=execution, may_be_repeated=True
        )
        send_exactly_once(sink_protocol(parsed), parsed, task, rows)
    else:
        send_at_least_once(sink_protocol(parsed), parsed, rows)


def divert(broker, access, dead, source):
    with RawStomp(broker) as client:
        client.send(source, [([], "x" * 2000)])
    options = {"queue": source, "deadLetterQueue": dead, "onTooLarge": "deadLetter", "maxMessageBytes": "1k"}
    with reading(access | options) as latest_offset:
        wait_until(lambda: latest_offset()["seq"] == 0 and left(broker, source, seconds=0) == 0, what="the dead letter")
    await_count(broker, dead, 1)


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
def test_permissions(artemis, number, request):
    feature, _, exists, _, enough = CASES[number]
    broker = artemis
    if feature.startswith("write with"):  # its permissions are those of one address for all queries: a broker each
        broker = EmbeddedArtemis(users=[user(number)], start_timeout=180)
        request.addfinalizer(broker.stop)
        broker.start()
        if exists:
            admin = {"brokerUrl": broker.url, "user": broker.user, "password": broker.password}
            broker.create_queue("another")
            write(admin | {"queue": "another"}, exactly_once=True, batch=0)
    if enough:
        use(broker, number)
        return
    with pytest.raises(JMSError, match=r"permission|refused|may not"):
        use(broker, number)
