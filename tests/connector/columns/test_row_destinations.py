import pyarrow as pa
import pytest
from sink_rows import rows_of

from pyspark_jms.columns.row_destinations import common_destination, distinct_destinations, parse_destination
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination

TOPIC = Destination.parse("topic://t")


def made(default, *texts):
    found = distinct_destinations(rows_of(destination=pa.array(texts, pa.string())), default, _spelled)
    which = [0] * len(texts) if found.indices is None else found.indices.to_pylist()
    return [found.distinct[index] for index in which]


def _spelled(destination, by_row):
    if destination.name == "bad":
        raise InvalidDestinationError("The name is bad.", "Use another.")
    return f"{destination} {by_row}"


def test_every_row_has_the_default():
    assert distinct_destinations(rows_of(text=["a"]), TOPIC, _spelled).indices is None
    assert made(TOPIC, None, None) == ["topic://t False"] * 2


def test_rows_name_their_own():
    assert made(TOPIC, "q", None, "topic://x", "q") == [
        "queue://q True",
        "topic://t False",
        "topic://x True",
        "queue://q True",
    ]


def test_each_is_made_once():
    assert len(distinct_destinations(rows_of(destination=["q", "q"]), None, _spelled).distinct) == 1


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("ftp://x", "The destination of row 11 of the task is neither queue://NAME"),
        ("", "The destination of row 11 of the task is neither queue://NAME"),
        ("a\0", "The destination of row 11 of the task is neither queue://NAME"),
        ("bad", "The destination of row 11 of the task is refused: The name is bad"),
        (None, "Row 11 of the task has no destination"),
    ],
)
def test_refused_destinations(text, fact):
    with pytest.raises(InvalidDestinationError, match=fact):
        made(None, "q", text)


def test_parse():
    assert parse_destination(b"a") == Destination.parse("queue://a")
    assert parse_destination(b"topic://t") == TOPIC
    assert parse_destination(b"\xff") is None


def common(*texts, name="destination", default=TOPIC):
    return common_destination(pa.record_batch({name: pa.array(texts, pa.string())}), default)


def test_the_one_destination_of_all_rows():
    assert common("a", "b", name="text") == TOPIC
    assert common(None, None) == TOPIC
    assert common("q", "q", name="Destination") == Destination.parse("queue://q")
    assert common("topic://t", None) == TOPIC


@pytest.mark.parametrize("texts", [("a", "b"), ("a", None), ("ftp://x",)])
def test_several_destinations(texts):
    assert common(*texts) is None
