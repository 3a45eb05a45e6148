"""Which messages a broker would deliver if it evaluated a whole selector: the reference for what is pushed."""

from jms_selector.meaning.conversions import java_integer
from jms_selector.meaning.evaluate import Evaluator
from jms_selector.pushdown.rewrite import put_properties_left
from jms_selector.syntax.dialects import with_null_on_both_sides
from jms_selector.syntax.kinds import Kind, Value
from jms_selector.syntax.tree import Literal, Property, names
from pyspark_jms.jms.headers import SELECTOR_SCHEMA


class Widened(Evaluator):
    """The broker's evaluation; a text that does not convert to an integer literal is compared with it as a double.

    On Classic a property is compared with a string literal by its type, because a conversion may throw.
    """

    def compare(self, node, left, right):
        by_type = self.dialect.boolean_throws and right.kind is Kind.STRING and isinstance(node.right, Literal)
        if by_type and isinstance(node.left, Property) and node.left.name not in SELECTOR_SCHEMA.kinds:
            return Evaluator(self.message, self.dialect).compare(node, left, right)
        return self.widened(node.operator, node, left, right)

    def between(self, node, operands):
        first, second = ("<", ">") if node.negated else (">=", "<=")
        halves = [
            self.widened(sign, node, operands[0], bound)
            for sign, bound in zip((first, second), operands[1:], strict=True)
        ]
        return self.combine(halves, decisive=node.negated)

    def widened(self, operator, node, left, right):
        operand, *others = node.children
        plain = (
            isinstance(operand, Property) and operand.name not in SELECTOR_SCHEMA.kinds and not any(map(names, others))
        )
        widens = self.convert and plain and left.kind is Kind.STRING and right.kind in {Kind.INT, Kind.LONG}
        if widens and abs(right.value) < 1 << 53 and java_integer(left.value, right.kind) is None:
            right = Value(Kind.DOUBLE, float(right.value))
        return self.compared(operator, left, right)


def deserves(selector, message, dialect, convert):
    """Whether the broker would deliver the message for the whole selector; None if it would throw."""
    truth = Widened(message, with_null_on_both_sides(dialect), convert=convert).truth(
        put_properties_left(selector.root)
    )
    return None if truth.kind is Kind.FAULT else truth.value is True
