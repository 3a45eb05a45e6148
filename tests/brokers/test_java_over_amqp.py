"""Java → queue → Spark → queue → Java over AMQP: every body, element, property and header, on every broker.

The table of docs/typed-messages.md is what this test finds. ``WRITE_TABLE=1`` writes it anew.
"""

import os
import re
import uuid
from pathlib import Path

import pytest
from amqp_brokers import AMQP_BROKERS
from chosen_brokers import NO_TRANSFORMER, skip_as
from java_round_trip import CASES, JavaClients, sent
from pyspark.sql import functions as F

from pyspark_jms.testing import JmsClient

PAGE = Path(__file__).resolve().parents[2] / "docs" / "typed-messages.md"
BEGIN, END = (
    "<!-- java round trip, written by tests/brokers/test_java_over_amqp.py -->\n",
    "<!-- end of java round trip -->",
)
NATIVE = {"artemis": "CORE", "artemis 2.44": "CORE", "classic": "OpenWire"}
QPID = "Qpid JMS"


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] if name == "artemis 2.44" else []) for name in AMQP_BROKERS],
)
def broker(request):
    with AMQP_BROKERS[request.param]() as broker:
        yield request.param, broker


def clients_of(name, broker):
    makers = {QPID: lambda: JmsClient(broker.amqp_url, broker.user, broker.password)}
    if name in NATIVE:
        makers[NATIVE[name]] = lambda: JmsClient(broker)
    return JavaClients(makers)


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_java_to_spark_to_java(spark, broker):
    skip_as("classic-as-run", NO_TRANSFORMER)
    name, broker = broker
    access = {"brokerUrl": broker.amqp_url, "user": broker.user, "password": broker.password}
    clients = clients_of(name, broker)
    found = {}
    for producer in clients:
        for case in CASES:
            clients.send(producer, f"in.{slug(producer)}", case)
        rows = spark.read.format("jms").options(**access, queue=f"in.{slug(producer)}").load()
        for consumer in clients:
            prefix = f"queue://via.{slug(producer)}.{slug(consumer)}."
            name_of_case = F.regexp_replace(F.expr("properties['case']"), r"\W+", "-")
            again = rows.where("body_error IS NULL")  # the sink refuses the others
            again = again.withColumn("destination", F.concat(F.lit(prefix), name_of_case))
            again.write.format("jms").mode("append").options(**access).save()
            for case in CASES:
                via = clients.receive(consumer, f"{prefix.removeprefix('queue://')}{slug(case)}", seconds=1.0)
                lost = via != sent(case)
                if lost:
                    legs = {(producer, QPID), (QPID, consumer)}
                    unable = [leg for leg in legs if directly(clients, *leg, case) != sent(case)]
                    assert unable, f"{name}: {producer} → Spark → {consumer} loses {case}: {via}"
                found[producer, consumer, case] = lost
    clients.close()
    check_table(name, found)


def directly(clients, producer, consumer, case):
    """What the consumer gets of a message that never was in Spark. The client in the middle would be an AMQP client."""
    queue = f"direct.{slug(producer)}.{slug(consumer)}.{slug(case)}.{uuid.uuid4().hex[:6]}"
    clients.send(producer, queue, case)
    return clients.receive(consumer, queue)


def slug(text):
    return re.sub(r"\W+", "-", text)


def check_table(broker, found):
    """Each line of the page's table for this broker names the cases that the broker itself does not deliver."""
    lines = {}
    for (producer, consumer, case), lost in found.items():
        lines.setdefault(f"| {broker} | {producer} → Spark → {consumer} |", []).extend([case] if lost else [])
    wanted = [f"{begin} {'; '.join(cases) or '-'} |" for begin, cases in lines.items()]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table, after = rest.split(END)
    if os.environ.get("WRITE_TABLE"):
        kept = [line for line in table.splitlines() if not line.startswith(f"| {broker} |")]
        PAGE.write_text(before + BEGIN + "\n".join([*kept, *wanted]) + "\n" + END + after, encoding="utf-8")
    else:
        assert [line for line in table.splitlines() if line.startswith(f"| {broker} |")] == wanted
