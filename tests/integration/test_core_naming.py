"""Exactly-once reads and writes on an Artemis that escapes the dots in the names of subscriptions' queues.

A browse or a consumer of the usual name would make a second queue there, which collects every message for ever.
"""

import json

import amqp_sending
import pyarrow as pa
import pytest
from amqp_sending import settings_of
from commands import run
from configured_artemis import CORE_NAMING, ConfiguredArtemis
from registers import ReaderQuery
from streaming import access

from pyspark_jms.amqp.link.commit_ledger import opened
from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink import sending_once
from pyspark_jms.sink.tasks import LedgerTask

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def artemis():
    with ConfiguredArtemis(core=CORE_NAMING) as broker:
        yield broker


TOPIC = {"queue": None, "topic": "the.topic"}


@pytest.mark.parametrize(
    "source",
    [
        {"queue": "the.queue"},
        {**TOPIC, "clientId": "the.client", "subscriptionName": "name"},
        {**TOPIC, "sharedSubscription": "true", "subscriptionName": "shared.name"},
    ],
    ids=["queue", "unshared", "shared"],
)
def test_a_read_makes_its_registers_only(artemis, capsys, source):
    over_amqp = access(artemis, "amqp")
    kind = "topic" if source.get("topic") else "queue"
    base = f"staging.of.{source.get('subscriptionName', kind)}"
    readers = 1 if source.get("clientId") else 2
    running = ReaderQuery(artemis, **source, readers=readers, stagingQueue=base)
    if kind == "topic":
        running.begin()
    found = []
    for first in (0, 20):
        amqp_sending.put(artemis, f"the.{kind}", *map(str, range(first, first + 20)), kind=kind)
        assert running.plan()
        before = running.rows()
        running.source.stop()
        running.start()
        assert running.rows() == before, "a repeated batch"
        running.commit()
        found += [row["text"] for rows in before for row in rows]
        found += running.texts(first + 20 - len(found))
    assert sorted(map(int, found)) == list(range(40))
    named = [] if "clientId" not in source else ["--client-id", source["clientId"]]
    run(over_amqp, "staging show", "--queue", f"{base}.0", *named, "--json")
    shown = json.loads(capsys.readouterr().out)
    assert json.loads(shown["tokens"][0])["next"] == shown["next"]
    running.source.stop()
    run(over_amqp, "staging list", "--prefix", base)
    assert base in capsys.readouterr().out
    assert len([each for each in artemis.queue_names() if base.replace(".", "\\.") in each]) == readers
    assert run(over_amqp, "staging drop", "--queue", base, *named, "--yes") == 0
    plain = {each for each in artemis.queue_names() if "\\" not in each and "." in each}
    assert plain <= {"the.queue", "pyspark-jms.check"}, "queues of usual names"


def test_a_write_makes_its_ledger_only(artemis):
    owner = LedgerOwner("query", "the.name")
    given = access(artemis, "amqp") | {"queue": "written", "deliveryGuarantee": "exactly-once"}
    options = SinkOptions.parse(given)

    def write(batch, partition, text, *, again):
        task = LedgerTask(
            owner=owner,
            write=f"the.name/{batch}",
            partition=partition,
            batch=batch,
            execution=f"e{batch}",
            may_be_repeated=again,
        )
        rows = iter([pa.record_batch({"text": [text]})])
        sending_once.send_exactly_once(CommitLedger(options.connection, owner), options, task, rows)

    for batch in range(2):
        for again in (False, True):
            for partition in range(2):
                write(batch, partition, f"{batch}.{partition}", again=again)
    with opened(settings_of(artemis), owner) as ledger:
        assert len(ledger.find().entries) == 2
    assert artemis.message_count("written") == 4
    assert [each for each in artemis.queue_names() if "commits" in each] == [r"pyspark-jms\.commits\.the\.name.token"]


def test_the_check_finds_exactly_once_and_leaves_nothing(artemis):
    assert run(access(artemis, "amqp"), "check", "--staging-queue", "staging.of.check") == 0
    left = {each for each in artemis.queue_names() if "check" in each}
    assert left == {r"staging\.of\.check.0", "pyspark-jms.check"}
