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


@pytest.mark.parametrize("shape", selector_strategies.NESTED, ids=list(selector_strategies.NESTED))
@pytest.mark.parametrize("dialect", ["spec", "artemis", "classic"])
def test_nesting_is_limited(shape, dialect):
    nested = selector_strategies.NESTED[shape]
    selector = parse(nested(MAX_NESTING), dialect=dialect)
    assert evaluate(selector, Message.of(a=1), dialect) in {True, False, None}
    for depth in (MAX_NESTING + 1, 3000, 20_000):
        with pytest.raises(SelectorTooLargeError, match=rf"\[JMS_SELECTOR_TOO_LARGE\].* {MAX_NESTING} ") as caught:
            parse(nested(depth), dialect=dialect)
        assert 0 < caught.value.position <= len(nested(depth))
