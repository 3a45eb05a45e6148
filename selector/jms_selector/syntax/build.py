"""lark's tree -> our tree, from the leaves up, without recursion: deep nesting cannot overflow the stack."""

from collections.abc import Callable
from typing import Any, NoReturn

from lark import Token, Tree

from jms_selector.errors import SelectorTooLargeError
from jms_selector.syntax import check
from jms_selector.syntax.check import Item, RuleError
from jms_selector.syntax.conditions import Conditions
from jms_selector.syntax.operands import Operands
from jms_selector.syntax.reading import Reading
from jms_selector.syntax.tree import Node

__all__ = ["MAX_NESTING", "Builder"]

MAX_NESTING = 256
"""Maximum depth of nested parentheses, NOTs, signs and calls.

The parsers of Artemis and Classic recurse: 500 levels work, 1,000 cause a StackOverflowError in the broker
(Artemis 2.55.0, Classic 6.3.1). This package also evaluates calculations by recursion.
"""

_NESTING_RULES = frozenset({"group", "not_", "positive", "negative", "call"})


class Builder:
    """Calls, for each rule and alias of the grammar, the method of that name in ``Operands`` or ``Conditions``."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._operands = Operands(reading)
        self._conditions = Conditions(reading)

    def build(self, tree: Tree[Token] | Token) -> Node:
        try:
            root = check.require_condition(self._walk(tree))
        except RuleError as error:
            self._reading.refuse(error.item.start, error.found, error.expected, error.hint)
        self._operands.refuse_oversized_numbers()
        return root

    def _walk(self, tree: Tree[Token] | Token) -> Item:
        results: list[Any] = []
        stack: list[tuple[Any, int, bool]] = [(tree, 0, False)]
        while stack:
            node, depth, done = stack.pop()
            if not hasattr(node, "children"):
                results.append(node)
            elif not done:
                depth += node.data in _NESTING_RULES
                if depth > MAX_NESTING:
                    self._refuse_nesting(node)
                stack.append((node, depth, True))
                stack.extend((child, depth, False) for child in reversed(node.children))
            else:
                start = len(results) - len(node.children)
                arguments = results[start:]
                del results[start:]
                results.append(self._rule(str(node.data))(*arguments))
        item: Item = results[0]
        return item

    def _rule(self, name: str) -> Callable[..., Item]:
        owner = self._operands if hasattr(self._operands, name) else self._conditions
        rule: Callable[..., Item] = getattr(owner, name)
        return rule

    def _refuse_nesting(self, node: Any) -> NoReturn:
        while getattr(node, "children", None):
            node = node.children[0]
        position = (getattr(node, "start_pos", None) or 0) + self._reading.offset
        raise SelectorTooLargeError(
            self._reading.text,
            position,
            f"The selector nests parentheses, NOT and signs more than {MAX_NESTING} deep"
            f" (at character {position + 1:,}).",
            hint="Use fewer parentheses, or filter in Spark.",
        )
