"""Selector -> Spark ``Column`` over the connector's schema, for batch and streaming alike.

The column says of each row whether some typing of its texts matches, as :func:`jms_selector.arrow.keep` does;
where ``property_types`` states the types it is exact. Only built-in functions, so Spark compiles it; nothing
in it throws under ANSI mode. pyspark is imported by the first call.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from jms_selector.dialects import Dialect
from jms_selector.errors import UnsupportedSelectorError
from jms_selector.lenient import MAX_NAMES, Source, lenient_dialect, prepared, source
from jms_selector.parse import parse
from jms_selector.plan import ANYTHING, Plan, negation_normal, specialise
from jms_selector.tree import And, Node, Not, Or, Selector, fold, names
from jms_selector.values import BITS, FLOATING_TEXT, INTEGER_TEXT, Kind

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["MAX_DEPTH", "column"]

MAX_DEPTH = 200
"""Levels of AND and OR in one column: Catalyst walks an expression on the JVM's stack."""


def column(selector: Selector | str, *, dialect: str | Dialect = "spec", convert: bool | None = None) -> "Column":
    """A boolean column, never null: ``df.where(column("color = 'red' AND weight > 2500"))``.

    A row is kept if the selector is true for some value with the row's text, of the stated type where
    ``property_types`` has one. ``dialect``: whose rules (see docs/selectors.md), the specification's here.
    """
    rules = lenient_dialect(dialect)
    selector = parse(selector) if isinstance(selector, str) else selector
    return _Builder(rules, convert=selector.convert if convert is None else convert).build(prepared(selector))


class _Builder:
    def __init__(self, dialect: Dialect, *, convert: bool) -> None:
        # Heavy, and of use to Spark users only.
        from pyspark.sql import functions

        from jms_selector.expressions import Expressions

        self.functions = functions
        self.dialect = dialect
        self.convert = convert
        self.expressions = Expressions()
        self.known: dict[str, dict[Kind, Any]] = {}

    def build(self, root: Node | None) -> "Column":
        if root is None:
            return self.functions.lit(True)  # noqa: FBT003 - a literal column

        def visit(node: Node, operands: list[tuple[Column, int]]) -> tuple[Column, int]:
            if isinstance(node, And | Or):
                depth = max(depth for _, depth in operands) + 1
                if depth > MAX_DEPTH:
                    raise UnsupportedSelectorError(
                        f"The selector nests more than {MAX_DEPTH} levels of AND and OR, too many for Spark."
                    )
                parts = [part for part, _ in operands]
                return _balanced(parts, both=isinstance(node, And)), depth
            if isinstance(node, Not):
                return self.condition(node.operand, "false"), 0
            return self.condition(node, "true"), 0

        return fold(negation_normal(root), visit, _above_not)[0]

    def condition(self, node: Node, outcome: str) -> "Column":
        """Whether ``outcome`` is possible for one condition."""
        spoken = names(node)
        if len(spoken) > MAX_NAMES:
            return self.functions.lit(True)  # noqa: FBT003
        choices = [self.candidates(name) for name in spoken]
        if any(choice is None for choice in choices):
            return self.functions.lit(True)  # noqa: FBT003
        plans: dict[Plan, list[Any]] = {}
        for kinds in product(*choices):
            plan = specialise(node, dict(zip(spoken, kinds, strict=True)), self.dialect, convert=self.convert)
            member = [self.known[name][kind] for name, kind in zip(spoken, kinds, strict=True)]
            plans.setdefault(plan, []).append(_balanced(member, both=True) if member else None)
        cases = [self.case(plan, members, outcome) for plan, members in plans.items()]
        anything = [self.known[name][ANYTHING] for name in spoken if ANYTHING in self.known[name]]
        return _balanced(
            [*(case for case in cases if case is not None), *anything] or [self.functions.lit(False)], both=False
        )  # noqa: FBT003

    def case(self, plan: Plan, members: Sequence[Any], outcome: str) -> Any:
        """Rows that may be of one of these kinds, and for which their plan has the outcome."""
        if plan is ANYTHING:
            possible: Any = self.functions.lit(True)  # noqa: FBT003
        else:
            possible = self.expressions.test(plan, self.operand, outcome)
        if possible is None or None in members:
            return possible
        return _balanced(list(members), both=False) & possible

    # --- values of a name --------------------------------------------------------------------------

    def candidates(self, name: str) -> list[Kind] | None:
        """The kinds a name's values may have; None: anything. Fills ``known``: kind -> which rows."""
        where = source(self.dialect, name)
        if not where.told:
            return None
        if name not in self.known:
            self.known[name] = self._header(where) if where.kind else self._property(where)
            if where.or_null:
                self.known[name][Kind.NULL] = self.functions.lit(True)  # noqa: FBT003
        return [kind for kind in self.known[name] if isinstance(kind, Kind)]

    def operand(self, name: str, kind: Kind) -> Any:
        """The value of a name, read as ``kind``."""
        where = source(self.dialect, name)
        functions = self.functions
        if where.words is not None:
            whens = functions.col(where.name).cast("string")
            for mode, word in where.words.items():
                whens = functions.when(functions.col(where.name) == mode, word).otherwise(whens)
            return whens
        if where.kind is Kind.LONG:
            millis = functions.expr(f"unix_millis(`{where.name}`)")
            return functions.coalesce(millis, functions.lit(0))
        if where.kind:
            return functions.col(where.name)
        return self.expressions.read(self._text(where), kind)

    def _text(self, where: Source) -> Any:
        return self.functions.col("properties")[where.name]

    def _header(self, where: Source) -> dict[Any, Any]:
        present = self.functions.col(where.name).isNotNull()
        assert where.kind is not None
        return self._completed(where, {where.kind: present}, ~present)

    def _property(self, where: Source) -> dict[Any, Any]:
        functions = self.functions
        text = self._text(where)
        present = text.isNotNull()
        whole: Any = functions.expr("try_cast({} as bigint)".format(f"properties[{_sql(where.name)}]"))
        integer = present & text.rlike(rf"\A(?:{INTEGER_TEXT})\z") & whole.isNotNull()
        floating = present & text.rlike(rf"\A(?:{FLOATING_TEXT})\z")
        kinds = {
            Kind.STRING: present,
            Kind.BOOLEAN: present & text.isin("true", "false"),
            **{kind: integer & whole.between(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for kind, bits in BITS.items()},
            Kind.FLOAT: floating,
            Kind.DOUBLE: floating,
        }
        stated = functions.coalesce(functions.col("property_types")[where.name], functions.lit(""))
        qualified = _balanced([member & (stated == str(kind)) for kind, member in kinds.items()], both=False)
        known: dict[Any, Any] = {k: m & ((stated == str(k)) | ~qualified) for k, m in kinds.items()}
        absent = ~present
        for text_of_null in self.dialect.null_texts:
            absent = absent | (present & (text == text_of_null) & ~qualified)
        return self._completed(where, known, absent)

    def _completed(self, where: Source, known: dict[Any, Any], absent: Any) -> dict[Any, Any]:
        false = self.functions.lit(False)  # noqa: FBT003
        known = {kind: self.functions.coalesce(member, false) for kind, member in known.items()}
        if where.absent is None:
            known[ANYTHING] = absent
        for value in where.absent or ():
            known[value.kind] = known[value.kind] | absent if value.kind in known else absent
        return known


def _above_not(node: Node) -> tuple[Node, ...]:
    return node.children if isinstance(node, And | Or) else ()


def _balanced(parts: list[Any], *, both: bool) -> Any:
    """AND or OR as a tree of little depth: 3,000 terms are 12 levels."""
    while len(parts) > 1:
        pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
        parts = [reduce(lambda a, b: a & b if both else a | b, pair) for pair in pairs]
    return parts[0]


def _sql(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


Known = Mapping[Kind, Any]
