import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.stomp.columns.escapes import escape_column, unescape_buffer
from pyspark_jms.stomp.wire.frame import ESCAPE_CODES, escape, unescape

WIRE_CODES = [f"\\{code}" for code in ESCAPE_CODES.values()]
texts = st.lists(st.none() | st.text(st.sampled_from(":\\\r\nab\0é🐘"), max_size=5), max_size=20)
wire_texts = st.lists(st.sampled_from([*WIRE_CODES, "a", "é", ":"]), max_size=6).map("".join)


def binary(values):
    return pa.array(values, pa.binary())


def unescaped(data):
    found = unescape_buffer(np.frombuffer(data, np.uint8))
    return bytes(found.data), found.removed.tolist(), found.undefined.tolist()


@given(texts, st.integers(0, 9))
def test_escapes_as_the_wire_does_in_any_slice(values, start):
    array = binary([None if value is None else value.encode() for value in values])[start:]
    wanted = [None if value is None else escape(value).encode() for value in values[start:]]
    result = escape_column(array)
    result.validate(full=True)
    assert result.to_pylist() == wanted


def test_every_byte_of_the_table_and_no_other_is_escaped():
    values = [bytes([byte]) for byte in range(128)]
    escaped = escape_column(binary(values)).to_pylist()
    codes = {plain.encode(): f"\\{code}".encode() for plain, code in ESCAPE_CODES.items()}
    assert escaped == [codes.get(value, value) for value in values]


def test_nothing_to_escape_makes_no_copy():
    array = binary([b"a", None, b"\0\x7f"])
    assert escape_column(array) is array


def test_escapes_hidden_under_a_null_stay_there():
    visible = pa.array([True, False, True])
    array = pa.Array.from_buffers(
        pa.binary(), 3, [visible.buffers()[1], *binary([b"a:", b":\n:", b":z"]).buffers()[1:]], null_count=1
    )
    assert escape_column(array).to_pylist() == [rb"a\c", None, rb"\cz"]


@given(st.lists(wire_texts, max_size=20))
def test_unescapes_as_the_wire_does(lines):
    data = "".join(f"{line}\n" for line in lines).encode()
    plain, removed, undefined = unescaped(data)
    assert plain == "".join(f"{unescape(line)}\n" for line in lines).encode()
    assert len(data) - len(removed) == len(plain)
    assert all(data[position] == ord("\\") for position in removed)
    assert not undefined


@pytest.mark.parametrize(
    ("data", "plain", "removed", "undefined"),
    [
        (b"", b"", [], []),
        (b"a:b\n", b"a:b\n", [], []),
        (b"\\t\\c\n", b"\\t:\n", [2], [0]),
        (b"a\\\n\\\\\n", b"a\\\n\\\n", [3], [1]),  # a backslash before the LF escapes nothing
        (b"\\\\\\t\n", b"\\\\t\n", [0], [2]),
    ],
)
def test_an_undefined_escape_stays_and_is_named(data, plain, removed, undefined):
    assert unescaped(data) == (plain, removed, undefined)
