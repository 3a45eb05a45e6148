"""A selector, split between a broker and Spark; and the rows that may go on.

What the broker was given is evaluated again, leniently: over every type that a header's text may have had. A
row that no typing matches was not asked for: the broker ignored the selector (an existing durable
subscription, a fully qualified queue name). What the broker could not be given stays for Spark.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import pyarrow as pa

import jms_selector
from jms_selector import Pushdown
from jms_selector.arrow import keep
from jms_selector.syntax.tree import names
from pyspark_jms.errors import InvalidSelectorError, SelectorIgnoredError, SelectorResidualError
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, DestinationKind

__all__ = ["Selection", "Selector", "selection"]

_NO_SELECTORS = "its STOMP has no selectors"
_CONVERT = "convert_string_expressions:"
_MARKERS = frozenset({BODY_MARKER, TYPES_MARKER})


@dataclass(frozen=True, slots=True)
class Selector:
    """Options ``selector``, ``selectorResidual`` and ``selectorCheck``."""

    text: str
    residual: Literal["fail", "spark"] = "fail"
    check: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """What becomes of a selector with one broker."""

    selector: Selector
    dialect: str
    pushed: Pushdown

    @property
    def text(self) -> str | None:
        """For SUBSCRIBE."""
        return self.pushed.text

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.pushed.warnings

    def may_drop(self, kind: DestinationKind) -> bool:
        """Whether ``apply`` can drop rows of such a destination, instead of letting all through or failing."""
        return self.pushed.residual is not None or (self._to_check is not None and kind is DestinationKind.TOPIC)

    @property
    def _to_check(self) -> jms_selector.Selector | None:
        """What the broker was given, if rows still have all that it speaks of: the marks of an envelope are gone."""
        pushed = self.pushed.pushed
        if not self.selector.check or pushed is None or _marks(pushed):
            return None
        return pushed

    def apply(self, batch: pa.RecordBatch, kind: DestinationKind) -> pa.RecordBatch:
        """The rows to go on.

        ``SelectorIgnoredError`` when a queue delivered what cannot match: dropping it would destroy it for
        everybody else.
        """
        if (asked := self._to_check) is not None:
            kept = keep(asked, batch, self.dialect)
            if kept.false_count and kind is DestinationKind.QUEUE:
                raise SelectorIgnoredError(
                    f"{kept.false_count} of {batch.num_rows} messages cannot match the selector: the broker ignored it."
                    " Without a journal nothing of this batch was acknowledged; with one its messages stay in the"
                    " journal.",
                    "An existing queue or subscription has a filter of its own: use another, or selectorCheck=off.",
                )
            batch = batch if not kept.false_count else batch.filter(kept)
        if self.pushed.residual is not None:
            batch = batch.filter(keep(self.pushed.residual, batch, "spec"))
        return batch


def _marks(selector: jms_selector.Selector) -> frozenset[str]:
    """The marks of an envelope that it speaks of."""
    return frozenset() if selector.root is None else _MARKERS.intersection(names(selector.root))


@lru_cache(64)
def selection(selector: Selector, broker: str, selector_dialect: str | None) -> Selection:
    """Parse and split for a broker whose selectors are of that dialect; None: the broker has no selectors.

    ``InvalidSelectorError``; ``SelectorResidualError`` when a part that the broker cannot evaluate is not allowed.
    """
    convert = selector.text.startswith(_CONVERT)
    try:
        text = selector.text.removeprefix(_CONVERT)
        if selector_dialect is None:
            pushed = Pushdown(text=None, pushed=None, residual=jms_selector.parse(text), warnings=(_NO_SELECTORS,))
        else:
            pushed = jms_selector.push(text, selector_dialect, convert=convert)
    except jms_selector.InvalidSelectorError as error:
        raise InvalidSelectorError(str(error).partition("] ")[2], "JMS 3.1 §3.8.1.1 has the syntax.") from None
    if pushed.residual is not None and selector.residual == "fail":
        raise SelectorResidualError(
            f"{broker} cannot evaluate the whole selector: {'; '.join(pushed.warnings)}.",
            "With selectorResidual=spark the rest is evaluated in Spark, and what does not match it is consumed and"
            " dropped, on a queue also for others. Or filter the DataFrame.",
        )
    if pushed.residual is not None and (gone := _marks(pushed.residual)):
        raise SelectorResidualError(
            f"{broker} cannot evaluate what the selector says of {min(gone)}, and no row has it any more.",
            "Filter the DataFrame by body_type, or property_types.",
        )
    return Selection(selector, selector_dialect or "spec", pushed)
