import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from sink_rows import rows_of

from pyspark_jms.columns.row_parts import sink_columns
from pyspark_jms.columns.rows import (
    BODY_TYPES,
    Entries,
    Rows,
    WrongRows,
    body_types,
    compact,
    delivery_of,
    distinct_destinations,
    expiration_of,
    first_given,
    from_now,
    modes_and_priorities,
    parse_destination,
)
from pyspark_jms.columns.schema import TYPED_VALUE
from pyspark_jms.errors import InvalidDestinationError, MessageFormatError, MessageTooLargeError
from pyspark_jms.jms.model import Destination


def numbered(first=0, **columns):
    batch = pa.record_batch(columns)
    return Rows(columns=sink_columns(batch), first=first, count=batch.num_rows)


@pytest.mark.parametrize(
    ("unit", "value", "milliseconds"),
    [
        ("s", 2, 2000),
        ("ms", 2, 2),
        ("us", 2999, 2),
        ("ns", 2_999_999, 2),
        ("us", -1, -1),
        ("s", 2**62, 2**63 - 1 - 807),
    ],
)
def test_instants_are_whole_milliseconds(unit, value, milliseconds):
    array = pa.array([value, None, 0], pa.int64()).cast(pa.timestamp(unit, tz="UTC"))
    values, given = numbered(JMSExpiration=array).integers("JMSExpiration")
    assert (values.tolist(), given.tolist()) == ([milliseconds, 0, 0], [True, False, True])


def test_a_time_zone_does_not_move_an_instant():
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5)))
    for zone in ("UTC", "Asia/Karachi"):
        array = pa.array([moment], pa.timestamp("us", tz=zone))
        assert numbered(JMSExpiration=array).integers("JMSExpiration")[0].tolist() == [moment.timestamp() * 1000]


def test_integers_of_any_width():
    for width in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        values, given = numbered(JMSPriority=pa.array([None, 7], width)).integers("JMSPriority")
        assert (values.tolist(), given.tolist()) == ([0, 7], [False, True])


def test_an_absent_column_is_none():
    rows = numbered(text=pa.array(["a"]))
    assert rows.text("JMSType") is None
    assert rows.integers("JMSPriority") is None
    assert rows.given("map") is None
    assert rows.column("properties") is None


def test_a_column_that_is_null_in_this_run_is_none():
    batch = pa.record_batch({"JMSType": pa.array(["a", None])})
    columns = {name: array.slice(1) for name, array in sink_columns(batch).items()}
    assert Rows(columns=columns, first=1, count=1).text("JMSType") is None


def test_errors_name_the_row_in_the_task():
    rows = numbered(first=40, text=pa.array(["a", "b"]))
    with pytest.raises(MessageFormatError, match=r"^\[JMS_MESSAGE_FORMAT\] Row 41 of the task is odd\. Do it\.$"):
        rows.refuse(1, "is odd", "Do it.")


def test_some_of_the_rows_keep_their_numbers():
    rows = numbered(first=40, text=pa.array(["a", "b", "c", "d"]))
    assert rows.only(np.ones(4, np.bool_)) is rows
    some = rows.only(np.array([True, False, True, True])).only(np.array([False, True, True]))
    assert (some.count, some.text("text").to_pylist()) == (2, [b"c", b"d"])
    assert some.label(1) == "Row 43 of the task"


def test_an_error_is_caused_by_all_rows_with_its_fault():
    rows = numbered(first=40, text=pa.array(["a", "b", "c", "d"])).only(np.array([True, False, True, True]))
    wrong = np.array([False, True, True])
    failures = [
        (lambda: rows.refuse_any(wrong, "is odd", "Do it."), [42, 43]),
        (lambda: rows.refuse(2, "is odd", "Do it."), [43]),
        (lambda: rows.fail(np.array([True]), MessageTooLargeError("It is.")), [40, 42, 43]),
    ]
    for fail, numbers in failures:
        with pytest.raises((MessageFormatError, MessageTooLargeError)) as caught:
            fail()
        assert isinstance(caught.value.__cause__, WrongRows)
        assert caught.value.__cause__.numbers.tolist() == numbers
    rows.refuse_any(np.zeros(3, np.bool_), "is odd", "Do it.")


# --- entries -----------------------------------------------------------------------------------------

BOUNDS = np.array([0, 2, 2, 3, 5])


def entries(names=("a", "b", "c", "d", "x" * 100)):
    rows = Rows(columns={}, first=7, count=4)
    column = None if names is None else pa.array([name.encode() for name in names])
    return Entries(rows, BOUNDS, "a thing", column)


def test_an_entry_belongs_to_a_row():
    assert len(entries()) == 5
    assert entries().owners(np.arange(5)).tolist() == entries().owners_of_all().tolist() == [0, 0, 2, 3, 3]


def test_the_rows_of_wrong_entries_are_refused():
    wrong = np.array([False, False, True, False, True])
    with pytest.raises(MessageFormatError, match=r"Row 9 of the task has a thing 'c': at 2\. Do it\.") as caught:
        entries().refuse_any(wrong, "at {}".format, "Do it.")
    assert caught.value.__cause__.numbers.tolist() == [9, 10]
    with pytest.raises(MessageFormatError, match=r"Row 10 of the task has a thing number 2: it is odd") as caught:
        entries().refuse(4, "it is odd", "Do it.")
    assert len(str(caught.value)) < 200
    entries().refuse_any(np.zeros(5, np.bool_), "it is odd", "Do it.")


def test_entries_without_names_are_known_by_their_place():
    with pytest.raises(MessageFormatError, match="Row 10 of the task has a thing 1: it is odd"):
        entries(None).refuse(4, "it is odd", "Do it.")


def test_some_of_the_entries():
    some = entries().only(np.array([False, True, False, True, True]))
    assert (some.bounds.tolist(), some.names.to_pylist()) == ([0, 1, 1, 1, 3], [b"b", b"d", b"x" * 100])
    assert entries(None).only(np.zeros(5, np.bool_)).bounds.tolist() == [0] * 5


@pytest.mark.parametrize("kind", [pa.map_(pa.string(), pa.string()), pa.list_(pa.string()), pa.large_list(pa.string())])
def test_what_is_hidden_under_a_null_is_gone(kind):
    pairs = pa.types.is_map(kind)
    values = [[("a", "1")], [("b", "2")], [("c", "3")]] if pairs else [["a"], ["b"], ["c"]]
    shown = pa.array(values, kind)
    assert compact(shown) is shown
    visible = pa.array([True, False, True]).buffers()[1]
    hidden = pa.Array.from_buffers(kind, 3, [visible, shown.buffers()[1]], null_count=1, children=[shown.values])
    found = compact(hidden)
    assert found.to_pylist() == [values[0], None, values[2]]
    assert len(found.values) == 2
    tidy = pa.array([values[0], None], kind)
    assert compact(tidy) is tidy


# --- what each row sets in a message ----------------------------------------------------------------

NOW = 1_000
AGO = pa.timestamp("ms", tz="UTC")


def ints(*values):
    return pa.array(values, pa.int64())


def times(*values):
    return pa.array(values, AGO)


@pytest.mark.parametrize(
    ("column", "value"), [("JMSDeliveryMode", 0), ("JMSDeliveryMode", 3), ("JMSPriority", 10), ("JMSPriority", -1)]
)
def test_mode_and_priority_have_ranges(column, value):
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{column}"):
        modes_and_priorities(rows_of(**{column: ints(1, value)}))


def test_an_instant_that_is_over_is_not_sent():
    assert expiration_of(rows_of(JMSExpiration=times(NOW, NOW + 1, -7)), NOW).tolist() == [0, NOW + 1, 0]
    assert expiration_of(rows_of(JMSExpiration=times(7, None)), 0).tolist() == [7, 0], "that two attempts are compared"


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


def test_each_is_made_once():
    assert len(distinct_destinations(rows_of(destination=["q", "q"]), None, _spelled).distinct) == 1


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("ftp://x", "The destination of row 11 of the task is neither queue://NAME"),
        ("", "The destination of row 11 of the task is neither queue://NAME"),
        ("Queue://x", "The destination of row 11 of the task is neither queue://NAME"),
        ("topic://", "The destination of row 11 of the task is neither queue://NAME"),
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


MAPS = pa.array([None, []], pa.map_(pa.string(), TYPED_VALUE))
STREAMS = pa.array([None, []], pa.list_(TYPED_VALUE))


def kinds(**columns):
    return [BODY_TYPES[code].value for code in body_types(rows_of(**columns))]


@pytest.mark.parametrize(
    ("columns", "fact"),
    [
        ({"text": ["a", "b"], "bytes": [None, b"c"]}, "has more than one body"),
        ({"text": ["a", "b"], "map": MAPS}, "has more than one body"),
        ({"bytes": [b"a", b"b"], "stream": STREAMS}, "has more than one body"),
        ({"body_type": ["text", "text"], "stream": STREAMS}, "has body_type text, but its body is in another column"),
        ({"body_type": ["text", "object"], "text": ["a", "b"]}, "has body_type object, but its body is in another"),
        *(
            ({"body_type": [None, kind]}, "has an unknown body_type")
            for kind in ("tuple", "", "TEXT", "text ", "text\0")
        ),
        (
            {"body_type": ["text", "text"], "bytes": [None, b"c"]},
            "has body_type text, but its body is in another column",
        ),
        ({"body_type": ["text", "message"], "text": ["a", "b"]}, "has body_type message, but its body is in another"),
        ({"bytes": [b"a", b"c"], "body_error": [None, "e"]}, "has a body_error: it is not the message that was sent"),
    ],
)
def test_a_body_that_would_be_lost_is_refused(columns, fact):
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{fact}"):
        kinds(**columns)
