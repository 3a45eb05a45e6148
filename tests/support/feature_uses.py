"""Uses one feature of the tables of docs/security.md, by the engines that Spark calls."""

import contextlib
import re
from pathlib import Path

import pyarrow as pa
from streaming import stopping
from waiting import wait_until

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.source.peek import peek
from pyspark_jms.spark.protocols import connect_sink, query_of, reading_of

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


def rows(broker):
    """The cells of the broker's table, a list for each row."""
    table = PAGE.read_text().partition(f"<!-- {broker}: begin -->")[2].partition(f"<!-- {broker}: end -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell):
    """The words of a cell that are written as code."""
    return tuple(re.findall(r"`([^`]+)`", cell))


def protocols(feature):
    return [name for name in ("STOMP", "AMQP") if f"over {name}" in feature or "over " not in feature]


def cases(broker):
    """(feature, protocol, whether the destination exists, permissions of the user, whether they are enough)

    Of a table with the permissions that a feature needs, and those that create its destination.
    """
    for feature, _, *cells in rows(broker):
        needs, create = map(words, cells)
        for protocol in protocols(feature):
            yield feature, protocol, True, needs, True
            if create:
                yield feature, protocol, False, (*needs, *create), True
            for one in needs:
                yield feature, protocol, True, tuple(each for each in needs if each != one), False
            for one in create:
                yield feature, protocol, False, tuple(each for each in (*needs, *create) if each != one), False


def use(feature, access, name, put):
    """``name``: of the queue or topic. ``put(count)`` sends messages there, as a user with all permissions."""
    where = {"topic" if "topic" in feature else "queue": name}
    if feature.startswith("write"):
        write(access | where)
    elif feature.startswith("look"):
        put(3)
        options = SourceOptions.parse(access | where)
        assert sum(batch.num_rows for batch in peek(reading_of(options))) == 3
    else:
        durable = {"subscriptionName": "s", "clientId": f"c.{name}"} if "subscriptionName" in feature else {}
        with reading(access | where | durable) as latest_offset:
            put(3)
            wait_until(lambda: latest_offset()["seq"] == 3, what="the messages")


@contextlib.contextmanager
def reading(options):
    """A subscribed source. The value gives its newest offset."""
    parsed = SourceOptions.parse(options)
    with stopping(query_of(reading_of(parsed))) as source:
        start = source.initial_offset()
        source.latest_offset(start)
        yield lambda: source.latest_offset(start)


def write(options):
    parsed, rows = SinkOptions.parse(options), iter([pa.record_batch({"text": ["hello"]})])
    send_at_least_once(connect_sink(parsed), parsed, rows)


def divert(access, dead, source, put_large, left):
    """``put_large()`` sends a message above the limit to the queue ``source``; ``left()``: messages that are there."""
    put_large()
    options = {"queue": source, "deadLetterQueue": dead, "onTooLarge": "deadLetter", "maxMessageBytes": "1k"}
    with reading(access | options) as latest_offset:
        wait_until(lambda: latest_offset()["seq"] == 0 and left() == 0, what="the dead letter")
