from pyspark_jms.delivery.register.token import Offset, Token
from pyspark_jms.source.readers.history import BatchHistory


def offset(batch, readers=1):
    return Offset(stream="s", address="a", batch=batch, names=("t",) * readers, used=(batch,) * readers)


def token(batch, *, first=0, count=0, reader=0, **metrics):
    return Token(
        stream="s",
        name="t",
        reader=reader,
        batch=batch,
        blocks=int(count > 0),
        first=first,
        next=first + count,
        metrics=tuple({"messages": count, "bytes": 10 * count, **metrics}.items()),
    )


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def history(*batches):
    made = BatchHistory(Clock())
    for each in batches:
        made.began(each.batch)
        made.note(offset(each.batch), {0: each})
    return made


def test_metrics_are_sums_of_this_run():
    made = BatchHistory(Clock())
    made.note(offset(4, 2), {0: token(4, first=7, count=3), 1: token(4, reader=1)})
    assert made.moved() == 0, "of an earlier run"
    assert made.metrics()["staged"] == 3
    made.began(5)
    tokens = {0: token(5, first=10, count=2, redelivered=1), 1: token(5, count=5, reader=1, reconnects=2)}
    for _ in range(2):  # once when it is planned behind, once while idle
        made.note(offset(5, 2), tokens)
    metrics = made.metrics()
    assert (metrics["moved"], metrics["movedBytes"]) == (7, 70)
    assert (metrics["movedByReader"], metrics["movedBytesByReader"]) == ([2, 5], [20, 50])
    assert (metrics["staged"], metrics["retired"], metrics["seq"]) == (7, 3, 17)
    assert (metrics["redelivered"], made.reconnects()) == (1, 2)


def test_a_batch_that_took_something_needs_no_pause():
    assert history(token(1, count=1)).pause_seconds() == 0
    assert history(token(1, deadLetters=1)).pause_seconds() == 0
    assert history(token(1, droppedTooLarge=1)).pause_seconds() == 0


def test_pauses_grow_up_to_a_limit_and_end_with_the_first_message():
    made, pauses = BatchHistory(Clock()), []
    for batch in range(1, 12):
        made.began(batch)
        made.note(offset(batch), {0: token(batch)})
        pauses.append(made.pause_seconds())
    assert pauses[:3] == [0.25, 0.5, 1.0]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 15.0
    assert (made.fruitless, made.was_read) == (11, True)
    made.began(12)
    made.note(offset(12), {0: token(12, count=1)})
    assert (made.pause_seconds(), made.fruitless) == (0, 0)


def test_a_batch_is_unread_if_no_reader_has_its_token():
    made = BatchHistory(Clock())
    made.note(offset(3, 2), {0: token(3), 1: token(3, reader=1)}, frozenset({0, 1}))
    assert not made.was_read
    assert made.pause_seconds() > 0
    made.note(offset(4, 2), {0: token(3), 1: token(2, reader=1)})
    assert (made.was_read, made.fruitless) == (False, 2)
    made.began(5)
    made.note(offset(5, 2), {0: token(5, count=1), 1: token(5, reader=1)}, frozenset({1}))
    assert made.was_read
