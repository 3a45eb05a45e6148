"""Trials of deliveries: transactions, windows, selectors, browsing, acknowledgements, missing queues."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from pyspark_jms.errors import JMSError
from pyspark_jms.tools.check.findings import Finding, note, problem
from pyspark_jms.tools.check.scratch_queue import PATIENCE_SECONDS, Row, ScratchQueue, trusts_selectors

__all__ = ["acknowledgements", "browse", "end_of_queue", "missing_queue", "selector", "transactions", "window"]

_SELECTOR = "kind = 'a'"
_END_SECONDS = 10.0
_WINDOW_BYTES, _BODY_BYTES, _MESSAGES = 4_096, 1_000, 16


def transactions(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether a transaction is one. It comes first, because it decides how the other trials send."""
    with closing(queue.connect_sender()) as link:
        if not link.dialect.has_transactions:
            queue.uses_transactions = False
            yield Finding("transactions", "not tried: the dialect has none, and confirms each row")
            return
        try:
            for block in queue.encode(link, _texts("aborted", 3)):
                link.send(block)
        except JMSError as error:
            queue.uses_transactions = False
            yield note("transactions", f"refused: {error.fact}", "Writes need transaction=none on this broker.")
            return
    queue.send(_texts("committed", 2))
    found = _received_texts(queue, 2)
    if found == ["committed 0", "committed 1"]:
        yield Finding("transactions", "an aborted one left nothing, a committed one arrived")
    else:
        yield problem("transactions", f"arrived: {found}")


def window(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether the broker stops when windowBytes are in flight."""
    queue.send([{"text": "x" * _BODY_BYTES}] * _MESSAGES)
    with queue.reader(window_bytes=_WINDOW_BYTES) as reader:
        ahead = reader.count_ahead(queue.patience)
    queue.remove_own()
    if ahead < _MESSAGES:
        yield Finding("window", "the broker waits for acknowledgements when windowBytes are in flight")
    else:
        value = "the broker sends without waiting for acknowledgements"
        yield problem("window", value, "windowBytes has no effect, so a full queue would fill the driver's memory.")


def _texts(text: str, count: int, **columns: Any) -> list[Row]:
    return [{"text": f"{text} {number}", **columns} for number in range(count)]


def _received_texts(queue: ScratchQueue, count: int) -> list[str]:
    with queue.reader() as reader:
        found = reader.receive(count)
        reader.acknowledge()
    return [row["text"] for row in found]


def _compared(name: str, *, works: bool, trusted: bool, yes: str, no: str) -> Finding:
    """Judge a feature that the dialect uses, or not, and that was seen to work, or not."""
    if trusted and not works:
        return problem(name, no, "The dialect relies on it: report this with the file.")
    if works and not trusted:
        return note(name, yes, "The dialect does not use it on this broker: report it with this file.")
    return Finding(name, yes if works else f"{no}; the dialect does not use it")


def selector(queue: ScratchQueue) -> Iterator[Finding]:
    queue.send([{"text": kind, "properties": [("kind", kind)]} for kind in "abab"])
    try:
        with queue.reader(selector=_SELECTOR) as reader:
            found = [row["text"] for row in reader.receive(2)]
    except JMSError as error:
        works, no = False, f"refused: {error.fact}"
    else:
        works = found == ["a", "a"]
        no = f"of 2 messages that match and 2 that do not, {found.count('a')} and {found.count('b')} came"
    yes = "only the messages that match came"
    yield _compared("selector", works=works, trusted=trusts_selectors(queue.dialect), yes=yes, no=no)


def browse(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether another consumer receives the messages while they are shown, and they stay."""
    queue.send(_texts("shown", 3))
    try:
        with queue.reader(browse=True) as shown:
            seen = len(shown.receive(3))
            with queue.reader() as other:
                free = len(other.receive(3, _END_SECONDS / 5))
    except JMSError as error:
        works, no = False, f"refused: {error.fact}"
    else:
        stay = len(_received_texts(queue, 3))
        works = seen == free == stay == 3  # noqa: PLR2004
        no = f"{seen} of 3 messages were shown, {free} of them came to another consumer meanwhile, {stay} stayed"
    yes = "messages are shown, come to other consumers meanwhile, and stay"
    yield _compared("browse", works=works, trusted=queue.dialect.browses, yes=yes, no=no)


def end_of_queue(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether a drain is answered, by which AvailableNow finds the end of a queue."""
    with queue.reader() as reader:
        proven = reader.proves_end(_END_SECONDS)
        reader.receive(0)  # a message of another program would be the reason
    if proven:
        yield Finding("end of queue", "a drain of the empty queue is answered")
    else:
        advice = "AvailableNow does not find the end of a queue."
        yield problem("end of queue", "a drain of the empty queue is not answered", advice)


# --- acknowledgements and redelivery -------------------------------------------------------------------------


def acknowledgements(queue: ScratchQueue) -> Iterator[Finding]:
    """Two of six are acknowledged, the connection is lost, a reader stops in order, and the others are acknowledged."""
    queue.send(_texts("n", 6))
    with queue.reader() as reader:
        first = reader.receive(6)
        confirms = reader.link.confirms_acknowledgements
        reader.acknowledge(2)
        reader.link.drop()  # as the death of the process would
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
        return Finding("order", "messages came in the order in which they were sent")
    return note("order", f"messages came as {', '.join(found)}")


def _came_back(
    first: Sequence[Row], lost: Sequence[Row], stopped: Sequence[Row], left: Sequence[Row], *, confirms: bool
) -> Finding:
    wanted = sorted(row["text"] for row in first[2:])
    again = [sorted(row["text"] for row in each) for each in (lost, stopped)]
    confirmed = "acknowledgements are confirmed" if confirms else "acknowledgements are not confirmed"
    if len(first) == 6 and again == [wanted, wanted] and not left:  # noqa: PLR2004
        value = f"{confirmed}; exactly the messages without one came back after a lost connection and after a stop"
        return Finding("acknowledgements", value)
    value = (
        f"{confirmed}; {len(first)} of 6 messages came, 2 were acknowledged, {len(lost)} came after a lost"
        f" connection, {len(stopped)} after a stop, and {len(left)} after all were acknowledged"
    )
    if len(first) != 6 or any(set(wanted) - set(each) for each in again):  # noqa: PLR2004
        return problem("acknowledgements", value, "Messages were lost.")
    return note("acknowledgements", value, "Acknowledged messages came again: reads are at-least-once.")


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
        return Finding("redelivery", value)
    return note("redelivery", value, "Some redeliveries are not marked.")


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


def missing_queue(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether a message that is accepted is there: some brokers accept and drop it."""
    missing = queue.missing
    try:
        queue.remove_own(queue=missing)
        yield Finding("read missing queue", "the broker creates it, or it exists")
    except JMSError as error:
        yield Finding("read missing queue", f"refused: [{error.code}] {error.fact}")
    try:
        queue.send(_texts("missing", 1), queue=missing)
    except JMSError as error:
        yield Finding("write missing queue", f"refused: [{error.code}] {error.fact}")
        return
    with queue.reader(queue=missing) as reader:
        found = reader.receive(1)
    queue.remove_own(queue=missing)
    if found:
        yield Finding("write missing queue", f"accepted, and {missing} has the message")
    else:
        value = f"accepted, and {missing} does not have the message"
        yield problem("write missing queue", value, "Rows for a wrong name are lost.")
