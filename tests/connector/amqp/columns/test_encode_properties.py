import numpy as np
import plain_amqp
import pyarrow as pa
import pytest
from sink_rows import DEFAULTS, rows_of

from pyspark_jms.amqp.columns.encode_destinations import addresses_of, reply_addresses_of
from pyspark_jms.amqp.columns.encode_properties import Identity, properties
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import MessageFormatError

NULL = (0x40, b"")


def found(rows, expirations=(0,), content_types=(b"\x40",), groups=()):
    pieces = properties(
        rows,
        Identity("ID:p-", 0x0102),
        to=addresses_of(rows, ARTEMIS, DEFAULTS.destination),
        reply_to=reply_addresses_of(rows, ARTEMIS),
        content_types=list(content_types),
        expirations=np.array(expirations),
        groups=list(groups),
    )
    sections = [plain_amqp.sections(message) for message in join_rows(pieces).to_pylist()]
    return [plain_amqp.fields(value, 13) for ((_, value),) in sections]


def test_every_field_has_its_place():
    rows = rows_of(text=["a"], JMSType=["ty"], JMSReplyTo=["r"], JMSCorrelationID=["c"])
    (fields,) = found(rows, [9], [b"\xa3\x01m"], [[b"\xa1\x01g"], [b"\x43"]])
    assert fields == {
        0: (0xA1, b"ID:p-000000000010"),
        1: NULL,
        2: (0xA1, b"default"),
        3: (0xA1, b"ty"),
        4: (0xA1, b"r"),
        5: (0xA1, b"c"),
        6: (0xA3, b"m"),
        7: NULL,
        8: (0x83, (9).to_bytes(8, "big")),
        9: (0x83, (0x0102).to_bytes(8, "big")),
        10: (0xA1, b"g"),
        11: (0x43, b""),
    }


def test_absent_headers_are_null():
    (fields,) = found(rows_of(text=["a"]))
    assert [index for index, value in fields.items() if value != NULL] == [0, 2, 9]
    assert len(fields) == 10


def test_each_row_has_its_own():
    first, second = found(rows_of(JMSType=["x", None], JMSCorrelationID=[None, "ID:y"]), [0, 8])
    assert (first[3], first[5], first[8]) == ((0xA1, b"x"), NULL, NULL)
    assert (second[3], second[5], second[8]) == (NULL, (0xA1, b"ID:y"), (0x83, (8).to_bytes(8, "big")))
    assert (first[0], second[0]) == ((0xA1, b"ID:p-000000000010"), (0xA1, b"ID:p-000000000011"))


def test_a_message_id_ends_with_the_number_of_the_row():
    rows = rows_of(text=["a"] * 3)
    numbered = Rows(columns=rows.columns, first=0, count=3, numbers=np.array([0, 9_999, 123_456_789_012]))
    assert [row[0][1] for row in found(numbered)] == [b"ID:p-000000000000", b"ID:p-000000009999", b"ID:p-123456789012"]


@pytest.mark.parametrize("column", ["JMSType", "JMSCorrelationID"])
def test_what_is_not_utf8_is_refused(column):
    texts = pa.array([b"a", b"\xff"]).view(pa.string())
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{column} .*UTF-8"):
        found(rows_of(**{column: texts}))
