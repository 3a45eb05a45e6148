"""What is said of headers and properties that arrive otherwise."""

from datetime import UTC, datetime, timedelta

import pytest

from pyspark_jms.tools.check.findings import Verdict
from pyspark_jms.tools.check.messages import _PROPERTIES, _headers, _properties

NOW = datetime(2026, 11, 26, tzinfo=UTC)
SENT = {
    "JMSCorrelationID": "correlation",
    "JMSType": "kind",
    "JMSReplyTo": "queue://scratch",
    "JMSPriority": 7,
    "JMSDeliveryMode": 2,
}
ROW = SENT | {"JMSMessageID": "ID:1", "JMSTimestamp": NOW, "JMSExpiration": NOW + timedelta(hours=1)}
VALUES = [(name, value) for name, _, value in _PROPERTIES]
TYPES = [(name, kind) for name, kind, _ in _PROPERTIES if kind != "string"]


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({}, Verdict.FINE, "all arrived"),
        ({"JMSPriority": 4}, Verdict.NOTE, "JMSPriority is 4;"),
        ({"JMSMessageID": None}, Verdict.NOTE, "JMSMessageID is null;"),
        ({"JMSExpiration": NOW + timedelta(hours=2)}, Verdict.NOTE, "JMSExpiration is in 2.0 hours and not in 1;"),
    ],
)
def test_headers(changes, verdict, said):
    found = _headers(SENT, ROW | changes, NOW)
    assert found.verdict is verdict
    assert said in found.value


@pytest.mark.parametrize(
    ("values", "types", "verdicts"),
    [
        (VALUES, TYPES, [Verdict.FINE, Verdict.FINE]),
        (VALUES, [], [Verdict.FINE, Verdict.NOTE]),
        (VALUES[1:], TYPES, [Verdict.PROBLEM, Verdict.FINE]),
        (None, None, [Verdict.PROBLEM, Verdict.NOTE]),
    ],
)
def test_properties(values, types, verdicts):
    assert [each.verdict for each in _properties({"properties": values, "property_types": types})] == verdicts
