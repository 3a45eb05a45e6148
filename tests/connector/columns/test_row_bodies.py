import pytest
from sink_rows import rows_of

from pyspark_jms.columns.row_bodies import BODY_TYPES, body_types
from pyspark_jms.errors import MessageFormatError


def kinds(**columns):
    return [BODY_TYPES[code].value for code in body_types(rows_of(**columns))]


def test_the_only_body_decides():
    assert kinds(text=["a", None, None], bytes=[None, b"b", None]) == ["text", "bytes", "message"]


def test_a_stated_type_counts():
    assert kinds(body_type=["object", "text", None], bytes=[b"a", None, b"c"]) == ["object", "text", "bytes"]


@pytest.mark.parametrize(
    ("columns", "fact"),
    [
        ({"text": ["a", "b"], "bytes": [None, b"c"]}, "has more than one body"),
        ({"body_type": [None, "tuple"]}, "has an unknown body_type"),
        (
            {"body_type": ["text", "text"], "bytes": [None, b"c"]},
            "has body_type text, but its body is in another column",
        ),
        ({"body_type": ["text", "message"], "text": ["a", "b"]}, "has body_type message, but its body is in another"),
    ],
)
def test_a_body_that_would_be_lost_is_refused(columns, fact):
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{fact}"):
        kinds(**columns)
