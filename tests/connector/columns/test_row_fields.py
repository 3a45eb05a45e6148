"""What each row sets in a message: times, priorities, destinations and body types."""

import numpy as np
import pyarrow as pa
import pytest
from sink_rows import rows_of

from pyspark_jms.columns.row_fields import (
    BODY_TYPES,
    PRIORITIES,
    body_types,
    delivery_of,
    distinct_destinations,
    expiration_of,
    first_given,
    from_now,
    modes_and_priorities,
    parse_destination,
)
from pyspark_jms.errors import InvalidDestinationError, MessageFormatError
from pyspark_jms.jms.model import Destination

NOW = 1_000
AGO = pa.timestamp("ms", tz="UTC")


def ints(*values):
    return pa.array(values, pa.int64())


def times(*values):
    return pa.array(values, AGO)


def test_mode_and_priority():
    assert modes_and_priorities(rows_of(text=["a", "b"])).tolist() == [2 * PRIORITIES + 4]
    rows = rows_of(JMSDeliveryMode=ints(1, None), JMSPriority=ints(None, 9))
    assert modes_and_priorities(rows).tolist() == [PRIORITIES + 4, 2 * PRIORITIES + 9]


@pytest.mark.parametrize(("column", "value"), [("JMSDeliveryMode", 0), ("JMSDeliveryMode", 3), ("JMSPriority", 10)])
def test_mode_and_priority_have_ranges(column, value):
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{column}"):
        modes_and_priorities(rows_of(**{column: ints(1, value)}))


def test_a_time_to_live_comes_before_an_instant():
    rows = rows_of(time_to_live=ints(5, None, None, None), JMSExpiration=times(7, 7, None, -7))
    assert expiration_of(rows, NOW).tolist() == [NOW + 5, 7, 0, 1]


def test_a_time_to_live_of_0_is_a_value_and_means_never():
    rows = rows_of(time_to_live=ints(0, 0, 5, None), JMSExpiration=times(None, 7, 7, None))
    assert expiration_of(rows, NOW).tolist() == [0, 0, NOW + 5, 0]
    rows = rows_of(time_to_live=ints(0, 0))
    assert expiration_of(rows, NOW).tolist() == [0, 0]


def test_a_delivery_delay_of_0_is_a_value_and_means_now():
    rows = rows_of(delivery_delay=ints(0, 0, 5, None), JMSDeliveryTime=times(None, 7, 7, None))
    delays, instants = delivery_of(rows)
    assert (delays.tolist(), instants.tolist()) == ([0, 0, 5, 0], [0, 0, 0, 0])


def test_a_row_without_times_neither_expires_nor_waits():
    assert expiration_of(rows_of(text=["a"]), NOW).tolist() == [0]
    assert [found.tolist() for found in delivery_of(rows_of(text=["a"]))] == [[0], [0]]


def test_a_delay_comes_before_an_instant():
    rows = rows_of(delivery_delay=ints(5, None, None), JMSDeliveryTime=times(7, 7, None))
    delays, instants = delivery_of(rows)
    assert (delays.tolist(), instants.tolist()) == ([5, 0, 0], [0, 7, 0])


def test_a_duration_is_not_negative():
    with pytest.raises(MessageFormatError, match=r"Row 10 .*time_to_live"):
        expiration_of(rows_of(time_to_live=ints(-1)), NOW)
    with pytest.raises(MessageFormatError, match=r"Row 10 .*delivery_delay"):
        delivery_of(rows_of(delivery_delay=ints(-1)))


def test_an_instant_beyond_64_bits_is_the_last_one():
    assert from_now(NOW, np.array([2**63 - 1, 0])).tolist() == [2**63 - 1, 0]
    assert first_given(np.array([0, 3]), np.array([4, 5])).tolist() == [4, 3]


TOPIC = Destination.parse("topic://t")


def made(default, *texts):
    found = distinct_destinations(rows_of(destination=pa.array(texts, pa.string())), default, _spelled)
    which = [0] * len(texts) if found.indices is None else found.indices.to_pylist()
    return [found.distinct[index] for index in which]


def _spelled(destination, by_row):
    if destination.name == "bad":
        raise InvalidDestinationError("The name is bad.", "Use another.")
    return f"{destination} {by_row}"


def test_every_row_has_the_default():
    assert distinct_destinations(rows_of(text=["a"]), TOPIC, _spelled).indices is None
    assert made(TOPIC, None, None) == ["topic://t False"] * 2


def test_rows_name_their_own():
    assert made(TOPIC, "q", None, "topic://x", "q") == [
        "queue://q True",
        "topic://t False",
        "topic://x True",
        "queue://q True",
    ]


def test_each_is_made_once():
    assert len(distinct_destinations(rows_of(destination=["q", "q"]), None, _spelled).distinct) == 1


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("ftp://x", "The destination of row 11 of the task is neither queue://NAME"),
        ("", "The destination of row 11 of the task is neither queue://NAME"),
        ("a\0", "The destination of row 11 of the task is neither queue://NAME"),
        ("bad", "The destination of row 11 of the task is refused: The name is bad"),
        (None, "Row 11 of the task has no destination"),
    ],
)
def test_refused_destinations(text, fact):
    with pytest.raises(InvalidDestinationError, match=fact):
        made(None, "q", text)


def test_parse():
    assert parse_destination(b"a") == Destination.parse("queue://a")
    assert parse_destination(b"topic://t") == TOPIC
    assert parse_destination(b"\xff") is None


def kinds(**columns):
    return [BODY_TYPES[code].value for code in body_types(rows_of(**columns))]


def test_the_only_body_decides():
    assert kinds(text=["a", None, None], bytes=[None, b"b", None]) == ["text", "bytes", "message"]


def test_a_stated_type_counts():
    assert kinds(body_type=["object", "text", None], bytes=[b"a", None, b"c"]) == ["object", "text", "bytes"]


@pytest.mark.parametrize(
    ("columns", "fact"),
    [
        ({"text": ["a", "b"], "bytes": [None, b"c"]}, "has more than one body"),
        ({"body_type": [None, "tuple"]}, "has an unknown body_type"),
        (
            {"body_type": ["text", "text"], "bytes": [None, b"c"]},
            "has body_type text, but its body is in another column",
        ),
        ({"body_type": ["text", "message"], "text": ["a", "b"]}, "has body_type message, but its body is in another"),
    ],
)
def test_a_body_that_would_be_lost_is_refused(columns, fact):
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{fact}"):
        kinds(**columns)
