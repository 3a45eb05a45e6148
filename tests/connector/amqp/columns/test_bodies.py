"""The columns of bodies; their other rules are tested with the reader of one message."""

import numpy as np
import pyarrow as pa
import pytest
from amqp_messages import NULL, binary, int_, list_, map_, section, string, walked

from pyspark_jms.amqp.columns.bodies import body_columns, is_text_type
from pyspark_jms.amqp.columns.byte_reader import Refusals

TEXT, DATA, NONE = section(0x77, string("hi")), section(0x75, binary(b"\xff")), section(0x77, NULL)
MAP, LIST = section(0x77, map_([(string("k"), int_(1))])), section(0x77, list_(int_(1), NULL))


def columns(messages, annotations=None, content_types=None, choice="auto"):
    found, refused = with_refused(messages, annotations, content_types, choice)
    assert not refused
    return found


def with_refused(messages, annotations=None, content_types=None, choice="auto"):
    rows, (reader, parts) = len(messages), walked(messages)
    types, refusals = pa.array(content_types or [None] * rows, pa.string()), Refusals()
    annotated = np.array(annotations or [-1] * rows)
    found = body_columns(reader, parts, refusals, annotations=annotated, content_types=lambda: types, choice=choice)
    for column in found.values():
        column.validate(full=True)
    return {name: column.to_pylist() for name, column in found.items()}, refusals.rows().tolist()


@pytest.mark.parametrize(
    ("message", "annotation", "choice"),
    [
        (section(0x77, int_(1)), -1, "auto"),
        (TEXT, 3, "auto"),
        (DATA, -1, "text"),
        (section(0x77, map_([(b"\xa1\x01\xff", NULL)])), -1, "auto"),
        (section(0x77, b"\xc1\x03\x04" + NULL * 2), -1, "auto"),
        (section(0x77, b"\xc0\x04\x01" + NULL * 3), -1, "auto"),
        (section(0x77, b"\xa1\x01\xff"), -1, "bytes"),
        (section(0x77, b"\xa1\x01\xff"), -1, "auto"),
        (MAP, -1, "bytes"),
        (section(0x77, map_([(string("k"), NULL)] * 2)), -1, "auto"),
        (section(0x77, map_([(string("k"), list_())])), -1, "auto"),
        (section(0x77, list_(list_())), -1, "auto"),
        (section(0x77, list_(b"\xa1\x01\xff")), -1, "auto"),
    ],
)
def test_other_rows_are_refused(message, annotation, choice):
    """The columns of the rows beside them are right."""
    found, refused = with_refused([TEXT, message, TEXT], [-1, annotation, -1], choice=choice)
    alone = columns([TEXT, TEXT], choice=choice)
    assert refused == [1]
    assert {name: values[::2] for name, values in found.items()} == alone


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/plain", True),
        ("text/plain; charset=UTF-8", True),
        ('text/plain;charset="us-ascii"', True),
        ("text/plain; charset=utf-16", False),
        ("application/json", True),
        ("application/soap+xml", True),
        ("APPLICATION/XML", True),
        ("application/octet-stream", False),
        ("image/png", False),
        ("text", False),
    ],
)
def test_is_text_type(content_type, expected):
    assert is_text_type(content_type) is expected
