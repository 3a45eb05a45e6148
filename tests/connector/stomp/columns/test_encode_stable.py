import pyarrow as pa
import pytest

from pyspark_jms.columns.row_parts import sink_columns
from pyspark_jms.columns.rows import Rows
from pyspark_jms.errors import MessageFormatError
from pyspark_jms.stomp.columns.encode_stable import check_stable

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
