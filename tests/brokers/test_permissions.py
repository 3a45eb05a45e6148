"""docs/security.md: on each broker these permissions are enough for a feature, and each of them is needed."""

import contextlib
import re
from pathlib import Path

import pyarrow as pa
import pytest
from broker_rows import access_over, write_batch
from broker_stage import Stage, require_rabbitmq
from installed_rabbit import InstalledRabbit, RabbitUser
from streaming import stopping
from waiting import await_count, wait_until

from pyspark_jms.errors import JMSError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.peek import peek
from pyspark_jms.spark.protocols import query_of, reading_of
from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic, User

pytestmark = [pytest.mark.slow, pytest.mark.broker]

PAGE = Path(__file__).parents[2] / "docs" / "security.md"

REFUSED = r"permission|refused|may not|not authorized|not allowed"
ROLLED_BACK = r"Transaction marked rollback only"
"""What Classic answers to the COMMIT of a SEND that it has refused."""


# --- the tables ---------------------------------------------------------------------------------------


def rows(broker):
    """The cells of the broker's table, a list for each row."""
    table = PAGE.read_text().partition(f"<!-- {broker}: begin -->")[2].partition(f"<!-- {broker}: end -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell):
    """The words of a cell that are written as code."""
    return tuple(re.findall(r"`([^`]+)`", cell))


def protocols(feature):
    return [name for name in ("STOMP", "AMQP") if f"over {name}" in feature or "over " not in feature]


def cases(broker):
    """(feature, protocol, whether the destination exists, permissions of the user, whether they are enough)

    Of a table with the permissions that a feature needs, and those that create its destination.
    """
    for feature, _, *cells in rows(broker):
        needs, create = map(words, cells)
        for protocol in protocols(feature):
            yield feature, protocol, True, needs, True
            if create:
                yield feature, protocol, False, (*needs, *create), True
            for one in needs:
                yield feature, protocol, True, tuple(each for each in needs if each != one), False
            for one in create:
                yield feature, protocol, False, tuple(each for each in (*needs, *create) if each != one), False


# --- the use of one feature --------------------------------------------------------------------------


def name_of(number):
    return f"permissions.{number}"


def source_of(number):
    """The queue from which a message goes to the dead-letter queue ``name_of(number)``."""
    return f"from.{number}"


def use(stage, number, feature, protocol):
    """Use the feature as the user of this case, by the engines that Spark calls."""
    name, source = name_of(number), source_of(number)
    access = access_over(stage.broker, protocol.lower())
    access |= {"user": f"user{number}", "password": "pw", "reconnectTimeout": "0s"}
    if feature == "`deadLetterQueue`":
        put(stage, source, [([], "x" * 2000)])
        limits = {"deadLetterQueue": name, "onTooLarge": "deadLetter", "maxMessageBytes": "1k"}
        with reading(access | {"queue": source} | limits) as latest_offset:
            wait_until(
                lambda: latest_offset()["seq"] == stage.broker.message_count(source) == 0, what="the dead letter"
            )
        await_count(stage.broker, name, 1)
        return
    kind, three = "topic" if "topic" in feature else "queue", [([], "hello")] * 3
    access[kind] = f"/amq/queue/{name}" if "/amq/queue/" in feature else name
    if feature.startswith("write"):
        write_batch(access, None, pa.record_batch({"text": ["hello"]}))
    elif feature.startswith("look"):
        put(stage, name, three, kind)
        assert sum(map(len, peek(reading_of(SourceOptions.parse(access))))) == 3
    else:
        durable = {"subscriptionName": "s", "clientId": f"c.{access[kind]}"} if "subscriptionName" in feature else {}
        with reading(access | durable) as latest_offset:
            put(stage, name, three, kind)
            wait_until(lambda: latest_offset()["seq"] == 3, what="the messages")


@contextlib.contextmanager
def reading(options):
    """A subscribed source. The value gives its newest offset."""
    with stopping(query_of(reading_of(SourceOptions.parse(options)))) as source:
        start = source.initial_offset()
        source.latest_offset(start)
        yield lambda: source.latest_offset(start)


def put(stage, name, messages, kind="queue"):
    with stage.client() as client:
        if kind == "topic":
            client.publish(name, *(text for _, text in messages))
        else:
            client.put(name, messages)


def require_enough_or_refused(stage, number, feature, protocol, *, enough):
    if enough:
        use(stage, number, feature, protocol)
        return
    with pytest.raises(JMSError, match=f"{REFUSED}|{ROLLED_BACK}" if stage.name == "classic" else REFUSED):
        use(stage, number, feature, protocol)


def numbers(cases):
    """Parametrize with the number of each case."""
    ids = [re.sub(r"\W+", "-", f"{number} {case}").strip("-") for number, case in enumerate(cases)]
    return pytest.mark.parametrize("number", range(len(cases)), ids=ids)


# --- Artemis and ActiveMQ Classic ---------------------------------------------------------------------

ARTEMIS, CLASSIC = list(cases("artemis")), list(cases("classic"))
AS_ARTEMIS = {"read": "consume", "write": "send", "admin": "createAddress"}
"""The names of ``User`` for Classic's rights."""


def users_of(cases, of_source):
    """``of_source``: the permissions for the queue whose messages go to a dead-letter queue."""
    for number, (feature, _, _, granted, _) in enumerate(cases):
        at = {name_of(number): {AS_ARTEMIS.get(each, each) for each in granted}}
        if feature == "`deadLetterQueue`":
            at[source_of(number)] = of_source
        yield User(f"user{number}", "pw", permissions=set(), at=at)


@pytest.fixture(scope="module")
def artemis():
    with EmbeddedArtemis(users=list(users_of(ARTEMIS, {"consume"})), start_timeout=180) as broker:
        yield Stage("artemis", broker)


@pytest.fixture(scope="module")
def classic():
    users = list(users_of(CLASSIC, {"consume", "createAddress"}))
    with EmbeddedClassic(users=users, start_timeout=180) as broker:
        yield Stage("classic", broker)


@numbers(ARTEMIS)
def test_artemis(artemis, number):
    require_case(artemis, number, *ARTEMIS[number])


@numbers(CLASSIC)
def test_classic(classic, number):
    require_case(classic, number, *CLASSIC[number])


def require_case(stage, number, feature, protocol, exists, _granted, enough):
    if exists:
        stage.broker.create_queue(name_of(number), topic="topic" in feature)
    require_enough_or_refused(stage, number, feature, protocol, enough=enough)


# --- RabbitMQ -----------------------------------------------------------------------------------------

KINDS = ("configure", "write", "read")


def rabbit_cases():
    """(feature, expressions of the user for each kind, whether they are enough)"""
    for feature, *cells in rows("rabbitmq"):
        needs = dict(zip(KINDS, map(words, cells), strict=True))
        yield feature, needs, True
        for kind, names in needs.items():
            for one in names:
                yield feature, needs | {kind: tuple(each for each in names if each != one)}, False


RABBIT = list(rabbit_cases())


def rabbit_user(number):
    """The expressions of a user, with the names of this case."""

    def pattern(names):
        return "^(" + "|".join(names) + ")$" if names else "^$"

    _, needs, _ = RABBIT[number]
    of_case = {"orders": name_of(number), "c.s": f"c.{name_of(number)}.s"}
    granted = {kind: [of_case.get(each, each) for each in names] for kind, names in needs.items()}
    if RABBIT[number][0] == "`deadLetterQueue`":
        granted = {"configure": [*granted["configure"], source_of(number)], "write": granted["write"],
                   "read": [*granted["read"], source_of(number)]}  # fmt: skip
    return RabbitUser(f"user{number}", "pw", *(pattern(granted[kind]) for kind in KINDS))


@pytest.fixture(scope="module")
def rabbit():
    require_rabbitmq()
    with InstalledRabbit(users=[rabbit_user(number) for number in range(len(RABBIT))]) as broker:
        yield Stage("rabbitmq", broker)


@numbers(RABBIT)
def test_rabbitmq(rabbit, number):
    feature, _, enough = RABBIT[number]
    if "topic" not in feature:
        rabbit.broker.create_queue(name_of(number))
    require_enough_or_refused(rabbit, number, feature, "STOMP", enough=enough)
