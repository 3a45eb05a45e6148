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
from pyspark_jms.dialect import Dialect, dialect_named
from pyspark_jms.errors import InvalidSelectorError, SelectorIgnoredError, SelectorResidualError
from pyspark_jms.model import DestinationKind

__all__ = ["Selection", "Selector", "selection"]

_CONVERT = "convert_string_expressions:"


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
        return self.pushed.residual is not None or (self.selector.check and kind is DestinationKind.TOPIC)

    def apply(self, batch: pa.RecordBatch, kind: DestinationKind) -> pa.RecordBatch:
        """The rows to go on.

        ``SelectorIgnoredError`` when a queue delivered what cannot match: dropping it would destroy it for
        everybody else.
        """
        if self.selector.check and self.pushed.pushed is not None:
            kept = keep(self.pushed.pushed, batch, self.dialect)
            if kept.false_count and kind is DestinationKind.QUEUE:
                raise SelectorIgnoredError(
                    f"{kept.false_count} of {batch.num_rows} messages cannot match the selector: the broker ignored it."
                    " Nothing of this batch was acknowledged.",
                    "An existing queue or subscription has a filter of its own: use another, or selectorCheck=off.",
                )
            batch = batch if not kept.false_count else batch.filter(kept)
        if self.pushed.residual is not None:
            batch = batch.filter(keep(self.pushed.residual, batch, "spec"))
        return batch


@lru_cache(64)
def selection(selector: Selector, dialect_name: str) -> Selection:
    """Parse and split. ``InvalidSelectorError``; ``SelectorResidualError`` where a part stays that may not."""
    dialect: Dialect = dialect_named(dialect_name)
    convert = selector.text.startswith(_CONVERT)
    try:
        pushed = jms_selector.push(selector.text.removeprefix(_CONVERT), dialect.selector_dialect, convert=convert)
    except jms_selector.InvalidSelectorError as error:
        raise InvalidSelectorError(str(error).partition("] ")[2], "JMS 3.1 §3.8.1.1 has the syntax.") from None
    if pushed.residual is not None and selector.residual == "fail":
        raise SelectorResidualError(
            f"{dialect.name} cannot evaluate the whole selector: {'; '.join(pushed.warnings)}.",
            "With selectorResidual=spark the rest is evaluated in Spark, and what does not match it is consumed and"
            " dropped, on a queue also for others. Or filter the DataFrame.",
        )
    return Selection(selector, dialect.selector_dialect, pushed)
