"""JMS message selectors: parse, evaluate, push to a broker, apply to Arrow batches.

    >>> from jms_selector import Message, evaluate, parse, push
    >>> selector = parse("color = 'red' AND weight > 2500")
    >>> evaluate(selector, Message.of(color="red", weight=3000))
    True
    >>> push("NOT color = 'red'", "artemis").text
    "NOT (color = 'red')"

Arrow masks are in :mod:`jms_selector.arrow`. Importing this package imports no large library: the first parse
imports lark, and ``jms_selector.arrow`` pyarrow.
"""

from jms_selector.errors import (
    EvaluationError,
    InvalidSelectorError,
    SelectorError,
    SelectorTooLargeError,
    UnsupportedSelectorError,
)
from jms_selector.meaning.evaluate import Message, evaluate
from jms_selector.meaning.lenient import may_match
from jms_selector.portability import Portable, portable
from jms_selector.pushdown.push import Pushdown, push
from jms_selector.syntax.dialects import DIALECTS, Dialect
from jms_selector.syntax.kinds import Kind, Schema, Value
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import Selector
from jms_selector.targets.text import render

__all__ = [
    "DIALECTS",
    "Dialect",
    "EvaluationError",
    "InvalidSelectorError",
    "Kind",
    "Message",
    "Portable",
    "Pushdown",
    "Schema",
    "Selector",
    "SelectorError",
    "SelectorTooLargeError",
    "UnsupportedSelectorError",
    "Value",
    "evaluate",
    "may_match",
    "parse",
    "portable",
    "push",
    "render",
]
