from dataclasses import replace

import pyarrow as pa
import pytest

from pyspark_jms.columns.row_parts import sink_columns
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import InvalidDestinationError, MessageFormatError, UnsupportedError
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.encode_headers import (
    check_stable,
    destination_lines,
    fixed_line,
    header_line,
    header_lines,
)
from pyspark_jms.stomp.dialects import ARTEMIS


@pytest.mark.parametrize(
    ("values", "lines"),
    [([b"a", None, b""], [b"\ntype:a", b"", b"\ntype:"]), ([b"a"], [b"\ntype:a"])],
)
def test_a_header_line_is_nothing_for_a_null(values, lines):
    assert join_rows(header_line("type", pa.array(values, pa.binary()))).to_pylist() == lines


def test_names_are_escaped_in_both_kinds_of_lines():
    assert fixed_line("a:b", "c\nd") == b"\na\\cb:c\\nd"
    assert join_rows(header_line("a:b", pa.array([rb"c\nd"], pa.binary()))).to_pylist() == [b"\na\\cb:c\\nd"]


NOW_MS = 1_000_000
MILLISECONDS = pa.timestamp("ms", tz="UTC")
TYPES = {
    "sequence": pa.int64(),
    "JMSDeliveryMode": pa.int32(),
    "JMSPriority": pa.int32(),
    "JMSExpiration": MILLISECONDS,
    "JMSDeliveryTime": MILLISECONDS,
    "time_to_live": pa.int64(),
    "delivery_delay": pa.int64(),
}
RELATIVE = replace(ARTEMIS, send_headers=replace(ARTEMIS.send_headers, delivery_time=None))
ABSOLUTE = replace(ARTEMIS, send_headers=replace(ARTEMIS.send_headers, delivery_delay=None))
LENGTHS = replace(ARTEMIS, send_headers=replace(ARTEMIS.send_headers, expiration=None, time_to_live="expiration"))
BARE = replace(
    ARTEMIS,
    send_headers=replace(
        ARTEMIS.send_headers, type=None, reply_to=None, delivery_delay=None, delivery_time=None, expiration=None
    ),
)


def rows_of(columns, first=10):
    columns = {"sequence": [0] * len(next(iter(columns.values())))} | columns
    arrays = {name: pa.array(values, TYPES.get(name, pa.string())) for name, values in columns.items()}
    batch = pa.record_batch(arrays)
    return Rows(columns=sink_columns(batch), first=first, count=batch.num_rows)


def lines(pieces, count):
    body = pa.repeat(pa.scalar(b"", pa.binary()), count)
    return [entry.decode() for entry in join_rows([*pieces, body]).to_pylist()]


def headers_of(columns, *, dialect=ARTEMIS, transaction=None):
    """The lines of each row after what every row says."""
    rows = rows_of(columns)
    found = lines(header_lines(rows, dialect, transaction, NOW_MS), rows.count)
    return [line.removeprefix("\npersistent:true\npriority:4") for line in found]


def destinations_of(texts, default=None):
    rows = rows_of({"destination": texts})
    return lines([destination_lines(rows, ARTEMIS, default)], rows.count)


# --- destination -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("queue://a", "\ndestination:a\ndestination-type:ANYCAST"),
        ("topic://a", "\ndestination:a\ndestination-type:MULTICAST"),
        ("a", "\ndestination:a\ndestination-type:ANYCAST"),
        ("queue://address::queue", "\ndestination:address\\c\\cqueue\ndestination-type:ANYCAST"),
        ("a\ndestination-type:MULTICAST", "\ndestination:a\\ndestination-type\\cMULTICAST\ndestination-type:ANYCAST"),
        ("topic://é🐘", "\ndestination:é🐘\ndestination-type:MULTICAST"),
    ],
)
def test_a_destination_says_its_kind(text, line):
    assert destinations_of([text, "b", text])[::2] == [line, line]
    assert destinations_of([text, text]) == [line, line]


def test_a_row_without_destination_takes_the_default():
    default = Destination.parse("topic://d")
    wanted = "\ndestination:d\ndestination-type:MULTICAST"
    assert destinations_of([None, None], default) == [wanted] * 2
    assert destinations_of(["a", None, "a"], default)[1] == wanted


@pytest.mark.parametrize("texts", [[None, None], ["a", None]])
def test_no_destination_at_all_is_refused_with_the_remedy(texts):
    row = 10 + texts.index(None)
    with pytest.raises(InvalidDestinationError, match=f"Row {row} .*destination.*queue or topic"):
        destinations_of(texts)


@pytest.mark.parametrize("text", ["", "queue://", "topic://", "ftp://x", "Queue://x", "a\0b", "queue://\0"])
def test_a_malformed_destination_is_refused(text):
    with pytest.raises(InvalidDestinationError, match="destination of row 12 "):
        destinations_of(["a", None, text, text], Destination.parse("queue://d"))


def test_a_row_that_names_management_is_refused_and_the_option_is_not():
    management = Destination.parse("queue://activemq.management")
    reason = r"The destination of row 11 of the task is refused: .* reserved for management, .*Use another name"
    with pytest.raises(InvalidDestinationError, match=reason):
        destinations_of(["a", "activemq.management", "b", "queue://activemq.management"])
    assert destinations_of(["a", None], default=management)[1].startswith("\ndestination:activemq.management\n")


def test_a_destination_that_is_not_utf8_is_refused():
    column = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(InvalidDestinationError, match="row 1 "):
        destination_lines(Rows(columns={"destination": column}, first=0, count=2), ARTEMIS, None)


# --- mode and priority -------------------------------------------------------------------------------


def test_mode_and_priority_are_always_said():
    assert headers_of({"sequence": [1, 2]}) == ["", ""]
    changed = headers_of({"JMSDeliveryMode": [1, 1], "JMSPriority": [9, 9]})
    assert changed == ["\npersistent:false\npriority:9"] * 2


def test_each_row_may_say_its_own_mode_and_priority():
    found = headers_of({"JMSDeliveryMode": [1, None, 2, 1], "JMSPriority": [0, 9, None, None]})
    wanted = [("false", 0), ("true", 9), ("true", 4), ("false", 4)]
    assert found == [
        f"\npersistent:{mode}\npriority:{priority}".removeprefix("\npersistent:true\npriority:4")
        for mode, priority in wanted
    ]


@pytest.mark.parametrize("mode", [0, 3, -1, 2**31 - 1])
def test_another_delivery_mode_is_refused(mode):
    with pytest.raises(MessageFormatError, match=r"Row 11 .*JMSDeliveryMode"):
        headers_of({"JMSDeliveryMode": [None, mode]})


@pytest.mark.parametrize("priority", [10, -1, 127, 200, -(2**31)])
def test_a_priority_that_artemis_would_drop_is_refused(priority):
    with pytest.raises(MessageFormatError, match=r"Row 12 .*JMSPriority .*\b0 to 9"):
        headers_of({"JMSPriority": [0, 9, priority]})


# --- text headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "header"),
    [
        ("JMSCorrelationID", "correlation-id"),
        ("JMSType", "type"),
        ("JMSReplyTo", "reply-to"),
        ("content_type", "content-type"),
    ],
)
def test_a_text_header_is_escaped_and_left_out_when_null(column, header):
    assert headers_of({column: ["a:b\n", None, ""]}) == [f"\n{header}:a\\cb\\n", "", f"\n{header}:"]


@pytest.mark.parametrize("column", ["JMSCorrelationID", "JMSType", "JMSReplyTo", "content_type"])
def test_a_text_header_that_is_not_utf8_is_refused(column):
    array = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(MessageFormatError, match=f"Row 1 .*{column} .*UTF-8"):
        header_lines(Rows(columns={column: array}, first=0, count=2), ARTEMIS, None, NOW_MS)


def test_the_transaction_is_said_escaped():
    assert headers_of({"sequence": [1]}, transaction="a:b") == ["\ntransaction:a\\cb"]


def test_reply_to_is_written_as_the_dialect_spells_it():
    other = replace(
        ARTEMIS, reply_to_prefixes={"/queue/": "queue://", "/temp-queue/": "queue://", "/topic/": "topic://"}
    )
    replies = ["queue://a", "topic://b", "bare", None, "x queue://a"]
    wanted = ["\nreply-to:/queue/a", "\nreply-to:/topic/b", "\nreply-to:bare", "", "\nreply-to:x queue\\c//a"]
    assert headers_of({"JMSReplyTo": replies}, dialect=other) == wanted
    kept = ["queue\\c//a", "topic\\c//b", "bare", None, "x queue\\c//a"]
    assert headers_of({"JMSReplyTo": replies}) == ["" if text is None else f"\nreply-to:{text}" for text in kept]


# --- times -------------------------------------------------------------------------------------------


def test_a_time_to_live_goes_before_an_expiration():
    columns = {"time_to_live": [None, 0, None, 5, 5, None], "JMSExpiration": [None, 77, 77, None, 77, -3]}
    wanted = ["", "", "\nexpires:77", "\nexpires:1000005", "\nexpires:1000005", "\nexpires:1"]
    assert headers_of(columns) == wanted
    assert headers_of({"time_to_live": [9, 9]}) == ["\nexpires:1000009"] * 2


def test_a_delay_goes_before_a_delivery_time():
    columns = {"delivery_delay": [None, 0, None, 5, 5, None], "JMSDeliveryTime": [None, 77, 77, None, 77, -3]}
    wanted = ["", "", "\nAMQ_SCHEDULED_TIME:77", *["\nAMQ_SCHEDULED_DELAY:5"] * 2, "\nAMQ_SCHEDULED_TIME:1"]
    assert headers_of(columns) == wanted
    assert headers_of({"delivery_delay": [9, 9]}) == ["\nAMQ_SCHEDULED_DELAY:9"] * 2


def test_a_broker_with_one_header_for_delivery_gets_the_other_converted():
    columns = {"delivery_delay": [5, None, None], "JMSDeliveryTime": [None, NOW_MS + 7, NOW_MS - 7]}
    relative = ["\nAMQ_SCHEDULED_DELAY:5", "\nAMQ_SCHEDULED_DELAY:7", ""]
    absolute = [f"\nAMQ_SCHEDULED_TIME:{NOW_MS + ms}" for ms in (5, 7, -7)]
    assert headers_of(columns, dialect=RELATIVE) == relative
    assert headers_of(columns, dialect=ABSOLUTE) == absolute


@pytest.mark.parametrize("dialect", [ARTEMIS, RELATIVE, ABSOLUTE, BARE, LENGTHS])
def test_a_row_without_delay_and_end_has_neither_header_whatever_its_instants_are(dialect):
    columns = {"time_to_live": [0, 0], "delivery_delay": [0, 0]}
    instants = {"JMSExpiration": [77, None], "JMSDeliveryTime": [None, NOW_MS + 7]}
    assert headers_of(columns | instants, dialect=dialect) == ["", ""]


@pytest.mark.parametrize("column", ["time_to_live", "delivery_delay"])
def test_a_negative_length_of_time_is_refused(column):
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{column}"):
        headers_of({column: [1, -1]})


def test_a_time_to_live_beyond_all_time_does_not_wrap_around():
    assert headers_of({"time_to_live": [2**63 - 1]}) == [f"\nexpires:{2**63 - 1}"]


# --- what a broker lacks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("JMSType", "t"),
        ("JMSReplyTo", "queue://r"),
        ("delivery_delay", 5),
        ("JMSDeliveryTime", NOW_MS + 1),
        ("JMSExpiration", 5),
    ],
)
def test_a_header_the_broker_has_not_is_refused(column, value):
    assert headers_of({column: [None, None]}, dialect=BARE) == ["", ""]
    reason = {"JMSExpiration": "time_to_live|JMSExpiration"}.get(column, column)
    with pytest.raises(UnsupportedError, match=f"Row 11 .*({reason})"):
        headers_of({column: [None, value]}, dialect=BARE)


def test_a_delivery_time_that_has_passed_asks_nothing_of_the_broker():
    assert headers_of({"JMSDeliveryTime": [NOW_MS - 1, NOW_MS]}, dialect=BARE) == ["", ""]


MAP = pa.map_(pa.string(), pa.string())


def check(rows, *, property_columns=(), types=None):
    batch = pa.RecordBatch.from_pydict(
        {name: pa.array(values, (types or {}).get(name)) for name, values in rows.items()}
    )
    columns = sink_columns(batch, property_columns)
    check_stable(Rows(columns=columns, first=10, count=batch.num_rows))


def test_what_stays_as_it_is():
    check(
        {
            "text": ["\U0001f600\0", "x"],
            "JMSType": ["ä\uffff€", None],
            "properties": [[("ä", "ö\x01\x7f")], [("b", None)]],
        },
        types={"properties": MAP},
    )


@pytest.mark.parametrize("column", ["JMSCorrelationID", "JMSType", "JMSReplyTo", "content_type"])
@pytest.mark.parametrize("text", ["a\U0001f600b", "a\0b"])
def test_a_header_that_would_change(column, text):
    with pytest.raises(MessageFormatError, match=rf"Row 12 .*{column} .*character"):
        check({column: ["a", None, text, "b"], "text": ["x"] * 4})


@pytest.mark.parametrize(
    ("entry", "place"),
    [(("p", "\U0001f600"), "its value has"), (("p", "\0"), "its value has"), (("\U00020000", "v"), "its name has")],
)
def test_a_property_that_would_change(entry, place):
    with pytest.raises(MessageFormatError, match=rf"Row 11 .*property .*: {place} .*character"):
        check({"properties": [[("a", "b"), ("c", "d")], [("e", "f"), entry]]}, types={"properties": MAP})


def test_a_column_that_is_a_property():
    with pytest.raises(MessageFormatError, match=r"Row 11 .*property 'color'"):
        check({"text": ["x", "y"], "color": ["red", "\U0001f534"]}, property_columns=["color"])


def test_what_is_hidden_under_a_null_does_not_count():
    texts = pa.array(["a", "\U0001f600"])
    hidden = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x01"), *texts.buffers()[1:]])
    batch = pa.RecordBatch.from_arrays([hidden], ["JMSType"])
    check_stable(Rows(columns=sink_columns(batch), first=0, count=2))
