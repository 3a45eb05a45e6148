"""Selector -> Spark ``Column`` over the connector's schema, for batch and streaming queries.

The column is true for each row that matches for some types of its texts, like :func:`jms_selector.arrow.keep`. Where
``property_types`` states the types, the column is exact. Spark compiles the column, because it consists of built-in
functions; none of them throws under ANSI mode. The first call imports pyspark.
"""

from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.meaning.conversions import FLOATING_TEXT, INTEGER_TEXT
from jms_selector.meaning.lenient import (
    MAX_NAMES,
    TRUSTED_TYPES,
    NameLocation,
    expand_selector,
    lenient_dialect,
    locate,
)
from jms_selector.meaning.plan import NOT_COMPUTABLE, Plan, junction_children, plan_condition, to_negation_normal_form
from jms_selector.syntax.dialects import Dialect
from jms_selector.syntax.kinds import BITS, Kind
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import (
    And,
    Arithmetic,
    Negative,
    Node,
    Not,
    Or,
    Selector,
    conditions,
    fold,
    names,
    postorder,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["MAX_CONDITIONS", "column"]

MAX_CONDITIONS = 50
"""Maximum number of conditions in a selector that becomes a Spark expression.

Spark's compiler fails at some hundreds of conditions, and its analyser recurses over the expression. An Arrow function
evaluates a longer selector.
"""


MAX_OPERATORS, MAX_PRODUCTS = 4, 1
"""Maximum operators, and multiplications among them, in a condition of a selector that becomes a Spark expression.

An operator that wraps as in Java repeats its operands, so the expression grows by a factor with each operator:
``x * x * x * x > 0`` fills the driver's heap.
"""


def column(selector: Selector | str, *, dialect: str | Dialect = "spec", convert: bool | None = None) -> "Column":
    """A boolean column, never null: ``df.where(column("color = 'red' AND weight > 2500"))``.

    A row is kept if the selector is true for some value with the row's text, of the stated type where
    ``property_types`` has one. ``dialect`` selects the rules (see docs/selectors.md).
    """
    rules = lenient_dialect(dialect)
    selector = parse(selector) if isinstance(selector, str) else selector
    converting = selector.convert if convert is None else convert
    root = expand_selector(selector)
    if root is not None and _exceeds_limits(root):
        return _column_by_arrow_function(selector, root, rules, convert=converting)
    built: Column = _Builder(rules, convert=converting).build(root)
    return built


def _exceeds_limits(root: Node) -> bool:
    """Return whether the selector is too large for one Spark expression."""
    tested = [node for node in postorder(root, conditions) if not isinstance(node, And | Or | Not)]
    return len(tested) > MAX_CONDITIONS or any(map(_exceeds_operator_limits, tested))


def _exceeds_operator_limits(condition: Node) -> bool:
    operators: list[str] = []
    for node in postorder(condition):
        operators += node.operators if isinstance(node, Arithmetic) else "-" if isinstance(node, Negative) else ""
    return len(operators) > MAX_OPERATORS or operators.count("*") > MAX_PRODUCTS


def _column_by_arrow_function(selector: Selector, root: Node, dialect: Dialect, *, convert: bool) -> "Column":
    import pyarrow as pa
    from pyspark.sql import functions

    headers = {location.name for name in names(root) if (location := locate(dialect, name)).kind}
    columns, dialect_name = sorted({"properties", "property_types", *headers}), dialect.name

    def keep(rows: pa.Array) -> pa.Array:
        from jms_selector.targets.arrow import masks  # imported on the executor

        batch = pa.RecordBatch.from_arrays(rows.flatten(), names=columns)
        return masks.keep(selector, batch, dialect_name, convert=convert)

    found: Column = _arrow_udf()(keep, "boolean")(functions.struct(*columns))
    return found


def _arrow_udf() -> Any:
    try:
        from pyspark.sql.pandas.functions import arrow_udf
    except ImportError:
        raise UnsupportedSelectorError(
            f"A selector of more than {MAX_CONDITIONS} conditions, or with a condition of more than {MAX_OPERATORS}"
            f" operators or {MAX_PRODUCTS} multiplication, needs Arrow functions, which Spark has from 4.1 on."
            " Combine the columns of shorter selectors, or use a newer Spark."
        ) from None
    return arrow_udf


class _Builder:
    def __init__(self, dialect: Dialect, *, convert: bool) -> None:
        # Imported here: pyspark takes longer to import than this whole package, and most callers do not need it.
        from pyspark.sql import functions

        from jms_selector.targets.column.expressions import Expressions

        self.functions = functions
        self.dialect = dialect
        self.convert = convert
        self.expressions = Expressions()
        # Conditions of a selector often share expressions, and every new Column costs calls into the JVM.
        self.members: dict[tuple[str, frozenset[Kind]], Any] = {}
        self.operands: dict[tuple[str, Kind], Any] = {}

    def build(self, root: Node | None) -> Any:
        if root is None:
            return self._literal(truth=True)

        def visit(node: Node, operands: list[Any]) -> Any:
            if isinstance(node, And | Or):
                return _balanced(operands, both=isinstance(node, And))
            if isinstance(node, Not):
                return self.condition(node.operand, "false")
            return self.condition(node, "true")

        return fold(to_negation_normal_form(root), visit, junction_children)

    def condition(self, node: Node, outcome: str) -> Any:
        """Return whether ``outcome`` is possible for one condition."""
        used = names(node)
        locations = {name: locate(self.dialect, name) for name in used}
        if len(used) > MAX_NAMES or not all(location.visible for location in locations.values()):
            return self._literal(truth=True)
        plans: dict[Plan, list[tuple[Kind, ...]]] = {}
        for kinds in product(*(self.kinds(location) for location in locations.values())):
            plan = plan_condition(node, dict(zip(used, kinds, strict=True)), self.dialect, convert=self.convert)
            plans.setdefault(plan, []).append(kinds)
        cases = [self.case(plan, kinds, list(locations.values()), outcome) for plan, kinds in plans.items()]
        unstated = [~self._present(location) for location in locations.values() if location.absent is None]
        respelled = [self._respelled(location) for location in locations.values() if location.respelled]
        beyond_jms = [self._beyond_jms(location) for location in locations.values() if self._may_be_beyond(location)]
        possible = [case for case in cases if case is not None] + unstated + respelled + beyond_jms
        return _balanced(possible, both=False) if possible else self._literal(truth=False)

    def _respelled(self, location: NameLocation) -> Any:
        """Rows with a value that the broker may spell otherwise."""
        column = self.functions.col(location.name)
        return self.functions.coalesce(column.startswith(location.respelled), self._literal(truth=False))

    def _may_be_beyond(self, location: NameLocation) -> bool:
        return self.dialect.typed_messages and location.kind is None

    def _beyond_jms(self, location: NameLocation) -> Any:
        """Rows with a property of a type that only AMQP has."""
        stated = self.functions.col("property_types")[location.name]
        return self.functions.coalesce(~stated.isin(sorted(TRUSTED_TYPES)), self._literal(truth=False))

    def case(self, plan: Plan, kinds: list[tuple[Kind, ...]], locations: list[NameLocation], outcome: str) -> Any:
        """Rows whose values may have some of these kinds, and for which the plan of these kinds has the outcome."""
        if plan is NOT_COMPUTABLE:
            possible: Any = self._literal(truth=True)
        else:
            possible = self.expressions.test(plan, self.operand, outcome)
        if possible is None or not locations:
            return possible
        rows = [
            _balanced(
                [self._member(location, group) for location, group in zip(locations, groups, strict=True)], both=True
            )
            for groups in _group_kinds(kinds)
        ]
        return _balanced(rows, both=False) & possible

    # --- kinds of a name ----------------------------------------------------------------------------

    def kinds(self, location: NameLocation) -> list[Kind]:
        """Every kind that a value of the name may have."""
        found = [location.kind] if location.kind else [Kind.STRING, Kind.BOOLEAN, *BITS, Kind.FLOAT, Kind.DOUBLE]
        found += [value.kind for value in location.absent or ()]
        if location.may_be_null or (location.kind is None and self.dialect.null_texts):
            found.append(Kind.NULL)
        return list(dict.fromkeys(found))

    def _member(self, location: NameLocation, kinds: frozenset[Kind]) -> Any:
        key = location.name, kinds
        if key not in self.members:
            self.members[key] = self.member(location, kinds)
        return self.members[key]

    def member(self, location: NameLocation, kinds: frozenset[Kind]) -> Any:
        """Rows whose value may have one of ``kinds``."""
        forms = []
        if kinds & {value.kind for value in location.absent or ()}:
            forms.append(~self._present(location))
        if Kind.NULL in kinds and location.may_be_null:
            return self._literal(truth=True)
        if location.kind:
            forms += [self._present(location)] if location.kind in kinds else []
        else:
            forms += self._member_conditions(location, kinds)
        return _balanced(forms, both=False) if forms else self._literal(truth=False)

    def _member_conditions(self, location: NameLocation, kinds: frozenset[Kind]) -> list[Any]:
        text = self._text(location)
        stated = self.functions.col("property_types")[location.name]
        others = sorted(TRUSTED_TYPES - {str(kind) for kind in kinds})
        fits = self.functions.coalesce(~stated.isin(others), self._literal(truth=True))
        forms = []
        if Kind.STRING in kinds:
            forms.append(text.isNotNull())
        elif found := self._match_texts_of_kinds(text, kinds):
            forms.append(_balanced(found, both=False))
        if Kind.NULL in kinds and self.dialect.null_texts:
            untyped = self.functions.coalesce(~stated.isin(sorted(TRUSTED_TYPES)), self._literal(truth=True))
            null = self.functions.coalesce(text.isin(sorted(self.dialect.null_texts)), self._literal(truth=False))
            return [*(form & fits for form in forms), null & untyped]
        return [form & fits for form in forms]

    def _match_texts_of_kinds(self, text: Any, kinds: frozenset[Kind]) -> list[Any]:
        """Conditions on a text that may be the Java text of a value of ``kinds``. Each is false if the text is null."""
        found = []
        integral = [kind for kind in BITS if kind in kinds]
        if integral:
            number = self.expressions.read(text, Kind.LONG)
            half = 1 << (BITS[integral[-1]] - 1)
            ranged = number.isNotNull() if half >> 63 else number.between(-half, half - 1)
            found.append(text.rlike(rf"\A(?:{INTEGER_TEXT})\z") & ranged)
        if kinds & {Kind.FLOAT, Kind.DOUBLE}:
            found.append(text.rlike(rf"\A(?:{FLOATING_TEXT})\z"))
        if Kind.BOOLEAN in kinds:
            found.append(text.isin("true", "false"))
        return [self.functions.coalesce(form, self._literal(truth=False)) for form in found]

    # --- values -------------------------------------------------------------------------------------

    def operand(self, name: str, kind: Kind) -> Any:
        if (name, kind) not in self.operands:
            self.operands[name, kind] = self.read(name, kind)
        return self.operands[name, kind]

    def read(self, name: str, kind: Kind) -> Any:
        """The value of a name as ``kind``."""
        location = locate(self.dialect, name)
        functions = self.functions
        if location.words is not None:
            worded = functions.col(location.name).cast("string")
            for mode, word in location.words.items():
                worded = functions.when(functions.col(location.name) == mode, word).otherwise(worded)
            return worded
        if location.kind is Kind.LONG:
            return functions.coalesce(functions.unix_millis(functions.col(location.name)), functions.lit(0))
        if location.kind:
            return functions.col(location.name)
        return self.expressions.read(self._text(location), kind)

    def _text(self, location: NameLocation) -> Any:
        return self.functions.col("properties")[location.name]

    def _present(self, location: NameLocation) -> Any:
        return self.functions.col(location.name).isNotNull() if location.kind else self._text(location).isNotNull()

    def _literal(self, *, truth: bool) -> Any:
        return self.functions.lit(truth)


def _group_kinds(pairs: list[tuple[Kind, ...]]) -> list[tuple[frozenset[Kind], ...]]:
    """Assignments of one or two kinds as a few products of sets: {(int, int), (long, int)} is {int, long} × {int}."""
    if len(pairs[0]) == 1:
        return [(frozenset(kind for (kind,) in pairs),)]
    rows: dict[Kind, set[Kind]] = {}
    for left, right in pairs:
        rows.setdefault(left, set()).add(right)
    groups: dict[frozenset[Kind], set[Kind]] = {}
    for left, rights in rows.items():
        groups.setdefault(frozenset(rights), set()).add(left)
    return [(frozenset(lefts), rights) for rights, lefts in groups.items()]


def _balanced(parts: list[Any], *, both: bool) -> Any:
    """AND or OR as a balanced tree: 3,000 terms are 12 levels deep."""
    while len(parts) > 1:
        pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
        parts = [reduce(lambda a, b: a & b if both else a | b, pair) for pair in pairs]
    return parts[0]
