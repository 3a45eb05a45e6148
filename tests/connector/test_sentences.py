import pytest

from pyspark_jms.sentences import counted, one_full_stop, with_article


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The broker refused: no.", "The broker refused: no."),
        ("The broker refused: no..", "The broker refused: no."),
        ("The broker refused: why?.", "The broker refused: why?"),
        ("The broker refused: x=1, ….", "The broker refused: x=1, …"),
        ("The names are a, b, ...", "The names are a, b, ..."),
        ("", ""),
    ],
)
def test_one_full_stop(text, shown):
    assert one_full_stop(text) == shown


@pytest.mark.parametrize(
    ("noun", "shown"), [("int", "an int"), ("object", "an object"), ("long", "a long"), ("uint", "a uint")]
)
def test_an_article(noun, shown):
    assert with_article(noun) == shown


def test_one_is_singular():
    assert [counted(n) for n in (0, 1, 1_000)] == ["0 messages", "1 message", "1,000 messages"]
