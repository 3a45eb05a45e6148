"""The messages that are moved, and the reader that looks for ids only."""

import pytest

from bench import raw
from bench.job import Job
from pyspark_jms.stomp.wire.frame import parse_frame


def job(**changes):
    settled = {
        "host": "127.0.0.1", "port": 1, "user": "u", "password": "p", "broker_pid": 0, "queue": "q",
        "messages": 10, "per_transaction": 4,
    }  # fmt: skip
    return Job(**settled | changes)


def test_a_frame_is_a_text_message_of_the_size_that_was_asked_for():
    frame = parse_frame(raw.frame(job(body_bytes=100), 7)[:-1] + b"\0")
    assert (frame.command, frame.header("destination"), frame.header("persistent")) == ("SEND", "q", "true")
    assert frame.header("content-length") is None
    assert (len(frame.body), frame.body[:12]) == (100, b"000000000007")
    assert frame.header("customer") == "C7"


@pytest.mark.parametrize("number", [0, 1, 5, 7, 100])
def test_so_many_properties(number):
    own = job(properties=number).properties_of(3)
    assert len(own) == number
    headers = parse_frame(raw.frame(job(properties=number), 3)).headers
    assert dict(headers[3:]) == own


def test_transactions_hold_every_message_once():
    numbers = [i for rows in job().transactions() for i in rows]
    assert numbers == list(range(10))
    assert [len(rows) for rows in job().transactions()] == [4, 4, 2]


def test_a_password_is_not_shown():
    assert "p4ss" not in repr(job(password="p4ss"))


class Pieces:
    """What ``recv`` gives, piece by piece; a real one would cut where it likes."""

    def __init__(self, pieces):
        self._pieces = iter(pieces)

    def recv(self, _size):
        return next(self._pieces, b"")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
def test_ids_are_found_wherever_reads_are_cut(size):
    frames = b"".join(b"MESSAGE\nmessage-id:1,%d\ndestination:q\n\n%b\0\n" % (i, b"x" * i) for i in range(30))
    pieces = [frames[at : at + size] for at in range(0, len(frames), size)]
    found = []
    for ids in raw._ids(Pieces(pieces)):
        found += ids
        if len(found) >= 30:
            break
    assert found == [b"1,%d" % i for i in range(30)]


def test_an_error_frame_is_an_error():
    with pytest.raises(ConnectionError, match="no such user"):
        next(raw._ids(Pieces([b"ERROR\nmessage:no such user\n\n\0"])))
