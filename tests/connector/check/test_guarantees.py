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
    ("dialect", "so_far", "journal", "ledger"),
    [
        (ARTEMIS, [TRIED], "exactly once into Spark", "does not send again"),
        (ARTEMIS, [NOT_TRIED], "exactly once into Spark", "(duplicate detection was not tried)"),
        (ARTEMIS, [NOT_REFUSED], "exactly once into Spark", "no more than at least once"),
        (WEAK, [], "no more than at least once", "no more than at least once"),
    ],
)
def test_what_each_mode_promises(named, dialect, so_far, journal, ledger):
    found = named(guarantee_findings(dialect, so_far))
    assert found["reading"].value == "at least once"
    assert found["writing"].value.startswith("at least once")
    assert journal in found["reading, journal"].value
    assert ledger in found["writing, ledger"].value
    for name in ("reading, journal", "writing, ledger"):
        assert (found[name].verdict is Verdict.NOTE) == ("no more" in found[name].value)
    assert ("not tried" in found["writing, ledger"].value) == (so_far == [NOT_TRIED])


def test_rows_that_do_not_go_together(named):
    found = named(guarantee_findings(RABBITMQ, []))["writing"]
    assert (found.value, found.verdict) == ("at least once, row by row, with transaction=none", Verdict.NOTE)


@pytest.mark.parametrize(("dialect", "said"), [(ARTEMIS, "may share one"), (CLASSIC, "one query reads it at a time")])
def test_who_reads_a_durable_subscription(named, dialect, said):
    assert said in named(guarantee_findings(dialect, []))["topics"].value
