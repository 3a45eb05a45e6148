import numpy as np
import pytest
from streaming import access

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.stomp.dialects import DIALECTS
from pyspark_jms.tools.moving.stomp import StompMover, origin_of, require_kept_transactions

QUEUE = DestinationKind.QUEUE


def _block(*headers):
    head = b"\n".join([b"MESSAGE", *headers])
    data = head + b"\n\nbody\0\n"
    return MessageBlock(data, index_of(np.array([len(head)])), index_of(np.array([len(data)])))


@pytest.mark.parametrize(
    ("dialect", "headers", "origin"),
    [
        ("artemis", [b"_AMQ_ORIG_QUEUE:q", b"_AMQ_ORIG_ADDRESS:q"], Destination(QUEUE, "q")),
        ("artemis", [b"_AMQ_ORIG_QUEUE:a\\cb", b"_AMQ_ORIG_ADDRESS:a\\cb"], Destination(QUEUE, "a:b")),
        ("artemis", [b"_AMQ_ORIG_QUEUE:c.s", b"_AMQ_ORIG_ADDRESS:topic"], None),
        ("artemis", [b"a:b"], None),
        ("classic", [b"original-destination:/queue/a.b"], Destination(QUEUE, "a.b")),
        ("classic", [b"original-destination:/topic/a.b"], None),
    ],
)
def test_the_origin_is_a_queue(dialect, headers, origin):
    assert origin_of(_block(*headers), 0, DIALECTS[dialect]) == origin


@pytest.mark.parametrize("dialect", ["artemis", "classic"])
def test_a_broker_with_transactions_can_move(dialect):
    require_kept_transactions(DIALECTS[dialect])


def test_a_broker_without_them_is_refused():
    with pytest.raises(UnsupportedError, match="could lose messages"):
        require_kept_transactions(DIALECTS["rabbitmq"])


def test_closing_it_ends_both_connections(broker, queue):
    link = StompMover(SourceOptions.parse(access(broker) | {"queue": queue}).connection)
    link.close()
    assert link.connection.is_down
    assert link._sink.is_down
