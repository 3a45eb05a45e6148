import pyarrow as pa
import pytest

from pyspark_jms.columns.strings import join_rows
from pyspark_jms.stomp.columns.header_line import fixed_line, header_line


@pytest.mark.parametrize(
    ("values", "lines"),
    [([b"a", None, b""], [b"\ntype:a", b"", b"\ntype:"]), ([b"a"], [b"\ntype:a"])],
)
def test_a_header_line_is_nothing_for_a_null(values, lines):
    assert join_rows(header_line("type", pa.array(values, pa.binary()))).to_pylist() == lines


def test_names_are_escaped_in_both_kinds_of_lines():
    assert fixed_line("a:b", "c\nd") == b"\na\\cb:c\\nd"
    assert join_rows(header_line("a:b", pa.array([rb"c\nd"], pa.binary()))).to_pylist() == [b"\na\\cb:c\\nd"]
