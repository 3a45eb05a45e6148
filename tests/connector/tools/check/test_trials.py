"""What is said of what came, what came otherwise, and what came again."""

from datetime import UTC, datetime, timedelta

import pytest
from proton_broker import ProtonBroker

from pyspark_jms.amqp.dialects import AMQP
from pyspark_jms.stomp.dialects import DIALECTS
from pyspark_jms.tools.check.findings import Verdict
from pyspark_jms.tools.check.scratch_queue import ScratchQueue
from pyspark_jms.tools.check.trials import (
    _PROPERTIES,
    _came_back,
    _compared,
    _headers,
    _order,
    _properties,
    _recognised,
    _redelivered,
    selector,
    transactions,
)


def rows(numbers, *, again=False, ids=True):
    return [
        {"text": f"n {number}", "JMSRedelivered": again, "delivery_id": f"id {number}" if ids else None}
        for number in numbers
    ]


@pytest.mark.parametrize(
    ("works", "trusted", "verdict", "said"),
    [
        (True, True, Verdict.FINE, "yes"),
        (False, False, Verdict.FINE, "no; the dialect does not use it"),
        (True, False, Verdict.NOTE, "yes"),
        (False, True, Verdict.PROBLEM, "no"),
    ],
)
def test_only_what_the_dialect_relies_on_is_a_problem(works, trusted, verdict, said):
    found = _compared("browse", works=works, trusted=trusted, yes="yes", no="no")
    assert (found.verdict, found.value) == (verdict, said)


@pytest.mark.parametrize(
    ("first", "lost", "stopped", "left", "verdict"),
    [
        (range(6), range(2, 6), range(2, 6), [], Verdict.FINE),
        (range(6), range(6), range(2, 6), [], Verdict.NOTE),
        (range(6), range(2, 6), range(2, 6), [3], Verdict.NOTE),
        (range(6), range(3, 6), range(2, 6), [], Verdict.PROBLEM),
        (range(6), range(2, 6), [], [], Verdict.PROBLEM),
        (range(5), range(2, 5), range(2, 5), [], Verdict.PROBLEM),
    ],
)
def test_a_message_that_does_not_come_again_is_lost_and_one_too_many_is_at_least_once(
    first, lost, stopped, left, verdict
):
    found = _came_back(*map(rows, (first, lost, stopped, left)), confirms=True)
    assert found.verdict is verdict


def test_the_order_and_the_marks_of_redeliveries():
    assert _order(["n 0", "n 1"]).verdict is Verdict.FINE
    assert _order(["n 1", "n 0"]).verdict is Verdict.NOTE
    again = rows(range(2, 6), again=True)
    found = _redelivered(rows(range(6)), again, again, [1, 1, 1, 1], [2, 1, 1, 1])
    assert found.verdict is Verdict.FINE
    assert "failed deliveries: 1 after a lost connection, 2 after a stop" in found.value
    assert _redelivered(rows(range(6)), rows(range(2, 6)), again, None, None).verdict is Verdict.NOTE


def test_a_redelivery_is_recognised_where_the_dialect_says_so():
    first, again = rows(range(6)), rows(range(2, 6))
    assert _recognised(first, again, AMQP).verdict is Verdict.FINE
    assert _recognised(first, rows(range(2, 6), ids=False), AMQP).verdict is Verdict.PROBLEM
    assert _recognised(first, rows(range(2, 6), ids=False), DIALECTS["rabbitmq"]).verdict is Verdict.FINE


def test_an_echo_of_the_selector_is_no_proof_and_a_refused_coordinator_is_a_note():
    with ProtonBroker() as broker:
        queue = ScratchQueue(broker.settings, "q")
        queue.dialect = AMQP
        (found,) = transactions(queue)
        assert (found.verdict, queue.uses_transactions) == (Verdict.NOTE, False)
        (found,) = selector(queue)
        assert found.value == "of 2 messages that match and 2 that do not, 2 and 2 came; the dialect does not use it"


# --- headers and properties that arrive otherwise ---

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
