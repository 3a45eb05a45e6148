import re
from dataclasses import replace

import pyarrow as pa
import pytest

from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_properties import properties_of
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import MessageFormatError
from pyspark_jms.jms.rules import property_name_problem
from pyspark_jms.stomp.columns.encode_properties import property_lines
from pyspark_jms.stomp.dialects import ARTEMIS

TEXT_MAP = pa.map_(pa.string(), pa.string())


def lines_of(maps, *, dialect=ARTEMIS, columns=()):
    array = maps if isinstance(maps, pa.Array) else pa.array(maps, TEXT_MAP)
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
    assert lines_of(pa.array([[("x", "y")], *maps], TEXT_MAP)[1:]) == lines


def test_jms_names_become_the_dialect_s():
    maps = [[("JMSXGroupID", "g"), ("JMSXGroupSeq", "3")]]
    assert lines_of(maps) == ["\nJMSXGroupID:g\n_AMQ_GROUP_SEQUENCE:3"]
    other = replace(ARTEMIS, send_property_names={"JMSXGroupID": "a:group"})
    assert lines_of([*maps, []], dialect=other) == ["\na\\cgroup:g\nJMSXGroupSeq:3", ""]


@pytest.mark.parametrize("text", ["", "x", "1.0", "2147483648", "1\n"])
def test_a_group_sequence_is_an_int(text):
    with pytest.raises(MessageFormatError, match=r"Row 6 .*property 'JMSXGroupSeq': .*value"):
        lines_of([[("JMSXGroupSeq", "-3")], [("JMSXGroupSeq", text)], [("JMSXGroupSeq", None)]])


@pytest.mark.parametrize("kind", [pa.map_(pa.large_string(), pa.large_string()), TEXT_MAP])
def test_maps_of_wide_offsets_and_children_that_begin_later(kind):
    names = pa.array(["x", "a", "b", "c"], kind.key_type)[1:]
    values = pa.array(["x", "x", "1", None, "3:"], kind.item_type)[2:]
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), names, values)
    assert maps.type == kind
    assert lines_of(maps) == ["\na:1", "\nc:3\\c"]
    assert lines_of(maps[1:]) == ["\nc:3\\c"]


def test_properties_hidden_under_a_null_are_neither_sent_nor_judged():
    shown = pa.array([[("a", "1")], [("content-length", "2"), ("", "")], [("b", "3")]], TEXT_MAP)
    visible = pa.array([True, False, True])
    hidden = pa.Array.from_buffers(
        TEXT_MAP, 3, [visible.buffers()[1], shown.buffers()[1]], null_count=1, children=[shown.values]
    )
    assert hidden.to_pylist()[1] is None
    assert lines_of(hidden) == ["\na:1", "", "\nb:3"]


# --- refused -----------------------------------------------------------------------------------------

STOMP = {"destination", "content-length", "content-type", "receipt", "transaction", "persistent"}


@pytest.mark.parametrize("name", sorted(ARTEMIS.reserved_properties | STOMP))
@pytest.mark.parametrize("row", [0, 1])
def test_a_header_of_the_frame_is_no_property(name, row):
    maps = [[("a", "secret")], [("a", "secret")]]
    maps[row] = [("b", "1"), (name, "secret")]
    with pytest.raises(MessageFormatError, match=f"Row {5 + row} .*property '{name}': .*header") as caught:
        lines_of(maps)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["_AMQ_OperationName", "_AMQ_ROUTE_TO", "_AMQ_GROUP_ID", "_AMQ_", "__AMQ_X"])
@pytest.mark.parametrize("other", [[("a", "1")], [("b", "1"), ("c", "2")]])
def test_other_names_that_the_broker_keeps_for_itself_are_refused(name, other):
    with pytest.raises(MessageFormatError, match=f"JMS_MESSAGE_FORMAT.*Row 6 .* property '{name}': .* artemis"):
        lines_of([[("a", "1")], [(name, "secret")], other])
    assert lines_of([[(name, "1")]], dialect=replace(ARTEMIS, reserved_prefixes=())) == [f"\n{name}:1"]


def test_a_dialect_that_reserves_nothing_still_keeps_its_own_headers():
    careless = replace(ARTEMIS, reserved_properties=frozenset())
    for name in STOMP | {"expires", "correlation-id", "AMQ_SCHEDULED_DELAY"}:
        with pytest.raises(MessageFormatError, match=r"JMS_MESSAGE_FORMAT.* header"):
            lines_of([[(name, "1")]], dialect=careless)


@pytest.mark.parametrize("maps", [[[("a", "1")], [("a", "1"), ("", "2")]], [[("a", "1")], [("", "2")], [("", "3")]]])
def test_a_property_without_a_name_is_refused(maps):
    with pytest.raises(MessageFormatError, match=r"Row 6 .*property number \d: its name is empty"):
        lines_of(maps)


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


def test_a_long_name_is_shortened_in_the_error():
    name = "n" * 1000
    pair = pa.MapArray.from_arrays(
        pa.array([0, 1], pa.int32()), pa.array([name]), pa.array([b"\xff"], pa.binary()).view(pa.string())
    )
    with pytest.raises(MessageFormatError) as caught:
        lines_of(pair)
    assert len(str(caught.value)) < 250


NO_IDENTIFIERS = [
    "a b",
    "a-b",
    "a.b",
    "1a",
    "a:b",
    "a\nb",
    "a\\",
    "\0",
    "🐘",
    "\u2028",
    "null",
    "Not",
    "between",
    "JMSFoo",
    "JMSXFoo",
]


@pytest.mark.parametrize("name", [*NO_IDENTIFIERS, "spark_jms_body", "spark_jms_types", "spark_jms_other"])
def test_a_name_that_jms_does_not_allow_is_refused_with_its_rule(name):
    rule = property_name_problem(name)
    label = repr(name) if re.fullmatch(r"JMSX?Foo|spark_jms_\w+|a-b", name) else "number 2"
    with pytest.raises(
        MessageFormatError, match=re.escape(f"Row 6 of the task has a property {label}: its name {rule}")
    ):
        lines_of([[("a", "1")], [("a", "1"), (name, "2")]])
    with pytest.raises(MessageFormatError, match="Row 5 "):
        lines_of([[(name, None)], [(name, "2")]])


@pytest.mark.parametrize(
    "maps", [[[("a", "1")], [("a-", "1")], [("b-", "1")]], [[("a", "1")], [("a-", "1"), ("b-", "2")], [("b-", "1")]]]
)
def test_all_rows_with_a_bad_name_are_known(maps):
    with pytest.raises(MessageFormatError, match=r"Row 6 .*property 'a-'") as caught:
        lines_of(maps)
    assert caught.value.__cause__.numbers.tolist() == [6, 7]


def test_a_property_that_is_a_column_as_well_is_refused():
    maps = [[("a", "1")], [("a", "1"), ("b", None)]]
    assert lines_of(maps, columns=["c"]) == ["\na:1", "\na:1"]
    with pytest.raises(MessageFormatError, match=r"Row 6 .*property 'b': .*column"):
        lines_of(maps, columns=["c", "b"])


@pytest.mark.parametrize("close", ["Destination", "destinatio", "x_destination", "persistent2", "ack", "subscription"])
def test_a_name_that_only_resembles_a_header_is_a_property(close):
    assert lines_of([[(close, "1")]]) == [f"\n{close}:1"]
