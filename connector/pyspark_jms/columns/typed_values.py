"""JMS types and texts of values → which texts are not valid for their type, over whole columns.

The vectorised form of ``jms.rules``, from the same table.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.cut import Ints, Mask
from pyspark_jms.columns.integers import integers
from pyspark_jms.jms.rules import TEXTS, TextRule

__all__ = ["misfits"]

_TYPES = pa.array([kind.value for kind in TEXTS], pa.string())
_ANY_TEXT = pa.scalar(value=True, type=pa.bool_())
_PLUS = "^\\+([0-9])"


def misfits(types: pa.Array, values: pa.Array) -> Mask:
    """True where the type is null or unknown to JMS, or where ``element_value_problem`` finds a problem."""
    codes = pc.index_in(types, value_set=_TYPES).fill_null(-1).to_numpy()
    wrong: Mask = codes < 0
    for code, rule in enumerate(TEXTS.values()):
        rows = np.flatnonzero(codes == code)
        if len(rows):
            wrong[rows] = _misfits(rule, values, rows)
    return wrong


def _misfits(rule: TextRule, values: pa.Array, rows: Ints) -> Mask:
    texts = values if len(rows) == len(values) else values.take(pa.array(rows))
    if rule.numbers is None:
        fitting = pc.match_substring_regex(texts, f"^(?:{rule.pattern})$").fill_null(_ANY_TEXT)
        return ~np.asarray(fitting)
    # Whole numbers have a range, so they are parsed and not matched by a pattern.
    unsigned = pc.replace_substring_regex(texts, _PLUS, "\\1") if _has_plus(texts) else texts
    numbers, _ = integers(unsigned, rule.numbers.start, rule.numbers.stop - 1)
    return np.asarray(pc.and_(pc.is_null(numbers), pc.is_valid(texts)))


def _has_plus(texts: pa.Array) -> bool:
    return bool(pc.any(pc.starts_with(texts, "+")).as_py())
