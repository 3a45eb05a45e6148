"""Selector -> Arrow masks, a whole batch at a time.

:func:`keep` and :func:`masks` evaluate rows of a schema, where properties are texts of any type;
:func:`exact` evaluates columns of Arrow types. Each column is dictionary-encoded once, every condition is evaluated on
the distinct values, and each row has the outcome of its value.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.meaning.lenient import MAX_NAMES, Outcomes, combine, conjunction, read_leniently
from jms_selector.meaning.plan import NOT_COMPUTABLE, junction_children, plan_condition, to_negation_normal_form
from jms_selector.syntax.dialects import Dialect
from jms_selector.syntax.kinds import BITS, Kind, Schema
from jms_selector.syntax.tree import And, Node, Not, Or, Selector, fold, names
from jms_selector.targets.arrow import vectors
from jms_selector.targets.arrow.candidates import Candidates, SchemaColumns, typed_column
from jms_selector.targets.text import render

__all__ = ["Masks", "exact", "keep", "masks"]

Mask = NDArray[np.bool_]


class Masks(Outcomes[Mask]):
    """The rows for which each outcome is possible. For a row in no mask, the broker throws an exception."""


def keep(
    selector: Selector | str,
    batch: pa.RecordBatch | pa.Table,
    dialect: str | Dialect = "spec",
    *,
    schema: Schema,
    convert: bool | None = None,
) -> pa.BooleanArray:
    """Rows of the schema that match for some types of their texts. The other rows cannot match."""
    evaluation = _BatchEvaluation.lenient(selector, batch, dialect, schema, convert=convert)
    if evaluation.root is None:
        return pa.array(np.ones(batch.num_rows, bool))

    def visit(node: Node, operands: list[Mask]) -> Mask:
        match node:
            case And():
                return reduce(np.logical_and, operands)
            case Or():
                return reduce(np.logical_or, operands)
            case Not(operand):
                return evaluation.rows(operand, "false")
        return evaluation.rows(node, "true")

    # In negation normal form NOT has a condition as operand, so NOT selects the mask of FALSE.
    return pa.array(fold(to_negation_normal_form(evaluation.root), visit, junction_children))


def masks(
    selector: Selector | str,
    batch: pa.RecordBatch | pa.Table,
    dialect: str | Dialect = "spec",
    *,
    schema: Schema,
    convert: bool | None = None,
) -> Masks:
    """The possible outcomes of each row of the schema: the vectorised :func:`lenient.outcomes`."""
    return _fold_masks(_BatchEvaluation.lenient(selector, batch, dialect, schema, convert=convert), conjunction)


def exact(
    selector: Selector | str, columns: pa.RecordBatch | pa.Table, dialect: str | Dialect = "spec"
) -> pa.BooleanArray:
    """True, False or null (unknown, or the broker throws) for rows whose columns are the properties, typed."""
    found = _fold_masks(_BatchEvaluation.typed(selector, columns, dialect), _broker_and)
    return pa.array(found.true, mask=~(found.true | found.false))


# --- logic on masks --------------------------------------------------------------------------------


def _fold_masks(evaluation: "_BatchEvaluation", both: Callable[[Masks, Masks], Masks]) -> Masks:
    rows = evaluation.rows_total
    if evaluation.root is None:
        return Masks(np.ones(rows, bool), np.zeros(rows, bool), np.zeros(rows, bool))

    def masks_of(node: Node) -> Masks:
        return Masks(*(evaluation.rows(node, outcome) for outcome in Masks._fields))

    return combine(evaluation.root, masks_of, both)


def _broker_and(left: Masks, right: Masks) -> Masks:
    """The broker's AND, which does not evaluate the right side after FALSE or after an exception."""
    both, evaluated_further = conjunction(left, right), left.true | left.unknown
    return Masks(both.true, left.false | (evaluated_further & right.false), both.unknown)


# --- conditions on columns ------------------------------------------------------------------------


@dataclass(slots=True)
class _BatchEvaluation:
    root: Node | None
    dialect: Dialect
    convert: bool
    rows_total: int
    candidates: Callable[[str], Candidates]
    """Of a name, which a selector may have several times."""

    max_names: int
    exact: bool = False
    tables: dict[int, tuple[Node, Any, NDArray[np.intp] | None]] = field(default_factory=dict)

    @classmethod
    def lenient(
        cls, selector: Selector | str, batch: Any, dialect: str | Dialect, schema: Schema, *, convert: bool | None
    ) -> "_BatchEvaluation":
        root, rules, converting = read_leniently(selector, dialect, convert=convert)
        candidates = cache(SchemaColumns(batch, rules, schema).candidates)
        return cls(root, rules, converting, batch.num_rows, candidates, MAX_NAMES)

    @classmethod
    def typed(cls, selector: Selector | str, table: Any, dialect: str | Dialect) -> "_BatchEvaluation":
        root, rules, converting = read_leniently(selector, dialect)
        candidates = cache(lambda name: typed_column(table, name, rules))
        return cls(root, rules, converting, table.num_rows, candidates, 1 << 10, exact=True)

    def rows(self, node: Node, outcome: str) -> Mask:
        """The rows for which ``outcome`` of one condition is possible."""
        if id(node) not in self.tables:
            self.tables[id(node)] = (node, *self._table(node))
        _, table, codes = self.tables[id(node)]
        mask: Mask = getattr(table, outcome)
        return mask if codes is None else mask[codes]

    def _table(self, node: Node) -> tuple[Masks, NDArray[np.intp] | None]:
        """Return outcomes of distinct values and their codes for a condition on one name, else outcomes of rows and
        None.
        """
        used = names(node)
        if len(used) > self.max_names:
            return self._all_outcomes(self.rows_total), None
        columns = {name: self.candidates(name) for name in used}
        if len(used) == 1:
            column = columns[used[0]]
            return self._outcomes_of_condition(node, columns, column.size), column.codes
        spread = {name: _expand_to_rows(column) for name, column in columns.items()}
        return self._outcomes_of_condition(node, spread, self.rows_total), None

    def _outcomes_of_condition(self, node: Node, columns: Mapping[str, Candidates], size: int) -> Masks:
        possible = Masks(*(np.zeros(size, bool) for _ in Masks._fields))
        for column in columns.values():
            if column.undecided is not None:
                for mask in possible:
                    np.logical_or(mask, column.undecided, out=mask)
        done: dict[Any, list[Mask]] = {}
        for kinds, member in _assignments(columns, size):
            plan = plan_condition(node, kinds, self.dialect, convert=self.convert)
            done.setdefault(plan, []).append(member)
        for plan, members in done.items():
            member = reduce(np.logical_or, members)
            undecided = plan is NOT_COMPUTABLE
            if undecided and self.exact:
                raise UnsupportedSelectorError(f"{render(node)} cannot be evaluated on typed columns.")
            outcomes = (
                self._all_outcomes(size) if undecided else Masks(*vectors.evaluate_plan(plan, _operands(columns), size))
            )
            for mask, outcome in zip(possible, outcomes, strict=True):
                np.logical_or(mask, member & outcome, out=mask)
        return possible

    def _all_outcomes(self, size: int) -> Masks:
        return Masks(*(np.ones(size, bool) for _ in Masks._fields))


def _assignments(columns: Mapping[str, Candidates], size: int) -> Iterator[tuple[dict[str, Kind], Mask]]:
    """Every assignment of kinds to names that some value may have, and the mask of these values."""
    chosen: list[tuple[dict[str, Kind], Mask]] = [({}, np.ones(size, bool))]
    for name, column in columns.items():
        chosen = [
            ({**kinds, name: kind}, both)
            for (kinds, member), (kind, (may_be, _)) in product(chosen, column.kinds.items())
            if (both := member & may_be).any()
        ]
    yield from chosen


def _operands(columns: Mapping[str, Candidates]) -> Mapping[tuple[str, Kind], Any]:
    return {
        (name, Kind.LONG if kind in BITS else kind): data
        for name, column in columns.items()
        for kind, (_, data) in column.kinds.items()
    }


def _expand_to_rows(column: Candidates) -> Candidates:
    """Candidates of rows instead of distinct values, for a condition on two columns."""
    codes = column.codes
    kinds = {kind: (member[codes], vectors.take(data, codes)) for kind, (member, data) in column.kinds.items()}
    undecided = None if column.undecided is None else column.undecided[codes]
    return Candidates(np.arange(len(codes)), len(codes), kinds, undecided)
