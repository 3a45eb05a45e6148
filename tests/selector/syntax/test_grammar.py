import pytest

from jms_selector.errors import InvalidSelectorError
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.message import Message
from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import Arithmetic, Compare, Literal, Not, Property


def test_not_binds_tighter_in_activemq():
    assert parse("NOT a = 1", dialect="artemis").root == Compare("=", Not(Property("a")), Literal(1, Kind.INT))
    with pytest.raises(InvalidSelectorError):
        parse("NOT a > 1", dialect="classic")


def test_names_have_hyphens_only_after_the_prefix():
    assert parse("hyphenated_props:a-5 = 0", dialect="artemis").root == Compare(
        "=", Property("a-5"), Literal(0, Kind.INT)
    )
    assert isinstance(parse("a-5 = 0", dialect="artemis").root.left, Arithmetic)


def test_two_minuses_are_a_comment_only_in_activemq():
    text = "a = 8 --3\n"
    assert evaluate(parse(text), Message.of(a=11)) is True
    assert evaluate(parse(text, dialect="artemis"), Message.of(a=8), "artemis") is True
