import dataclasses

import pytest

from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.check.guarantees import guarantee_findings
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ

TRIED = Finding(name="duplicate detection", value="refused")
NOT_REFUSED = dataclasses.replace(TRIED, verdict=Verdict.NOTE)
NOT_TRIED = Finding(name="scratch queue", value="not permitted", verdict=Verdict.NOTE)
WEAK = dataclasses.replace(ARTEMIS, stable_id_separator=None, duplicate_id_header=None)


@pytest.mark.parametrize(
    ("dialect", "earlier", "journal", "ledger"),
    [
        (ARTEMIS, [TRIED], "exactly-once", "exactly-once"),
        (ARTEMIS, [NOT_TRIED], "exactly-once", "exactly-once"),
        (ARTEMIS, [NOT_REFUSED], "exactly-once", "at-least-once"),
        (WEAK, [], "at-least-once", "at-least-once"),
    ],
)
def test_guarantees_of_each_mode(named, dialect, earlier, journal, ledger):
    found = named(guarantee_findings(dialect, earlier))
    assert found["reading"].value == "at-least-once"
    assert found["writing"].value.startswith("at-least-once")
    for name, guarantee in (("reading, journal", journal), ("writing, ledger", ledger)):
        assert found[name].value.startswith(guarantee)
        assert (found[name].verdict is Verdict.NOTE) == (guarantee == "at-least-once")
    assert ("duplicate detection" in found["writing, ledger"].value) == (earlier == [NOT_TRIED])


def test_a_broker_without_transactions(named):
    found = named(guarantee_findings(RABBITMQ, []))["writing"]
    assert found.verdict is Verdict.NOTE
    assert "transaction=none" in found.value


@pytest.mark.parametrize(("dialect", "fact"), [(ARTEMIS, "several queries"), (CLASSIC, "one query")])
def test_how_many_queries_can_read_a_durable_subscription(named, dialect, fact):
    assert fact in named(guarantee_findings(dialect, []))["topics"].value
