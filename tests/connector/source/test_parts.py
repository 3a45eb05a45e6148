import pickle

import pytest

from pyspark_jms.delivery.ledger import Span
from pyspark_jms.errors import BadMessageError
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.source.parts import piece_of, rows_of
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.stomp.wire.scan import FrameScanner

QUEUE = Destination.parse("queue://q")


def run_of(bodies):
    scanner = FrameScanner(max_body_bytes=1000)
    for n, body in enumerate(bodies):
        head = f"MESSAGE\nsubscription:1\nmessage-id:9,{n}\ndestination:q\ncontent-length:{len(body)}\n\n"
        scanner.feed(head.encode() + body + b"\0\n")
    return scanner.take()


def options(**more):
    return SourceOptions.parse({"brokerUrl": "stomp://h", "queue": "q"} | more)


def test_a_piece_of_the_middle_decodes_by_itself_wherever_it_travels():
    run = run_of([b"zero", b"one", b"two", b"three"])
    piece = pickle.loads(pickle.dumps(piece_of(Span(0, run, 1, 3), 41, QUEUE, "artemis")))
    rows = rows_of(piece, options(), StompSource())[0].to_pylist()
    assert [(row["sequence"], row["text"], row["delivery_id"]) for row in rows] == [
        (41, "one", "q/1"),
        (42, "two", "q/2"),
    ]


def test_a_bad_message_is_a_row_or_an_error():
    piece = piece_of(Span(0, run_of([b"\xff", b"good"]), 0, 2), 0, QUEUE, "artemis")
    assert [row["body_error"] is None for row in rows_of(piece, options(), StompSource())[0].to_pylist()] == [
        False,
        True,
    ]
    with pytest.raises(BadMessageError, match=r"1 of 2 messages"):
        rows_of(piece, options(onBadMessage="fail"), StompSource())


def test_a_piece_shows_no_payload():
    piece = piece_of(Span(0, run_of([b"secret"]), 0, 1), 0, QUEUE, "artemis")
    assert "secret" not in repr(piece)
