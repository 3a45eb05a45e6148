"""Transactions, selectors, browsing, acknowledgements and missing queues: what is no proof until it was seen."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from pyspark_jms.errors import JMSError
from pyspark_jms.tools.check.conformance.queue import PATIENCE_SECONDS, ConformanceQueue, Row, trusts_selectors
from pyspark_jms.tools.check.findings import Finding, Verdict

__all__ = ["acknowledgements", "browse", "end_of_queue", "missing_queue", "selector", "transactions"]

_SELECTOR = "kind = 'a'"
_END_SECONDS = 10.0


def transactions(queue: ConformanceQueue) -> Iterator[Finding]:
    """First: it decides how the other tests send."""
    with closing(queue.connect_sender()) as link:
        if not link.dialect.has_transactions:
            queue.uses_transactions = False
            yield Finding(name="transactions", value="not tried: the dialect has none, and confirms each row")
            return
        try:
            for block in queue.encode(link, _texts("aborted", 3)):
                link.send(block)
        except JMSError as error:
            queue.uses_transactions = False
            yield Finding(
                name="transactions",
                value=f"refused: {error.fact}",
                verdict=Verdict.NOTE,
                advice="Writes need transaction=none on this broker.",
            )
            return
    queue.send(_texts("committed", 2))
    found = _received_texts(queue, 2)
    wanted = ["committed 0", "committed 1"]
    yield Finding(
        name="transactions",
        value="an aborted one left nothing, a committed one arrived" if found == wanted else f"arrived: {found}",
        verdict=Verdict.FINE if found == wanted else Verdict.PROBLEM,
    )


def _texts(text: str, count: int, **columns: Any) -> list[Row]:
    return [{"text": f"{text} {number}", **columns} for number in range(count)]


def _received_texts(queue: ConformanceQueue, count: int) -> list[str]:
    with queue.reader() as reader:
        found = reader.receive(count)
        reader.acknowledge()
    return [row["text"] for row in found]


def _compared(name: str, *, works: bool, trusted: bool, yes: str, no: str) -> Finding:
    """A feature that the dialect uses, or not, and that was seen to work, or not."""
    if trusted and not works:
        return Finding(
            name=name, value=no, verdict=Verdict.PROBLEM, advice="The dialect relies on it: report this with the file."
        )
    if works and not trusted:
        advice = "The dialect does not use it on this broker: report it with this file."
        return Finding(name=name, value=yes, verdict=Verdict.NOTE, advice=advice)
    return Finding(name=name, value=yes if works else f"{no}; the dialect does not use it")


def selector(queue: ConformanceQueue) -> Iterator[Finding]:
    trusted = trusts_selectors(queue.dialect)
    queue.send([{"text": kind, "properties": [("kind", kind)]} for kind in "abab"])
    try:
        with queue.reader(selector=_SELECTOR) as reader:
            found = [row["text"] for row in reader.receive(2)]
    except JMSError as error:
        no = f"refused: {error.fact}"
        yield _compared("selector", works=False, trusted=trusted, yes="", no=no)
        return
    no = f"of 2 messages that match and 2 that do not, {found.count('a')} and {found.count('b')} came"
    yield _compared(
        "selector", works=found == ["a", "a"], trusted=trusted, yes="only the messages that match came", no=no
    )


def browse(queue: ConformanceQueue) -> Iterator[Finding]:
    """Return whether another consumer receives the messages while they are shown, and they stay."""
    trusted = queue.dialect.browses
    queue.send(_texts("shown", 3))
    try:
        with queue.reader(browse=True) as shown:
            seen = len(shown.receive(3))
            with queue.reader() as other:
                free = len(other.receive(3, _END_SECONDS / 5))
    except JMSError as error:
        yield _compared("browse", works=False, trusted=trusted, yes="", no=f"refused: {error.fact}")
        return
    stay = len(_received_texts(queue, 3))
    no = f"{seen} of 3 messages were shown, {free} of them came to another consumer meanwhile, {stay} stayed"
    yield _compared(
        "browse",
        works=seen == free == stay == 3,  # noqa: PLR2004
        trusted=trusted,
        yes="messages are shown, come to other consumers meanwhile, and stay",
        no=no,
    )


def end_of_queue(queue: ConformanceQueue) -> Iterator[Finding]:
    """AvailableNow asks for it."""
    with queue.reader() as reader:
        proven = reader.proves_end(_END_SECONDS)
        reader.receive(0)  # a message of another program would be the reason
    yield Finding(
        name="end of queue",
        value="a drain of the empty queue is answered" if proven else "a drain of the empty queue is not answered",
        verdict=Verdict.FINE if proven else Verdict.PROBLEM,
        advice="" if proven else "AvailableNow does not find the end of a queue.",
    )


# --- acknowledgements and redelivery -------------------------------------------------------------------------


def acknowledgements(queue: ConformanceQueue) -> Iterator[Finding]:
    """Two of six are acknowledged, the connection is lost, a reader stops in order, and the others are acknowledged."""
    queue.send(_texts("n", 6))
    with queue.reader() as reader:
        first = reader.receive(6)
        confirms = reader.link.confirms_acknowledgements
        reader.acknowledge(2)
        reader.drop()
    with queue.reader() as reader:
        lost = reader.receive(4, PATIENCE_SECONDS)
        after_loss = reader.failed_deliveries()
    with queue.reader() as reader:
        stopped = reader.receive(4, PATIENCE_SECONDS)
        after_stop = reader.failed_deliveries()
        reader.acknowledge()
    with queue.reader() as reader:
        left = reader.receive(0)
        reader.acknowledge()
    yield _order([row["text"] for row in first])
    yield _came_back(first, lost, stopped, left, confirms=confirms)
    yield _redelivered(first, lost, stopped, after_loss, after_stop)
    yield _recognised(first, lost, queue.dialect)


def _order(found: list[str]) -> Finding:
    if found == sorted(found):
        return Finding(name="order", value="messages came in the order in which they were sent")
    value = f"messages came as {', '.join(found)}"
    return Finding(name="order", value=value, verdict=Verdict.NOTE)


def _came_back(
    first: Sequence[Row], lost: Sequence[Row], stopped: Sequence[Row], left: Sequence[Row], *, confirms: bool
) -> Finding:
    wanted = sorted(row["text"] for row in first[2:])
    again = [sorted(row["text"] for row in each) for each in (lost, stopped)]
    confirmed = "acknowledgements are confirmed" if confirms else "acknowledgements are not confirmed"
    if len(first) == 6 and again == [wanted, wanted] and not left:  # noqa: PLR2004
        value = f"{confirmed}; exactly the messages without one came back after a lost connection and after a stop"
        return Finding(name="acknowledgements", value=value)
    missing = len(first) != 6 or any(set(wanted) - set(each) for each in again)  # noqa: PLR2004
    return Finding(
        name="acknowledgements",
        value=f"{confirmed}; {len(first)} of 6 messages came, 2 were acknowledged, {len(lost)} came after a lost"
        f" connection, {len(stopped)} after a stop, and {len(left)} after all were acknowledged",
        verdict=Verdict.PROBLEM if missing else Verdict.NOTE,
        advice="Messages were lost." if missing else "Acknowledged messages came again: reads are at-least-once.",
    )


def _redelivered(
    first: Sequence[Row],
    lost: Sequence[Row],
    stopped: Sequence[Row],
    after_loss: list[int] | None,
    after_stop: list[int] | None,
) -> Finding:
    flags = [sum(bool(row["JMSRedelivered"]) for row in each) for each in (first, lost, stopped)]
    value = (
        f"JMSRedelivered: {flags[0]} of 6 at first, {flags[1]} of 4 after a lost connection, {flags[2]} after a stop"
    )
    if after_loss and after_stop:
        value += f"; failed deliveries: {max(after_loss)} after a lost connection, {max(after_stop)} after a stop"
    if flags[1] == len(lost):
        return Finding(name="redelivery", value=value)
    return Finding(name="redelivery", value=value, verdict=Verdict.NOTE, advice="Some redeliveries are not marked.")


def _recognised(first: Sequence[Row], lost: Sequence[Row], dialect: Any) -> Finding:
    ids = {row["text"]: row["delivery_id"] for row in first}
    works = bool(lost) and all(row["delivery_id"] is not None for row in lost)
    works = works and all(ids.get(row["text"]) == row["delivery_id"] for row in lost)
    trusted = getattr(dialect, "stable_id_separator", "") is not None
    return _compared(
        "delivery_id",
        works=works,
        trusted=trusted,
        yes="is the same when a message is delivered again",
        no="does not recognise a message that is delivered again",
    )


# --- a queue that does not exist -----------------------------------------------------------------------------


def missing_queue(queue: ConformanceQueue) -> Iterator[Finding]:
    """A message that is accepted must be there: some brokers accept and drop it."""
    missing = queue.missing
    try:
        queue.remove_own(queue=missing)
        yield Finding(name="read missing queue", value="the broker creates it, or it exists")
    except JMSError as error:
        yield Finding(name="read missing queue", value=f"refused: [{error.code}] {error.fact}")
    try:
        queue.send(_texts("missing", 1), queue=missing)
    except JMSError as error:
        yield Finding(name="write missing queue", value=f"refused: [{error.code}] {error.fact}")
        return
    with queue.reader(queue=missing) as reader:
        found = reader.receive(1)
    queue.remove_own(queue=missing)
    yield Finding(
        name="write missing queue",
        value=f"accepted, and {missing} {'has' if found else 'does not have'} the message",
        verdict=Verdict.FINE if found else Verdict.PROBLEM,
        advice="" if found else "Rows for a wrong name are lost.",
    )
