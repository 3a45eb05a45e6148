from dataclasses import replace

import column_types
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.columns.arrays import join_rows
from pyspark_jms.columns.row_parts import sink_columns
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.schema import PROPERTY_COLUMN, value_type
from pyspark_jms.columns.sink_properties import properties_of, typed_columns
from pyspark_jms.errors import InvalidDestinationError, MessageFormatError, SchemaError, UnsupportedError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.rules import PROPERTY_TYPES, property_value_problem
from pyspark_jms.stomp.columns.encode_headers import (
    check_stable,
    column_lines,
    destination_lines,
    fixed_line,
    header_line,
    header_lines,
    property_lines,
    types_line,
)
from pyspark_jms.stomp.dialects import ARTEMIS, RABBITMQ


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
TYPES = column_types.TYPES | column_types.MILLISECONDS


def without(*columns):
    kept = {column: header for column, header in ARTEMIS.send_headers.items() if column not in columns}
    return replace(ARTEMIS, send_headers=kept)


RELATIVE = without("JMSDeliveryTime")
ABSOLUTE = without("delivery_delay")
LENGTHS = replace(ARTEMIS, send_headers=ARTEMIS.send_headers | {"time_to_live": "expiration"})
BARE = without("JMSType", "JMSReplyTo", "delivery_delay", "JMSDeliveryTime", "JMSExpiration")


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


# --- destination ------------------------------------------------------------------------------------


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
    silent = replace(ARTEMIS, send_destination_headers={kind: {} for kind in ARTEMIS.send_destination_headers})
    rows = rows_of({"destination": [text]})
    assert lines([destination_lines(rows, silent, None)], 1) == [line[: line.rindex("\n")]]


def test_a_row_without_destination_takes_the_default():
    default = Destination.parse("topic://d")
    wanted = "\ndestination:d\ndestination-type:MULTICAST"
    assert destinations_of([None, None], default) == [wanted] * 2
    assert destinations_of(["a", None, "a"], default)[1] == wanted


def test_a_row_that_names_management_is_refused_and_the_option_is_not():
    management = Destination.parse("queue://activemq.management")
    reason = r"The destination of row 11 of the task is refused: .* reserved for management, .*Use another name"
    with pytest.raises(InvalidDestinationError, match=reason):
        destinations_of(["a", "activemq.management", "b", "queue://activemq.management"])
    assert destinations_of(["a", None], default=management)[1].startswith("\ndestination:activemq.management\n")


# --- mode and priority ------------------------------------------------------------------------------


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


def test_a_null_priority_is_none_where_that_is_another_one():
    cases = {"JMSPriority": [None, 4, None], "JMSDeliveryMode": [2, 2, 1]}
    found = [line.partition("\ntimestamp")[0] for line in headers_of(cases, dialect=RABBITMQ)]
    durable = "\ndurable:true\nauto-delete:false\nexclusive:false"
    assert found == ["\npersistent:true", "", f"\npersistent:false{durable}"]
    assert headers_of({"sequence": [1, 2]}, dialect=RABBITMQ) == ["\npersistent:true\ntimestamp:1000"] * 2


# --- text headers -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("column", column_types.TEXT_HEADERS)
def test_a_text_header_that_is_not_utf8_is_refused(column):
    array = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(MessageFormatError, match=f"Row 1 .*{column} .*UTF-8"):
        header_lines(Rows(columns={column: array}, first=0, count=2), ARTEMIS, None, NOW_MS)


def test_reply_to_is_written_as_the_dialect_spells_it():
    other = replace(
        ARTEMIS, reply_to_prefixes={"/queue/": "queue://", "/temp-queue/": "queue://", "/topic/": "topic://"}
    )
    replies = ["queue://a", "topic://b", "bare", None, "x queue://a"]
    wanted = ["\nreply-to:/queue/a", "\nreply-to:/topic/b", "\nreply-to:bare", "", "\nreply-to:x queue\\c//a"]
    assert headers_of({"JMSReplyTo": replies}, dialect=other) == wanted
    kept = ["queue\\c//a", "topic\\c//b", "bare", None, "x queue\\c//a"]
    assert headers_of({"JMSReplyTo": replies}) == ["" if text is None else f"\nreply-to:{text}" for text in kept]


# --- times ------------------------------------------------------------------------------------------


def test_a_time_to_live_goes_before_an_expiration():
    columns = {"time_to_live": [None, 0, None, 5, 5, None], "JMSExpiration": [None, 2_000_000, 2_000_000, None, 77, -3]}
    wanted = ["", "", "\nexpires:2000000", "\nexpires:1000005", "\nexpires:1000005", ""]
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


# --- what a broker lacks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("JMSType", "t"),
        ("JMSReplyTo", "queue://r"),
        ("delivery_delay", 5),
        ("JMSDeliveryTime", NOW_MS + 1),
        ("JMSExpiration", NOW_MS + 5),
    ],
)
def test_a_header_the_broker_has_not_is_refused(column, value):
    assert headers_of({column: [None, None]}, dialect=BARE) == ["", ""]
    reason = {"JMSExpiration": "time_to_live|JMSExpiration"}.get(column, column)
    with pytest.raises(UnsupportedError, match=f"Row 11 .*({reason})"):
        headers_of({column: [None, value]}, dialect=BARE)


def test_a_delivery_time_that_has_passed_asks_nothing_of_the_broker():
    assert headers_of({"JMSDeliveryTime": [NOW_MS - 1, NOW_MS]}, dialect=BARE) == ["", ""]


# --- characters that a broker changes ---------------------------------------------------------------

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


@pytest.mark.parametrize("column", column_types.TEXT_HEADERS)
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


# --- properties -------------------------------------------------------------------------------------


def lines_of(maps, *, dialect=ARTEMIS, columns=()):
    array = maps if isinstance(maps, pa.Array) else pa.array(maps, MAP)
    rows = Rows(columns={"properties": array}, first=5, count=len(array))
    body = pa.repeat(pa.scalar(b"", pa.binary()), len(array))
    properties = properties_of(rows)
    lines = b"" if properties is None else property_lines(properties, dialect, columns)
    return [entry.decode() for entry in join_rows([lines, body]).to_pylist()]


@pytest.mark.parametrize(
    ("maps", "lines"),
    [
        ([[("a", "1"), ("b", "2")]], ["\na:1\nb:2"]),
        ([[("a", "1"), ("b", "2")], [("a", "3"), ("b", "4")]], ["\na:1\nb:2", "\na:3\nb:4"]),
        ([[("a", "1")], [("b", "2")], [("a", "3")]], ["\na:1", "\nb:2", "\na:3"]),
        ([[("a", "1"), ("b", "2")], [("a", "3")], [("b", "4"), ("a", "5"), ("c", "6")]],
         ["\na:1\nb:2", "\na:3", "\nb:4\na:5\nc:6"]),
        ([[("ab", "1"), ("c", "2")], [("a", "3"), ("bc", "4")]], ["\nab:1\nc:2", "\na:3\nbc:4"]),
        ([[], [("a", "1")], None, []], ["", "\na:1", "", ""]),
        ([[], [], None], ["", "", ""]),
        ([[("a", None), ("b", "")]], ["\nb:"]),
        ([[("a", None)], [("a", None)]], ["", ""]),
        ([[("a", "c:d\\"), ("b", "\r\n"), ("c\0", "\0")]], ["\na:c\\cd\\\\\nb:\\r\\n\nc\0:\0"]),
        ([[("é", "🐘")], [("$_1", " v ")]], ["\né:🐘", "\n$_1: v "]),
        ([[("a", "1"), ("JMSXUserID", "me")]] * 2, ["\na:1"] * 2),
        ([[("JMS_AMQP_MA_x-opt-a", "v"), ("NATIVE_MESSAGE_ID", "ID:1"), ("a", "1")]], ["\na:1"]),
        ([[("JMSXDeliveryCount", "1")], [("a", "1"), ("JMSXState", None)]], ["", "\na:1"]),
        ([[("_AMQ_DUPL_ID", "1"), ("a", "1"), ("__AMQ_CID", "x")], [("_AMQ_ORIG_QUEUE", "q")]], ["\na:1", ""]),
        ([[("_AMQ_LVQ_NAME", "key")]], ["\n_AMQ_LVQ_NAME:key"]),
    ],
)  # fmt: skip
def test_each_property_is_a_line_of_its_row(maps, lines):
    assert lines_of(maps) == lines
    assert lines_of([[("x", "y"), ("z", "1")], *maps, [("x", "y")]])[1:-1] == lines
    assert lines_of(pa.array([[("x", "y")], *maps], MAP)[1:]) == lines


def test_jms_names_become_the_dialect_s():
    maps = [[("JMSXGroupID", "g"), ("JMSXGroupSeq", "3")]]
    assert lines_of(maps) == ["\nJMSXGroupID:g\n_AMQ_GROUP_SEQUENCE:3"]
    other = replace(ARTEMIS, send_property_names={"JMSXGroupID": "a:group"})
    assert lines_of([*maps, []], dialect=other) == ["\na\\cgroup:g\nJMSXGroupSeq:3", ""]


@pytest.mark.parametrize("kind", [pa.map_(pa.large_string(), pa.large_string()), MAP])
def test_maps_of_wide_offsets_and_children_that_begin_later(kind):
    names = pa.array(["x", "a", "b", "c"], kind.key_type)[1:]
    values = pa.array(["x", "x", "1", None, "3:"], kind.item_type)[2:]
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), names, values)
    assert maps.type == kind
    assert lines_of(maps) == ["\na:1", "\nc:3\\c"]
    assert lines_of(maps[1:]) == ["\nc:3\\c"]


def test_properties_hidden_under_a_null_are_neither_sent_nor_judged():
    shown = pa.array([[("a", "1")], [("content-length", "2"), ("", "")], [("b", "3")]], MAP)
    visible = pa.array([True, False, True])
    hidden = pa.Array.from_buffers(
        MAP, 3, [visible.buffers()[1], shown.buffers()[1]], null_count=1, children=[shown.values]
    )
    assert hidden.to_pylist()[1] is None
    assert lines_of(hidden) == ["\na:1", "", "\nb:3"]


# --- refused ----------------------------------------------------------------------------------------

STOMP = {"destination", "content-length", "content-type", "receipt", "transaction", "persistent"}


@pytest.mark.parametrize("name", sorted(ARTEMIS.reserved_properties | STOMP))
@pytest.mark.parametrize("row", [0, 1])
def test_a_header_of_the_frame_is_no_property(name, row):
    maps = [[("a", "secret")], [("a", "secret")]]
    maps[row] = [("b", "1"), (name, "secret")]
    with pytest.raises(MessageFormatError, match=f"Row {5 + row} .*property '{name}': .*acts on") as caught:
        lines_of(maps)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["_AMQ_OperationName", "_AMQ_ROUTE_TO", "_AMQ_GROUP_ID", "_AMQ_", "__AMQ_X"])
@pytest.mark.parametrize("other", [[("a", "1")], [("b", "1"), ("c", "2")]])
def test_other_names_that_the_broker_keeps_for_itself_are_refused(name, other):
    with pytest.raises(MessageFormatError, match=f"JMS_MESSAGE_FORMAT.*Row 6 .* property '{name}': .* artemis"):
        lines_of([[("a", "1")], [(name, "secret")], other])
    assert lines_of([[(name, "1")]], dialect=replace(ARTEMIS, reserved_prefixes=())) == [f"\n{name}:1"]


@pytest.mark.parametrize(
    ("names", "values", "fact"),
    [
        ([b"a", b"b\xff"], [b"1", b"2"], "its name is not UTF-8"),
        ([b"a", b"b"], [b"1", b"\xff"], "its value is not UTF-8"),
    ],
)
@pytest.mark.parametrize("bounds", [[0, 1, 2], [0, 0, 2]])
def test_what_is_not_utf8_is_refused(names, values, fact, bounds):
    children = (pa.array(part, pa.binary()).view(pa.string()) for part in (names, values))
    maps = pa.MapArray.from_arrays(pa.array(bounds, pa.int32()), *children)
    with pytest.raises(MessageFormatError, match=f"Row 6 .*property ('b'|number \\d): {fact}"):
        lines_of(maps)


NO_IDENTIFIERS = ["a b", "a-b", "a.b", "1a", "a:b", "a\nb", "a\\", "🐘", "\u2028", "null", "Not"]
LIKE_HEADERS = ["Destination", "destinatio", "x_destination", "persistent2", "ack", "subscription"]


@pytest.mark.parametrize("name", NO_IDENTIFIERS + LIKE_HEADERS)
def test_a_name_that_is_no_identifier_or_resembles_a_header_is_sent(name):
    escaped = name.replace("\\", "\\\\").replace(":", "\\c").replace("\n", "\\n")
    assert lines_of([[(name, "1")]]) == [f"\n{escaped}:1"]
    assert column_lines_of(**{name: pa.array(["1"] * 3)}) == [f"\n{escaped}:1"] * 3


def typed_rows(**columns):
    arrays = {PROPERTY_COLUMN + name: array for name, array in columns.items()}
    return Rows(columns=arrays | {"text": pa.array(["t"] * 3)}, first=5, count=3)


def column_lines_of(**columns):
    rows = typed_rows(**columns)
    found = column_lines(rows, typed_columns(rows), ARTEMIS)
    return [line.decode() for line in join_rows([*found, pa.array([b""] * 3)]).to_pylist()]


@pytest.mark.parametrize(
    ("kind", "values", "type_", "texts"),
    [
        (pa.bool_(), [True, False], "boolean", ["true", "false"]),
        (pa.int8(), [-128, 127], "byte", ["-128", "127"]),
        (pa.int16(), [-32768, 7], "short", ["-32768", "7"]),
        (pa.int32(), [-(2**31), 0], "int", ["-2147483648", "0"]),
        (pa.int64(), [-(2**63), 2**63 - 1], "long", ["-9223372036854775808", "9223372036854775807"]),
        (pa.float32(), [0.1, -0.0], "float", ["0.1", "-0.0"]),
        (pa.float64(), [1e10, float("nan")], "double", ["1.0E10", "NaN"]),
        (pa.string(), ["a:\n", ""], "string", ["a\\c\\n", ""]),
        (pa.large_string(), ["é", "🐘"], "string", ["é", "🐘"]),
    ],
)
def test_a_value_is_written_as_java_does_and_a_null_is_no_property(kind, values, type_, texts):
    wanted = [f"\nname:{texts[0]}", "", f"\nname:{texts[1]}"]
    array = pa.array([None, values[0], None, values[1]], kind)[1:]
    assert column_lines_of(name=array) == wanted
    assert typed_columns(typed_rows(name=array))["name"].kind == type_ == value_type(kind)
    full = pa.array([values[0], values[1], values[0]], kind)
    assert column_lines_of(name=full) == [wanted[0], wanted[2], wanted[0]]
    assert typed_columns(typed_rows(name=pa.nulls(3, kind))) == {}


def test_several_columns_follow_each_other_under_the_broker_s_names():
    found = column_lines_of(
        b=pa.array([1, None, 3]), a=pa.array(["x", "y", None]), JMSXGroupSeq=pa.array([7, 8, 9], pa.int32())
    )
    assert found == [
        "\nb:1\na:x\n_AMQ_GROUP_SEQUENCE:7",
        "\na:y\n_AMQ_GROUP_SEQUENCE:8",
        "\nb:3\n_AMQ_GROUP_SEQUENCE:9",
    ]


def test_a_text_that_is_not_utf8_is_refused():
    array = pa.array([b"a", b"\xff", b"b"], pa.binary()).view(pa.string())
    with pytest.raises(MessageFormatError, match=r"Row 6 .*column name .*UTF-8"):
        column_lines_of(name=array)


@pytest.mark.parametrize("name", ["persistent", "receipt", "priority", "_AMQ_ROUTE_TO", "_AMQ_DUPL_ID"])
def test_a_column_with_the_name_of_a_header_is_refused(name):
    with pytest.raises(SchemaError, match=f"JMS_SCHEMA.*column {name} of propertyColumns"):
        column_lines_of(**{name: pa.array([1, 2, 3])})


def types_of(*rows, **columns):
    """The types each row says, unescaped; rows are (properties, types)."""
    arrays = {
        "properties": pa.array([None, *[properties for properties, _ in rows]], MAP)[1:],
        "property_types": pa.array([None, *[types for _, types in rows]], MAP)[1:],
    }
    arrays |= {PROPERTY_COLUMN + name: array for name, array in columns.items()}
    found = Rows(columns=arrays, first=5, count=len(rows))
    pieces = types_line(found, properties_of(found), typed_columns(found), ARTEMIS)
    lines = join_rows([*pieces, pa.array([b""] * len(rows), pa.binary())]).to_pylist()
    return [line.decode().removeprefix("\nspark_jms_types:").replace("\\c", ":") for line in lines]


A, B = ("a", "1"), ("b", "2.5")


@pytest.mark.parametrize(
    ("properties", "types", "reason"),
    [
        ([A, B], [("a", "int"), ("b", "double")], '{"a":"int","b":"double"}'),
        ([A, B], [("b", "double"), ("a", "byte")], '{"b":"double","a":"byte"}'),
        ([A, B], [("b", "string")], '{"b":"string"}'),
        ([A, B], [], ""),
        ([A, B], None, ""),
        (None, None, ""),
        (None, [], ""),
        ([A, ("b", None)], [("b", "double"), ("a", "long")], '{"a":"long"}'),
        ([("b", None)], [("b", "double")], ""),
        ([A, B], [("a", None), ("b", "float")], '{"b":"float"}'),
        ([A], [("a", None)], ""),
        ([A, ("JMSXUserID", "me")], [("JMSXUserID", "string"), ("a", "short")], '{"a":"short"}'),
        ([A, ("JMS_AMQP_MA_x-a", "v")], [("JMS_AMQP_MA_x-a", "string"), ("a", "short")], '{"a":"short"}'),
        ([A, ("_AMQ_ORIG_MESSAGE_ID", "7")], [("_AMQ_ORIG_MESSAGE_ID", "long"), ("a", "int")], '{"a":"int"}'),
        ([("JMSXGroupSeq", "3")], [("JMSXGroupSeq", "int")], '{"JMSXGroupSeq":"int"}'),
        ([("é\0$", "true")], [("é\0$", "boolean")], '{"é\\\\u0000$":"boolean"}'),
    ],
)
def test_the_types_of_the_row_s_properties_in_its_order(properties, types, reason):
    assert types_of((properties, types)) == [reason]
    beside = ([A, B], [("a", "int")])
    assert types_of(beside, (properties, types), beside) == ['{"a":"int"}', reason, '{"a":"int"}']
    assert types_of((properties, types), (properties, types), ([], [])) == [reason, reason, ""]


def test_rows_without_types_have_no_line():
    rows = Rows(columns={"properties": pa.array([[A]], MAP)}, first=0, count=1)
    assert types_line(rows, properties_of(rows), {}, ARTEMIS) == []


def test_typed_columns_say_their_types_after_the_others():
    price, count = pa.array([1.5, None, 2.5]), pa.array([1, 2, None], pa.int32())
    rows = [([A], [("a", "int")]), ([A], None), (None, None)]
    assert types_of(*rows, price=price, count=count) == [
        '{"a":"int","price":"double","count":"int"}',
        '{"count":"int"}',
        '{"price":"double"}',
    ]
    assert types_of(*[(None, None)] * 3, price=price) == ['{"price":"double"}', "", '{"price":"double"}']
    full = pa.array([1.5, 2.5, 3.5])
    assert types_of(*[([A], None)] * 3, price=full, other=full) == ['{"price":"double","other":"double"}'] * 3


def test_a_type_for_a_column_must_be_the_column_s():
    price = pa.array([1.5, None])
    assert types_of((None, [("price", "double")]), ([A], [("a", "int"), ("price", "double")]), price=price) == [
        '{"price":"double"}',
        '{"a":"int"}',
    ]
    with pytest.raises(MessageFormatError, match=r"Row 6 .*'price': .*double"):
        types_of(([A], None), ([A], [("price", "int")]), price=price)


names = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)


@given(st.lists(st.tuples(names, names), min_size=1, max_size=4), st.data())
def test_each_type_is_found_beside_its_own_property(drawn, data):
    """Whatever the order of properties and types, and whichever rows have them."""
    texts = st.sampled_from(["1", "true", "1.5", "x", "300", None])
    kinds = st.sampled_from(sorted(PROPERTY_TYPES))
    rows = [
        ([(name, data.draw(texts)) for name in there], [(name, data.draw(kinds)) for name in typed])
        for there, typed in drawn
    ]
    wrong = [
        any(name not in dict(there) or property_value_problem(kind, dict(there)[name]) for name, kind in typed)
        for there, typed in rows
    ]
    if any(wrong):
        with pytest.raises(MessageFormatError, match="Row") as caught:
            types_of(*rows)
        assert set(caught.value.__cause__.numbers - 5) <= set(np.flatnonzero(wrong))
        return
    pairs = [[f'"{name}":"{kind}"' for name, kind in typed if dict(there)[name] is not None] for there, typed in rows]
    assert types_of(*rows) == ["{" + ",".join(reason) + "}" if reason else "" for reason in pairs]
