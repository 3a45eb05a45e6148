"""Selector -> Arrow masks, a whole batch at a time.

:func:`keep` and :func:`masks` go over the connector's schema (properties as text, all typings tried),
:func:`exact` over columns of Arrow's own types. A column is looked at once: it is dictionary-encoded, every
condition is decided for the distinct values, and rows take their value's verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jms_selector import vectors
from jms_selector.dialects import Dialect
from jms_selector.lenient import MAX_NAMES, Source, lenient_dialect, prepared, source
from jms_selector.parse import parse
from jms_selector.plan import ANYTHING, negation_normal, specialise
from jms_selector.tree import And, Node, Not, Or, Selector, conditions, fold, names
from jms_selector.values import BITS, FLOATING_TEXT, INTEGER_TEXT, Kind

__all__ = ["Masks", "exact", "keep", "masks"]

Mask = NDArray[np.bool_]


class Masks(NamedTuple):
    """Per row, which outcomes are possible. A row in none of them: the broker throws."""

    true: Mask
    false: Mask
    unknown: Mask


def keep(
    selector: Selector | str,
    batch: pa.RecordBatch | pa.Table,
    dialect: str | Dialect = "spec",
    *,
    convert: bool | None = None,
) -> pa.BooleanArray:
    """Rows of the schema that some typing of their texts matches. A dropped row cannot match."""
    judge = _Judge.lenient(selector, batch, dialect, convert=convert)
    if judge.root is None:
        return pa.array(np.ones(batch.num_rows, bool))

    def visit(node: Node, operands: list[Mask]) -> Mask:
        match node:
            case And():
                return reduce(np.logical_and, operands)
            case Or():
                return reduce(np.logical_or, operands)
            case Not(operand):
                return judge.rows(operand, "false")
        return judge.rows(node, "true")

    # NOT stands above conditions only, and a walk ends there: it asks for the other mask.
    return pa.array(fold(negation_normal(judge.root), visit, _above_not))


def _above_not(node: Node) -> tuple[Node, ...]:
    return node.children if isinstance(node, And | Or) else ()


def masks(
    selector: Selector | str,
    batch: pa.RecordBatch | pa.Table,
    dialect: str | Dialect = "spec",
    *,
    convert: bool | None = None,
) -> Masks:
    """The possible outcomes of each row of the schema: the vectorised :func:`lenient.outcomes`."""
    return _fold_masks(_Judge.lenient(selector, batch, dialect, convert=convert), batch.num_rows, _lenient_and)


def exact(
    selector: Selector | str, columns: pa.RecordBatch | pa.Table, dialect: str | Dialect = "spec"
) -> pa.BooleanArray:
    """True, False or null (unknown, or the broker throws) for rows whose columns are the properties, typed."""
    found = _fold_masks(_Judge.typed(selector, columns, dialect), columns.num_rows, _broker_and)
    return pa.array(found.true, mask=~(found.true | found.false))


# --- logic on masks --------------------------------------------------------------------------------


def _fold_masks(judge: "_Judge", rows: int, conjunction: Any) -> Masks:
    if judge.root is None:
        return Masks(np.ones(rows, bool), np.zeros(rows, bool), np.zeros(rows, bool))

    def visit(node: Node, operands: list[Masks]) -> Masks:
        match node:
            case And():
                return reduce(conjunction, operands)
            case Or():
                return _inverted(reduce(conjunction, map(_inverted, operands)))
            case Not():
                return _inverted(operands[0])
        return Masks(*(judge.rows(node, outcome) for outcome in Masks._fields))

    return fold(judge.root, visit, conditions)


def _inverted(one: Masks) -> Masks:
    return Masks(one.false, one.true, one.unknown)


def _lenient_and(left: Masks, right: Masks) -> Masks:
    unknown = (left.unknown & (right.true | right.unknown)) | (right.unknown & left.true)
    return Masks(left.true & right.true, left.false | right.false, unknown)


def _broker_and(left: Masks, right: Masks) -> Masks:
    """As the broker's AND goes: the right side is not looked at after FALSE, nor after an exception."""
    went_on = left.true | left.unknown
    unknown = (left.unknown & (right.true | right.unknown)) | (right.unknown & left.true)
    return Masks(left.true & right.true, left.false | (went_on & right.false), unknown)


# --- conditions on columns ------------------------------------------------------------------------


@dataclass(slots=True)
class _Candidates:
    """One name's possible values: for each kind the distinct values that may be of it."""

    codes: NDArray[np.intp]
    """Row -> place among the distinct values."""

    size: int
    kinds: dict[Kind, tuple[Mask, Any]]
    """Kind -> (which distinct values may be of it, their data)."""

    anything: Mask | None = None


@dataclass(slots=True)
class _Judge:
    root: Node | None
    dialect: Dialect
    convert: bool
    rows_total: int
    found: Any
    """Name -> candidates."""

    most: int
    cache: dict[str, _Candidates] = field(default_factory=dict)
    tables: dict[int, tuple[Node, Any, NDArray[np.intp] | None]] = field(default_factory=dict)

    @classmethod
    def lenient(cls, selector: Selector | str, batch: Any, dialect: str | Dialect, *, convert: bool | None) -> "_Judge":
        rules = lenient_dialect(dialect)
        selector = parse(selector) if isinstance(selector, str) else selector
        columns = _SchemaColumns(batch, rules)
        converting = selector.convert if convert is None else convert
        return cls(prepared(selector), rules, converting, batch.num_rows, columns.candidates, MAX_NAMES)

    @classmethod
    def typed(cls, selector: Selector | str, table: Any, dialect: str | Dialect) -> "_Judge":
        rules = lenient_dialect(dialect)
        selector = parse(selector) if isinstance(selector, str) else selector

        def candidates(name: str) -> _Candidates:
            return _typed_column(table, name, rules)

        return cls(prepared(selector), rules, selector.convert, table.num_rows, candidates, 1 << 10)

    def rows(self, node: Node, outcome: str) -> Mask:
        """The rows for which ``outcome`` of one condition is possible."""
        if id(node) not in self.tables:
            self.tables[id(node)] = (node, *self._table(node))
        _, table, codes = self.tables[id(node)]
        mask: Mask = getattr(table, outcome)
        return mask if codes is None else mask[codes]

    def _table(self, node: Node) -> tuple[Masks, NDArray[np.intp] | None]:
        """Outcomes in the space of distinct values for one name, else of rows; and the way from there."""
        spoken = names(node)
        if len(spoken) > self.most:
            return self._all(self.rows_total), None
        columns = {name: self._candidates(name) for name in spoken}
        if len(spoken) == 1:
            column = columns[spoken[0]]
            return self._judged(node, columns, column.size), column.codes
        spread = {name: _spread(column) for name, column in columns.items()}
        return self._judged(node, spread, self.rows_total), None

    def _candidates(self, name: str) -> _Candidates:
        if name not in self.cache:
            self.cache[name] = self.found(name)
        return self.cache[name]

    def _judged(self, node: Node, columns: Mapping[str, _Candidates], size: int) -> Masks:
        possible = Masks(*(np.zeros(size, bool) for _ in Masks._fields))
        for column in columns.values():
            if column.anything is not None:
                for mask in possible:
                    np.logical_or(mask, column.anything, out=mask)
        done: dict[Any, list[Mask]] = {}
        for kinds, member in _assignments(columns, size):
            plan = specialise(node, kinds, self.dialect, convert=self.convert)
            done.setdefault(plan, []).append(member)
        for plan, members in done.items():
            member = reduce(np.logical_or, members)
            if plan is ANYTHING:
                outcomes = self._all(size)
            else:
                outcomes = Masks(*vectors.test(plan, _operands(columns), size))
            for mask, outcome in zip(possible, outcomes, strict=True):
                np.logical_or(mask, member & outcome, out=mask)
        return possible

    def _all(self, size: int) -> Masks:
        return Masks(*(np.ones(size, bool) for _ in Masks._fields))


def _assignments(columns: Mapping[str, _Candidates], size: int) -> Iterator[tuple[dict[str, Kind], Mask]]:
    """Every assignment of kinds that some value has, and the values that may have it."""
    chosen: list[tuple[dict[str, Kind], Mask]] = [({}, np.ones(size, bool))]
    for name, column in columns.items():
        chosen = [
            ({**kinds, name: kind}, both)
            for (kinds, member), (kind, (may_be, _)) in product(chosen, column.kinds.items())
            if (both := member & may_be).any()
        ]
    yield from chosen


def _operands(columns: Mapping[str, _Candidates]) -> Mapping[tuple[str, Kind], Any]:
    return {
        (name, Kind.LONG if kind in BITS else kind): data
        for name, column in columns.items()
        for kind, (_, data) in column.kinds.items()
    }


def _spread(column: _Candidates) -> _Candidates:
    """From distinct values to rows, for a condition on two columns."""
    codes = column.codes
    kinds = {kind: (member[codes], vectors.take(data, codes)) for kind, (member, data) in column.kinds.items()}
    anything = None if column.anything is None else column.anything[codes]
    return _Candidates(np.arange(len(codes)), len(codes), kinds, anything)


# --- columns of the schema ------------------------------------------------------------------------


class _SchemaColumns:
    """Names -> candidates, from a batch of the connector's schema."""

    def __init__(self, batch: pa.RecordBatch | pa.Table, dialect: Dialect) -> None:
        self.batch = batch
        self.dialect = dialect
        self.names = set(batch.schema.names)

    def candidates(self, name: str) -> _Candidates:
        where = source(self.dialect, name)
        rows = self.batch.num_rows
        if not where.told:
            return _Candidates(np.zeros(rows, np.intp), 1, {}, np.ones(1, bool))
        if where.kind:
            return self._header(where)
        texts = self._entries("properties", where.name)
        types = self._entries("property_types", where.name)
        if types.null_count == rows:
            return self._of_texts(where, *_encoded(texts))
        return self._of_stated(where, texts, types)

    def _column(self, name: str) -> pa.Array:
        if name not in self.names:
            return pa.nulls(self.batch.num_rows)
        column = self.batch.column(name)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def _entries(self, column: str, key: str) -> pa.Array:
        """The entry ``key`` of a map column, null where there is none."""
        rows = self.batch.num_rows
        maps = self._column(column)
        if maps.null_count == rows:
            return pa.nulls(rows, pa.string())
        return _lookup(maps, key)

    # --- headers ---------------------------------------------------------------------------------

    def _header(self, where: Source) -> _Candidates:
        column = self._column(where.name)
        if where.words is not None:
            column = _worded(column, where.words)
        elif where.kind is Kind.LONG and pa.types.is_timestamp(column.type):
            column = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", tz=column.type.tz))
            column = column.cast(pa.int64())
        codes, distinct = _encoded(column)
        size = len(distinct) + 1
        assert where.kind is not None
        present = np.arange(size) < len(distinct)
        kinds = {where.kind: (present, vectors.data(distinct, where.kind, size))}
        return self._completed(where, _Candidates(codes, size, kinds), ~present)

    # --- properties ------------------------------------------------------------------------------

    def _of_texts(self, where: Source, codes: NDArray[np.intp], distinct: pa.Array) -> _Candidates:
        size = len(distinct) + 1
        column = _Candidates(codes, size, _readings(distinct, size))
        absent = np.arange(size) == len(distinct)
        for text in self.dialect.null_texts:
            same = np.append(_mask(pc.equal(distinct, text)), False)
            _join(column.kinds, Kind.NULL, same, None)
        return self._completed(where, column, absent)

    def _of_stated(self, where: Source, texts: pa.Array, types: pa.Array) -> _Candidates:
        """Where the type is stated and the text can be of it, it is the only candidate."""
        codes, distinct = _encoded(texts)
        type_codes, stated = _encoded(types)
        size = len(distinct) + 1
        plain = self._of_texts(where, codes, distinct)
        width = len(stated) + 1
        kinds: dict[Kind, tuple[Mask, Any]] = {}
        qualified = np.zeros((size, width), bool)
        for place, name in enumerate(stated.to_pylist()):
            if name in plain.kinds and name != Kind.NULL:
                qualified[:, place] = plain.kinds[Kind(name)][0]
        for kind, (member, data) in plain.kinds.items():
            own = np.array([*(name == kind for name in stated.to_pylist()), False])
            may_be = member[:, None] & (own[None, :] | ~qualified)
            spread = vectors.take(data, np.repeat(np.arange(size), width))
            kinds[kind] = (may_be.ravel(), spread)
        anything = None if plain.anything is None else np.repeat(plain.anything, width)
        return _Candidates(codes * width + type_codes, size * width, kinds, anything)

    def _completed(self, where: Source, column: _Candidates, absent: Mask) -> _Candidates:
        """What absence may mean, and what the broker never sees."""
        if where.absent is None:
            column.anything = absent
        for value in where.absent or ():
            data = None if value.kind is Kind.NULL else np.zeros(column.size, np.int64)
            _join(column.kinds, value.kind, absent, data)
        if where.or_null:
            _join(column.kinds, Kind.NULL, np.ones(column.size, bool), None)
        return column


def _join(kinds: dict[Kind, tuple[Mask, Any]], kind: Kind, member: Mask, data: Any) -> None:
    """Add values to a kind; where it is new, with their data (an absent time counts as 0)."""
    known = kinds.get(kind)
    kinds[kind] = (member, data) if known is None else (known[0] | member, known[1])


def _worded(column: pa.Array, words: Mapping[int, str]) -> pa.Array:
    values = pc.index_in(column, pa.array(list(words), column.type))
    return pc.coalesce(pa.array(list(words.values())).take(values), column.cast(pa.string()))


def _mask(array: pa.Array) -> Mask:
    found: Mask = np.asarray(array.fill_null(False))  # noqa: FBT003 - the value to fill with
    return found


def _encoded(column: pa.Array) -> tuple[NDArray[np.intp], pa.Array]:
    """Places among the distinct values, null last; and the distinct values."""
    encoded = column.dictionary_encode()
    codes = encoded.indices.fill_null(len(encoded.dictionary))
    return np.asarray(codes).astype(np.intp), encoded.dictionary


def _lookup(maps: pa.MapArray, key: str) -> pa.Array:
    """``map_lookup(…, 'first')``, thirty times faster: all keys are compared at once."""
    offsets = np.asarray(maps.offsets)
    start, stop = int(offsets[0]), int(offsets[-1])
    keys = maps.keys.slice(start, stop - start) if len(maps.keys) != stop - start else maps.keys
    places = np.flatnonzero(_mask(pc.equal(keys, key)))
    widths = np.diff(offsets)
    if len(widths) and widths[0] and (widths == widths[0]).all():
        rows = places // widths[0]
    else:
        rows = np.searchsorted(offsets - start, places, side="right") - 1
    found = np.full(len(maps), -1, np.int64)
    found[rows[::-1]] = places[::-1]  # the first entry wins
    if maps.null_count:
        found[~np.asarray(maps.is_valid())] = -1
    items = maps.items.slice(start, stop - start) if len(maps.items) != stop - start else maps.items
    return items.take(pa.array(found, mask=found < 0))


def _readings(distinct: pa.Array, size: int) -> dict[Kind, tuple[Mask, Any]]:
    """Vectorised :func:`values.readings`, with one place more for the absent value."""
    present = np.arange(size) < len(distinct)
    kinds: dict[Kind, tuple[Mask, Any]] = {Kind.STRING: (present, vectors.data(distinct, Kind.STRING, size))}
    booleans = np.append(_mask(pc.is_in(distinct, pa.array(["true", "false"]))), False)
    if booleans.any():
        true = np.append(_mask(pc.equal(distinct, "true")), False)
        kinds[Kind.BOOLEAN] = (booleans, true)
    integers, numbers = _integers(distinct, size)
    if integers.any():
        for kind, bits in BITS.items():
            half = 1 << (bits - 1)
            kinds[kind] = (integers & (numbers >= -half) & (numbers <= half - 1), numbers)
    floats = np.append(_mask(pc.match_substring_regex(distinct, rf"\A(?:{FLOATING_TEXT})\z")), False)
    if floats.any():
        doubles = np.zeros(size)
        texts = distinct.filter(pa.array(floats[:-1]))
        doubles[np.flatnonzero(floats)] = np.asarray(pc.replace_substring(texts, "Infinity", "inf").cast(pa.float64()))
        with np.errstate(over="ignore"):
            kinds[Kind.FLOAT] = (floats, doubles.astype(np.float32))
        kinds[Kind.DOUBLE] = (floats, doubles)
    return kinds


_LONGEST = "9223372036854775807"


def _integers(distinct: pa.Array, size: int) -> tuple[Mask, NDArray[np.int64]]:
    """Which texts Java renders a long as, and their numbers."""
    texts = pc.match_substring_regex(distinct, rf"\A(?:{INTEGER_TEXT})\z")
    digits = pc.utf8_ltrim(distinct, "-")
    limit = pc.if_else(pc.starts_with(distinct, "-"), "9223372036854775808", _LONGEST)
    small = pc.or_(pc.less(pc.utf8_length(digits), len(_LONGEST)), pc.less_equal(digits, limit))
    member = np.append(_mask(pc.and_(texts, small)), False)
    numbers = np.zeros(size, np.int64)
    if member.any():
        numbers[np.flatnonzero(member)] = np.asarray(distinct.filter(pa.array(member[:-1])).cast(pa.int64()))
    return member, numbers


# --- typed columns --------------------------------------------------------------------------------

_ARROW_KINDS: Sequence[tuple[Any, Kind]] = (
    (pa.types.is_boolean, Kind.BOOLEAN),
    (pa.types.is_int8, Kind.BYTE),
    (pa.types.is_int16, Kind.SHORT),
    (pa.types.is_int32, Kind.INT),
    (pa.types.is_int64, Kind.LONG),
    (pa.types.is_float32, Kind.FLOAT),
    (pa.types.is_float64, Kind.DOUBLE),
    (pa.types.is_string, Kind.STRING),
    (pa.types.is_large_string, Kind.STRING),
)


def _typed_column(table: pa.RecordBatch | pa.Table, name: str, dialect: Dialect) -> _Candidates:
    rows = table.num_rows
    own = dialect.aliases.get(name, name)
    if own not in table.schema.names or own in dialect.never_seen:
        return _Candidates(np.zeros(rows, np.intp), 1, {Kind.NULL: (np.ones(1, bool), None)})
    column = table.column(own)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if words := dialect.words.get(name):
        column = pc.coalesce(pa.array(list(words.values())).take(pc.index_in(column, pa.array(list(words)))), column)
    kind = next((kind for is_it, kind in _ARROW_KINDS if is_it(column.type)), None)
    if kind is None:
        raise TypeError(f"column {own} is {column.type}: no type of a JMS property")
    codes, distinct = _encoded(column)
    size = len(distinct) + 1
    present = np.arange(size) < len(distinct)
    kinds = {kind: (present, vectors.data(distinct, kind, size)), Kind.NULL: (~present, None)}
    return _Candidates(codes, size, kinds)
