"""Selector -> Spark ``Column`` over the connector's schema, for batch and streaming queries.

The column is true for each row that some typing of its texts matches, like :func:`jms_selector.arrow.keep`. Where
``property_types`` states the types, the column is exact. It is made of built-in functions, so Spark compiles it, and
none of them throws under ANSI mode. The first call imports pyspark.
"""

from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from jms_selector.meaning.conversions import FLOATING_TEXT, INTEGER_TEXT
from jms_selector.meaning.lenient import MAX_NAMES, STATED, Source, lenient_dialect, prepared, source
from jms_selector.meaning.plan import ANYTHING, Plan, junctions, negation_normal, specialise
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
"""Conditions, and the ANDs, ORs and NOTs between them, that Spark is given as an expression.

Its compiler gives up at some hundreds, and its analyser walks an expression on the JVM's stack; a longer
selector is evaluated by an Arrow function instead.
"""


MAX_OPERATORS, MAX_PRODUCTS = 4, 1
"""Operators, and multiplications among them, of one condition that Spark is given as an expression.

An operator that wraps as Java's does names its operands several times, so the expression grows by a factor with each:
``x * x * x * x > 0`` took the driver's whole heap.
"""


def column(selector: Selector | str, *, dialect: str | Dialect = "spec", convert: bool | None = None) -> "Column":
    """A boolean column, never null: ``df.where(column("color = 'red' AND weight > 2500"))``.

    A row is kept if the selector is true for some value with the row's text, of the stated type where
    ``property_types`` has one. ``dialect``: whose rules (see docs/selectors.md), the specification's here.
    """
    rules = lenient_dialect(dialect)
    selector = parse(selector) if isinstance(selector, str) else selector
    converting = selector.convert if convert is None else convert
    root = prepared(selector)
    if root is not None and _too_large(root):
        return _by_arrow(selector, root, rules, convert=converting)
    built: Column = _Builder(rules, convert=converting).build(root)
    return built


def _too_large(root: Node) -> bool:
    """Whether Spark's compiler could not take the selector as one expression."""
    asked = [node for node in postorder(root, conditions) if not isinstance(node, And | Or | Not)]
    return len(asked) > MAX_CONDITIONS or any(map(_calculates_too_much, asked))


def _calculates_too_much(condition: Node) -> bool:
    operators: list[str] = []
    for node in postorder(condition):
        operators += node.operators if isinstance(node, Arithmetic) else "-" if isinstance(node, Negative) else ""
    return len(operators) > MAX_OPERATORS or operators.count("*") > MAX_PRODUCTS


def _by_arrow(selector: Selector, root: Node, dialect: Dialect, *, convert: bool) -> "Column":
    import pyarrow as pa
    from pyspark.sql import functions
    from pyspark.sql.pandas.functions import arrow_udf

    headers = {where.name for name in names(root) if (where := source(dialect, name)).kind}
    columns, dialect_name = sorted({"properties", "property_types", *headers}), dialect.name

    def keep(rows: pa.Array) -> pa.Array:
        from jms_selector.targets.arrow import masks  # on the executor

        batch = pa.RecordBatch.from_arrays(rows.flatten(), names=columns)
        return masks.keep(selector, batch, dialect_name, convert=convert)

    udf: Any = arrow_udf
    found: Column = udf(keep, "boolean")(functions.struct(*columns))
    return found


class _Builder:
    def __init__(self, dialect: Dialect, *, convert: bool) -> None:
        # pyspark takes longer to import than all of this package, and most callers do not need it.
        from pyspark.sql import functions

        from jms_selector.targets.column.expressions import Expressions

        self.functions = functions
        self.dialect = dialect
        self.convert = convert
        self.expressions = Expressions()
        # A selector often asks the same of one property, and every Column costs calls into the JVM.
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

        return fold(negation_normal(root), visit, junctions)

    def condition(self, node: Node, outcome: str) -> Any:
        """Whether ``outcome`` is possible for one condition."""
        used = names(node)
        sources = {name: source(self.dialect, name) for name in used}
        if len(used) > MAX_NAMES or not all(where.shown for where in sources.values()):
            return self._literal(truth=True)
        plans: dict[Plan, list[tuple[Kind, ...]]] = {}
        for kinds in product(*(self.kinds(where) for where in sources.values())):
            plan = specialise(node, dict(zip(used, kinds, strict=True)), self.dialect, convert=self.convert)
            plans.setdefault(plan, []).append(kinds)
        cases = [self.case(plan, kinds, list(sources.values()), outcome) for plan, kinds in plans.items()]
        unstated = [~self._present(where) for where in sources.values() if where.absent is None]
        possible = [case for case in cases if case is not None] + unstated
        return _balanced(possible, both=False) if possible else self._literal(truth=False)

    def case(self, plan: Plan, kinds: list[tuple[Kind, ...]], sources: list[Source], outcome: str) -> Any:
        """Rows that may be of some of these kinds, and for which their plan has the outcome."""
        if plan is ANYTHING:
            possible: Any = self._literal(truth=True)
        else:
            possible = self.expressions.test(plan, self.operand, outcome)
        if possible is None or not sources:
            return possible
        rows = [
            _balanced([self._member(where, group) for where, group in zip(sources, groups, strict=True)], both=True)
            for groups in _rectangles(kinds)
        ]
        return _balanced(rows, both=False) & possible

    # --- a name's kinds -----------------------------------------------------------------------------

    def kinds(self, where: Source) -> list[Kind]:
        """Every kind a value of the name may have."""
        found = [where.kind] if where.kind else [Kind.STRING, Kind.BOOLEAN, *BITS, Kind.FLOAT, Kind.DOUBLE]
        found += [value.kind for value in where.absent or ()]
        if where.or_null or (where.kind is None and self.dialect.null_texts):
            found.append(Kind.NULL)
        return list(dict.fromkeys(found))

    def _member(self, where: Source, kinds: frozenset[Kind]) -> Any:
        key = where.name, kinds
        if key not in self.members:
            self.members[key] = self.member(where, kinds)
        return self.members[key]

    def member(self, where: Source, kinds: frozenset[Kind]) -> Any:
        """Rows whose value may be of one of ``kinds``."""
        forms = []
        if kinds & {value.kind for value in where.absent or ()}:
            forms.append(~self._present(where))
        if Kind.NULL in kinds and where.or_null:
            return self._literal(truth=True)
        if where.kind:
            forms += [self._present(where)] if where.kind in kinds else []
        else:
            forms += self._forms(where, kinds)
        return _balanced(forms, both=False) if forms else self._literal(truth=False)

    def _forms(self, where: Source, kinds: frozenset[Kind]) -> list[Any]:
        text = self._text(where)
        stated = self.functions.col("property_types")[where.name]
        others = sorted(STATED - {str(kind) for kind in kinds})
        fits = self.functions.coalesce(~stated.isin(others), self._literal(truth=True))
        forms = []
        if Kind.STRING in kinds:
            forms.append(text.isNotNull())
        elif found := self._readable(text, kinds):
            forms.append(_balanced(found, both=False))
        if Kind.NULL in kinds and self.dialect.null_texts:
            untyped = self.functions.coalesce(~stated.isin(sorted(STATED)), self._literal(truth=True))
            null = self.functions.coalesce(text.isin(sorted(self.dialect.null_texts)), self._literal(truth=False))
            return [*(form & fits for form in forms), null & untyped]
        return [form & fits for form in forms]

    def _readable(self, text: Any, kinds: frozenset[Kind]) -> list[Any]:
        """Texts that Java renders a value of one of ``kinds`` as. False where there is no text."""
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
        """The value of a name, read as ``kind``."""
        where = source(self.dialect, name)
        functions = self.functions
        if where.words is not None:
            worded = functions.col(where.name).cast("string")
            for mode, word in where.words.items():
                worded = functions.when(functions.col(where.name) == mode, word).otherwise(worded)
            return worded
        if where.kind is Kind.LONG:
            return functions.coalesce(functions.unix_millis(functions.col(where.name)), functions.lit(0))
        if where.kind:
            return functions.col(where.name)
        return self.expressions.read(self._text(where), kind)

    def _text(self, where: Source) -> Any:
        return self.functions.col("properties")[where.name]

    def _present(self, where: Source) -> Any:
        return self.functions.col(where.name).isNotNull() if where.kind else self._text(where).isNotNull()

    def _literal(self, *, truth: bool) -> Any:
        return self.functions.lit(truth)


def _rectangles(pairs: list[tuple[Kind, ...]]) -> list[tuple[frozenset[Kind], ...]]:
    """Assignments of one or two kinds as few products of sets: {(int, int), (long, int)} is {int, long} × {int}."""
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
    """AND or OR as a tree of little depth: 3,000 terms are 12 levels."""
    while len(parts) > 1:
        pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
        parts = [reduce(lambda a, b: a & b if both else a | b, pair) for pair in pairs]
    return parts[0]
