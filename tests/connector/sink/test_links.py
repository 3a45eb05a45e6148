import pytest

from pyspark_jms.amqp.sink import AMQP_SINK, AmqpCommitLedger, AmqpLedgerLink, AmqpSinkLink
from pyspark_jms.delivery.ledger_owner import LedgerOwner
from pyspark_jms.sink.links import CommitLedger, LedgerLink, SinkLink, SinkProtocol
from pyspark_jms.stomp.sink import STOMP_SINK, StompSinkLink


@pytest.mark.parametrize(
    ("protocol", "value"),
    [
        (SinkProtocol, STOMP_SINK),
        (SinkLink, StompSinkLink),
        (SinkProtocol, AMQP_SINK),
        (SinkLink, AmqpSinkLink),
        (LedgerLink, AmqpLedgerLink),
    ],
)
def test_stomp_and_amqp_are_protocols_for_writing(protocol, value):
    assert {name for name in vars(protocol) if not name.startswith("_") and not hasattr(value, name)} == set()


def test_amqp_has_a_commit_ledger():
    ledger = AMQP_SINK.commit_ledger(None, LedgerOwner("query", "q"))
    assert isinstance(ledger, AmqpCommitLedger)
    assert {name for name in vars(CommitLedger) if not name.startswith("_") and not hasattr(ledger, name)} == set()
