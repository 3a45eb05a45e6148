import pytest
from streaming import access

from pyspark_jms.check.amqp import amqp_findings
from pyspark_jms.check.findings import Verdict
from pyspark_jms.check.run import CheckRequest, run_checks
from pyspark_jms.options.source import SourceOptions


@pytest.fixture
def settings_of():
    def settings(broker, **more):
        given = access(broker) | {"brokerUrl": broker.amqp_url, "queue": "q"} | more
        return SourceOptions.parse(given).connection

    return settings


def test_what_artemis_offers(broker, queue, settings_of):
    found = {finding.name: finding for finding in amqp_findings(settings_of(broker), queue)}
    assert "apache-activemq-artemis/2." in found["connection"].value
    assert found["dialect"].value == "artemis"
    assert found["column destination"].verdict is found["transactions"].verdict is Verdict.FINE
    assert found["not checked"].verdict is Verdict.NOTE


def test_an_address_of_amqp_is_checked_over_amqp(broker, queue, settings_of):
    found = run_checks(CheckRequest(settings=settings_of(broker), scratch_queue=queue))
    assert [finding.name for finding in found] == [
        "connection", "dialect", "column destination", "transactions", "not checked",
    ]  # fmt: skip


def test_a_wrong_password_is_a_finding(broker, settings_of):
    [finding] = run_checks(CheckRequest(settings=settings_of(broker, password="wrong")))
    assert (finding.name, finding.verdict) == ("connection", Verdict.PROBLEM)
