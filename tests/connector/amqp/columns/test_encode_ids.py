import uuid

import plain_amqp
import pyarrow as pa
import pytest
from amqp_messages import binary, string, ulong
from plain_amqp import correlation_identifier, take
from sink_rows import rows_of

from pyspark_jms.amqp.columns.encode_ids import correlation_ids
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import MessageFormatError

UUID = b"\x98" + uuid.UUID(int=7).bytes
ENCODED = [UUID, b"\x44", ulong(255), ulong(256), ulong(2**64 - 1), binary(b""), binary(bytes(range(256)) * 2)]
ENCODED += [string(text) for text in ("", "a", "ID:a", "ID:AMQP_UUID:a", "ID:AMQP_x", "é" * 300, "ID:AMQP_STRING:")]
SPELLED = [correlation_identifier(take(value)[0]) for value in ENCODED]


def sent(*ids):
    texts = pa.array(ids, pa.string())
    rows = rows_of(JMSCorrelationID=texts)
    return [take(value)[0] for value in join_rows(correlation_ids(rows, texts.view(pa.binary()))).to_pylist()]


@pytest.mark.parametrize("value", ENCODED, ids=lambda value: f"{value[0]:02x}-{len(value)}")
def test_an_id_is_sent_as_it_came(value):
    """By itself, and among ids that are strings, and nulls."""
    number = take(value)[0]
    spelled = correlation_identifier(number)
    assert sent(spelled) == [number]
    assert sent(None, "a", spelled, "ID:AMQP_NO_PREFIX:b") == [
        (0x40, b""),
        (0xA1, b"a"),
        number,
        (0xA1, b"b"),
    ]


def test_every_type_in_one_batch():
    assert [plain_amqp.correlation_identifier(value) for value in sent(*SPELLED)] == SPELLED


@pytest.mark.parametrize("digits", ["0123456789ABCDEF0123456789ABCDEF", "01234567-89AB-CDEF-0123-456789ABCDEF"])
def test_capital_letters_are_read(digits):
    value = f"ID:AMQP_{'UUID' if '-' in digits else 'BINARY'}:{digits}"
    assert sent(value)[0][1] == bytes.fromhex(digits.replace("-", ""))


@pytest.mark.parametrize(
    "wrong",
    ["UUID:", "UUID:x", f"UUID:{uuid.UUID(int=7).hex}", "ULONG:-1", "ULONG:", f"ULONG:{2**64}", "ULONG:x", "BINARY:0"],
)
def test_what_is_not_of_the_type_that_it_names_is_refused(wrong):
    begin = f"JMSCorrelationID that begins with ID:AMQP_{wrong.partition(':')[0]}: and does not"
    with pytest.raises(MessageFormatError, match=f"Row 12 .*{begin}"):
        sent("a", None, f"ID:AMQP_{wrong}")
