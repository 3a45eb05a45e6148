import pytest
import selector_strategies

from jms_selector.errors import SelectorTooLargeError
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.message import Message
from jms_selector.syntax.build import MAX_NESTING
from jms_selector.syntax.parse import parse


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(f"a{n} = {n}" for n in range(3000)),
        " + ".join(f"a{n}" for n in range(3000)) + " > 0",
        "a = 1" + " = TRUE" * 3000,
    ],
    ids=["or", "sum", "chain"],
)
def test_long_selectors(text):
    selector = parse(text)
    assert evaluate(selector, Message.of(a0=1, a=1)) in {True, False, None}
    assert selector.root == parse(text + " ").root


def _nestings():
    """Every shape in the dialect of the specification, and parentheses in each dialect; the others are deep."""
    for dialect in ("spec", "artemis", "classic"):
        for shape in selector_strategies.NESTED:
            ordinary = dialect == "spec" or shape == "parentheses"
            yield pytest.param(dialect, shape, marks=() if ordinary else pytest.mark.deep)


@pytest.mark.parametrize(("dialect", "shape"), [*_nestings()])
def test_nesting_is_limited(dialect, shape):
    nested = selector_strategies.NESTED[shape]
    selector = parse(nested(MAX_NESTING), dialect=dialect)
    assert evaluate(selector, Message.of(a=1), dialect) in {True, False, None}
    for depth in (MAX_NESTING + 1, 3000):
        refused(nested(depth), dialect)


@pytest.mark.deep
@pytest.mark.parametrize("shape", selector_strategies.NESTED)
def test_far_more_nesting_does_not_end_the_process(shape):
    refused(selector_strategies.NESTED[shape](20_000), "spec")


def refused(text, dialect):
    with pytest.raises(SelectorTooLargeError, match=rf"\[JMS_SELECTOR_TOO_LARGE\].* {MAX_NESTING} ") as caught:
        parse(text, dialect=dialect)
    assert 0 < caught.value.position <= len(text)
