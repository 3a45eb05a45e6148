import pytest

from pyspark_jms.amqp.sink import AmqpCommitLedger, AmqpLedgerLink, AmqpSinkLink
from pyspark_jms.sink.links import CommitLedger, LedgerLink, SinkLink
from pyspark_jms.stomp.sink import StompSinkLink


@pytest.mark.parametrize(
    ("port", "value"),
    [
        (SinkLink, StompSinkLink),
        (SinkLink, AmqpSinkLink),
        (LedgerLink, AmqpLedgerLink),
        (CommitLedger, AmqpCommitLedger),
    ],
)
def test_stomp_and_amqp_have_the_ports_for_writing(port, value):
    assert {name for name in vars(port) if not name.startswith("_") and not hasattr(value, name)} == set()
