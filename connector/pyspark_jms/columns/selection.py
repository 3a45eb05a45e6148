"""A selector, split into pushdown and residual; and the rows of a batch that match it.

The pushdown is evaluated again on every row, with every type that the text of a property may have had. A row that
matches with none of them shows that the broker ignored the selector, as it does for an existing durable subscription or
a fully qualified queue name. The residual is evaluated in Spark only.

Over STOMP both are evaluated without ``property_types``: an envelope states ``int`` for ``n``, and the broker compares
the text ``'9'``. Over AMQP the broker and the row have the same types.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Literal

import pyarrow as pa

import jms_selector
from jms_selector import Pushdown
from jms_selector.meaning.lenient import locate
from jms_selector.syntax.dialects import CONVERT_PREFIX, dialect_of
from jms_selector.syntax.tree import names
from pyspark_jms.columns.schema import COLUMNS, PROPERTY_MAPS
from pyspark_jms.errors import InvalidSelectorError, SelectorIgnoredError, SelectorResidualError, UnsupportedError
from pyspark_jms.jms.dialect import Target
from pyspark_jms.jms.headers import SELECTOR_SCHEMA
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, DestinationKind

__all__ = ["Selection", "SelectorOptions", "require_evaluable", "selection"]

_NO_SELECTORS = "selectors cannot be pushed down to it"
_MARKERS = frozenset({BODY_MARKER, TYPES_MARKER})
"""Properties of an envelope: brokers see them, rows do not have them."""


@dataclass(frozen=True, slots=True)
class SelectorOptions:
    """The values of options ``selector`` and ``selectorInSpark``."""

    text: str
    in_spark: Literal["check", "residual", "off"] = "check"


@dataclass(frozen=True, slots=True)
class Selection:
    """How a selector is evaluated with one broker."""

    selector: SelectorOptions
    dialect: str
    pushed: Pushdown

    @property
    def text(self) -> str | None:
        """Return the selector that the broker evaluates, or None."""
        return self.pushed.text

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.pushed.warnings

    def may_drop(self, kind: DestinationKind) -> bool:
        """Return whether ``apply`` can drop rows of such a destination. Otherwise it keeps all of them or fails."""
        return self.pushed.residual is not None or (self._to_check is not None and kind is DestinationKind.TOPIC)

    @property
    def _to_check(self) -> jms_selector.Selector | None:
        """The pushdown, if it can be evaluated again: rows no longer have the markers of an envelope."""
        pushed = self.pushed.pushed
        if self.selector.in_spark == "off" or pushed is None or _marks(pushed):
            return None
        return pushed

    def columns(self) -> frozenset[str]:
        """The columns of the rows that ``apply`` reads."""
        found: set[str] = set()
        for selector, dialect in ((self._to_check, self.dialect), (self.pushed.residual, "spec")):
            for name in () if selector is None or selector.root is None else names(selector.root):
                location = locate(dialect_of(dialect), name, SELECTOR_SCHEMA)
                found |= {location.name} if location.kind else PROPERTY_MAPS
        return frozenset(found and found | {"body_error"})

    def apply(
        self, batch: pa.RecordBatch, kind: DestinationKind, has_unheld_time: Callable[[int], bool] = lambda _: False
    ) -> pa.RecordBatch:
        """The rows that match, or may match: a row with ``body_error`` may lack the property that is compared, and
        ``has_unheld_time`` tells of a row whether its message has a time that no column can hold.

        ``SelectorIgnoredError`` when a queue delivered a message that cannot match: dropping the message would take it
        from its other consumers.
        """
        import pyarrow.compute as pc  # 7 MB, and the driver's process of a query does not need it

        kept = None
        if (pushed := self._to_check) is not None:
            kept = self._may_match(pushed, batch, self.dialect, has_unheld_time)
            if kept.false_count and kind is DestinationKind.QUEUE:
                raise SelectorIgnoredError(
                    f"{kept.false_count} of {batch.num_rows} messages cannot match the selector:"
                    " the broker ignored it.",
                    "They stay on the broker, or in the journal. An existing queue or subscription has a filter of its"
                    " own: use another, or selectorInSpark=off.",
                )
        if self.pushed.residual is not None:
            matching = self._may_match(self.pushed.residual, batch, "spec", has_unheld_time)
            kept = matching if kept is None else pc.and_(kept, matching)
        return batch if kept is None or not kept.false_count else batch.filter(kept)

    def _may_match(
        self,
        selector: jms_selector.Selector,
        batch: pa.RecordBatch,
        dialect: str,
        has_unheld_time: Callable[[int], bool],
    ) -> pa.BooleanArray:
        import pyarrow.compute as pc

        from jms_selector.arrow import keep

        kept = pc.or_(
            keep(selector, self._compared(batch), dialect, schema=SELECTOR_SCHEMA),
            batch.column("body_error").is_valid(),
        )
        used = () if selector.root is None else names(selector.root)
        times = {locate(dialect_of(dialect), name, SELECTOR_SCHEMA).name for name in used} & SELECTOR_SCHEMA.times
        if not kept.false_count or not times:
            return kept
        missing = reduce(pc.or_, [batch.column(name).is_null() for name in times])
        doubtful = pc.indices_nonzero(pc.and_(missing, pc.invert(kept))).to_pylist()
        unheld = pa.array(list(filter(has_unheld_time, doubtful)), pa.int64())
        return pc.or_(kept, pc.is_in(pa.array(range(batch.num_rows), pa.int64()), unheld)) if len(unheld) else kept

    def _compared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the types that the broker has; over STOMP without types."""
        if dialect_of(self.dialect).typed_messages or "property_types" not in batch.schema.names:
            return batch
        return batch.drop_columns(["property_types"])


def _marks(selector: jms_selector.Selector) -> frozenset[str]:
    """The markers of an envelope that the selector uses."""
    return frozenset() if selector.root is None else _MARKERS.intersection(names(selector.root))


def _hidden(selector: jms_selector.Selector, dialect: str) -> frozenset[str]:
    """The names of the selector that rows do not show, although messages may have a value."""
    used = frozenset() if selector.root is None else frozenset(names(selector.root))
    rules = dialect_of(dialect)
    return frozenset(
        name for name in used if name in _MARKERS or not (rules.shows(name) or rules.aliases.get(name, name) in COLUMNS)
    )


def require_evaluable(selector: SelectorOptions | None, target: Target) -> None:
    """Raise the error of a selector that no broker can evaluate which this may be."""
    if selector is None:
        return
    try:
        target.require_any(lambda dialect: selection(selector, dialect.name, dialect.selector_dialect))
    except SelectorResidualError as error:
        if len(target.dialects) == 1:
            raise
        fact = f"No broker that broker=auto may meet evaluates the whole selector. For example: {error.fact}"
        raise SelectorResidualError(fact, error.remedy) from None


@lru_cache(64)
def selection(selector: SelectorOptions, broker: str, selector_dialect: str | None) -> Selection:
    """Parse and split a selector for a broker with this selector dialect, or with none.

    Raises ``InvalidSelectorError``, or ``SelectorResidualError`` when ``selectorInSpark`` forbids a residual.
    """
    convert = selector.text.startswith(CONVERT_PREFIX)
    try:
        text = selector.text.removeprefix(CONVERT_PREFIX)
        if selector_dialect is None:
            whole = replace(jms_selector.parse(text), convert=convert)
            pushed = Pushdown(text=None, pushed=None, residual=whole, warnings=(_NO_SELECTORS,))
        else:
            pushed = jms_selector.push(text, selector_dialect, convert=convert, schema=SELECTOR_SCHEMA)
    except jms_selector.InvalidSelectorError as error:
        raise InvalidSelectorError(str(error).partition("] ")[2], "JMS 3.1 §3.8.1.1 defines the syntax.") from None
    except jms_selector.UnsupportedSelectorError as error:
        raise UnsupportedError(
            str(error).partition("] ")[2], f"Leave out {CONVERT_PREFIX}, and compare with strings: n = '5'."
        ) from None
    if pushed.residual is not None and selector.in_spark != "residual":
        raise SelectorResidualError(
            f"{broker} cannot evaluate the whole selector: {'; '.join(each.rstrip('.') for each in pushed.warnings)}.",
            "With selectorInSpark=residual, Spark evaluates this part: messages that do not match it are consumed and"
            " dropped, and other consumers of a queue lose them. Or filter the DataFrame.",
        )
    if pushed.residual is not None and (gone := _hidden(pushed.residual, selector_dialect or "spec")):
        raise SelectorResidualError(
            f"{broker} cannot evaluate the part of the selector about {min(gone)}, and rows do not have this property.",
            "Filter the DataFrame by body_type or property_types." if gone & _MARKERS else "Leave it out.",
        )
    return Selection(selector, selector_dialect or "spec", pushed)
