import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.columns import json_text as module
from pyspark_jms.columns.json_text import json_escaped, json_text

CASES = [
    ("", ""),
    ("a b", "a b"),
    ('"', '\\"'),
    ("\\", "\\\\"),
    ("\0", "\\u0000"),
    ("\n\r\t\b", "\\u000a\\u000d\\u0009\\u0008"),
    ("\x1f \x7f\x80", "\\u001f \x7f\x80"),
    ("é\u2028雪🐘", "é\u2028雪🐘"),
    ('a"b\\c\0d', 'a\\"b\\\\c\\u0000d'),
]


def refused(index):
    raise ValueError(index)


def escaped(array, *, too_long=refused):
    return json_escaped(array, refused, too_long).to_pylist()


@pytest.mark.parametrize(("text", "inside"), CASES)
def test_what_would_end_the_string_or_the_line_is_escaped(text, inside):
    assert json_text(text) == f'"{inside}"'
    assert escaped(pa.array([text.encode()])) == [inside.encode()]


def test_neighbours_nulls_and_slices_keep_their_places():
    texts = [text.encode() for text, _ in CASES]
    wanted = [inside.encode() for _, inside in CASES]
    array = pa.array([b'"', None, *texts, None, b"\0"])
    assert escaped(array) == [b'\\"', None, *wanted, None, b"\\u0000"]
    for start in range(len(array)):
        assert escaped(array[start:]) == [b'\\"', None, *wanted, None, b"\\u0000"][start:]
    assert escaped(pa.array([], pa.binary())) == []
    assert escaped(pa.nulls(2, pa.binary())) == [None, None]


@given(st.lists(st.none() | st.text(max_size=8) | st.text(alphabet='\0\n"\\aé🐘', max_size=8)))
def test_json_reads_the_text_back(texts):
    found = escaped(pa.array([text if text is None else text.encode() for text in texts], pa.binary()))
    assert [text if text is None else json.loads(b'"' + text + b'"') for text in found] == texts
    assert all(text is None or min(text, default=32) >= 32 for text in found)
    assert [json_text(text) for text in texts if text is not None] == [
        f'"{f.decode()}"' for f in found if f is not None
    ]


def test_what_is_not_utf8_is_refused():
    with pytest.raises(ValueError, match="2"):
        escaped(pa.array([b"a", b"\xc3\xa9", b"\xff", b"\xfe"]))


def test_what_arrow_cannot_hold_is_refused_and_the_longest_named(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_TEXT", 20)
    assert escaped(pa.array([b"\0\0", b"x" * 8])) == [b"\\u0000" * 2, b"x" * 8]
    with pytest.raises(ValueError, match="1"):
        escaped(pa.array([b"\0", b"\0\0\0", b"x"]))
