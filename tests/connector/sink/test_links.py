import pytest

from pyspark_jms.sink.links import CommitLedger, LedgerLink, RowsDigest, SinkLink, SinkProtocol
from pyspark_jms.stomp.columns import digest
from pyspark_jms.stomp.sink import STOMP_SINK, StompCommitLedger, StompLedgerLink, StompSinkLink


@pytest.mark.parametrize(
    ("protocol", "value"),
    [
        (SinkProtocol, STOMP_SINK),
        (SinkLink, StompSinkLink),
        (LedgerLink, StompLedgerLink),
        (RowsDigest, digest.RowsDigest),
    ],
)
def test_stomp_is_a_protocol_for_writing(protocol, value):
    assert {name for name in vars(protocol) if not name.startswith("_") and not hasattr(value, name)} == set()


def test_stomp_has_a_commit_ledger():
    ledger = STOMP_SINK.commit_ledger(None, "ledger")
    assert isinstance(ledger, StompCommitLedger)
    assert {name for name in vars(CommitLedger) if not name.startswith("_") and not hasattr(ledger, name)} == set()
