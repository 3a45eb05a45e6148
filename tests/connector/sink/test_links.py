"""The engine with a protocol that is not STOMP: it needs nothing but the links."""

import pyarrow as pa
import pytest
from memory_sink import MemorySink

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.sending import send_at_least_once


def options_of(**options):
    return SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1", "queue": "q"} | options)


def batches(*sizes):
    return (pa.record_batch({"text": [f"{size}.{n}" for n in range(size)]}) for size in sizes)


@pytest.mark.parametrize(
    ("options", "confirms", "log"),
    [
        ({}, True, ["encode 0+3 open", "encode 3+2 open", "commit 5"]),
        ({"transaction": "4"}, True, ["encode 0+3 open", "encode 3+1 open", "commit 4", "encode 4+1 open", "commit 1"]),
        ({"transaction": "none"}, True, [
            "encode 0+3 confirmed", "await 0+3", "encode 3+2 confirmed", "await 3+2", "commit 0",
        ]),
        ({"transaction": "none"}, False, ["encode 0+2", "encode 2+1", "encode 3+1", "encode 4+1 open", "commit 1"]),
    ],
)  # fmt: skip
def test_each_kind_of_transaction_asks_for_its_confirmations(options, confirms, log):
    sink = MemorySink(confirms_single_messages=confirms)
    assert send_at_least_once(sink, options_of(**options), batches(3, 0, 2), patience=7) == (5, 0)
    assert sink.log == ["connect 7", *log]
    assert sink.messages == ["3.0", "3.1", "3.2", "2.0", "2.1"]


def test_a_broker_without_transactions_is_refused_before_a_message_is_encoded():
    sink = MemorySink(transactions=False)
    with pytest.raises(UnsupportedError):
        send_at_least_once(sink, options_of(), batches(1))
    assert sink.log == ["connect 0"]
    assert send_at_least_once(sink, options_of(transaction="none"), batches(1)) == (1, 0)
