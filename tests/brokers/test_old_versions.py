"""Old releases: rows in, messages out, a killed broker, and ``check``. Without Spark."""

import uuid

import pytest
from broker_rows import access_over, read_texts, write_rows
from commands import findings_of_check
from old_brokers import ARTEMIS, BROKER_J, CLASSIC, OldArtemis, OldBrokerJ, OldClassic
from receivers import read_through_a_kill

pytestmark = [pytest.mark.broker, pytest.mark.deep]

COUNT = 300


everywhere = pytest.mark.parametrize(
    ("old", "protocol"),
    [("artemis", "stomp"), ("artemis", "amqp"), ("classic", "stomp"), ("classic", "amqp"), ("broker-j", "amqp")],
    indirect=["old"],
)


@pytest.fixture(scope="module")
def old(request):
    with {"artemis": OldArtemis, "classic": OldClassic, "broker-j": OldBrokerJ}[request.param]() as broker:
        yield request.param, broker


@pytest.fixture(autouse=True)
def _tested_broker(old, tested):
    tested(old[0], {"artemis": ARTEMIS, "classic": CLASSIC, "broker-j": BROKER_J}[old[0]])


@pytest.fixture
def access(old, protocol):
    return access_over(old[1], protocol)


@everywhere
def test_rows_come_back_also_when_the_broker_is_killed(old, access):
    _, broker = old
    queue = f"q.{uuid.uuid4().hex[:8]}"
    texts = [str(n) for n in range(COUNT)]
    write_rows(access, queue, [{"text": text} for text in texts])
    assert sorted(read_texts(access, queue)) == sorted(texts)
    read_through_a_kill(broker, access, queue, COUNT)


@everywhere
def test_the_check_finds_no_problem_and_tries_exactly_once(old, access, capsys):
    name, _ = old
    findings = findings_of_check(access, capsys)
    if access["brokerUrl"].startswith("amqp"):
        assert findings["dialect"]["value"] == name
        for kind in ("reading, staging", "writing, ledger"):
            assert findings[kind]["value"].startswith("exactly-once" if name == "artemis" else "at-least-once only")
