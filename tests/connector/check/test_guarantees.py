import dataclasses

import pytest

from pyspark_jms.check.findings import Verdict
from pyspark_jms.check.guarantees import guarantee_findings
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ

WEAK = dataclasses.replace(ARTEMIS, stable_id_separator=None)


@pytest.mark.parametrize(("dialect", "journal"), [(ARTEMIS, "exactly-once"), (WEAK, "at-least-once")])
def test_guarantees_of_each_mode(named, dialect, journal):
    found = named(guarantee_findings(dialect))
    assert found["reading"].value == "at-least-once"
    assert found["writing"].value.startswith("at-least-once")
    assert "amqp://" in found["writing, ledger"].advice
    for name, guarantee in (("reading, journal", journal), ("writing, ledger", "at-least-once")):
        assert found[name].value.startswith(guarantee)
        assert (found[name].verdict is Verdict.NOTE) == (guarantee == "at-least-once")


def test_a_broker_without_transactions(named):
    found = named(guarantee_findings(RABBITMQ))["writing"]
    assert found.verdict is Verdict.NOTE
    assert "transaction=none" in found.value


@pytest.mark.parametrize(("dialect", "fact"), [(ARTEMIS, "several queries"), (CLASSIC, "one query")])
def test_how_many_queries_can_read_a_durable_subscription(named, dialect, fact):
    assert fact in named(guarantee_findings(dialect))["topics"].value
