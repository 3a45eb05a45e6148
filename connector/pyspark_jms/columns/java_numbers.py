"""Floating-point numbers of an Arrow array → their texts in Java (``Double.toString``).

Arrow finds the digits: the shortest ones that are read as the same number, as in Java since version 19. This module
places the point: a plain number from 1e-3 to 1e7, otherwise one digit before the point and an exponent.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jms_selector.meaning.conversions import java_text as text_of_one
from jms_selector.syntax.kinds import Kind, Value
from pyspark_jms.columns.ragged import Mask

__all__ = ["java_text"]

_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-3, 1e7
_FURTHEST = 25
"""An upper bound for the zeros or digits that Arrow writes before it uses an exponent; today Arrow writes 10."""


def java_text(numbers: pa.Array) -> pa.Array:
    """``toString`` of each float or double, as binary."""
    texts = pc.replace_substring_regex(numbers.cast(pa.string()), "^(-?[0-9]+)$", r"\1.0")
    sizes = np.abs(numbers.fill_null(0).to_numpy())
    large, small = ~(sizes < _LARGEST_PLAIN), (sizes > 0) & (sizes < _SMALLEST_PLAIN)  # NaN counts as large
    tiny = small & (sizes < np.finfo(sizes.dtype).smallest_normal)
    texts = _replaced(texts, large, _large)
    texts = _replaced(texts, small, _small)
    if tiny.any():
        kind = Kind.FLOAT if pa.types.is_float32(numbers.type) else Kind.DOUBLE
        texts = _replaced(texts, tiny, lambda _: _one_by_one(numbers.filter(pa.array(tiny)), kind))
    return texts.view(pa.binary())


def _replaced(texts: pa.Array, mask: Mask, by: Callable[[pa.Array], pa.Array]) -> pa.Array:
    where = pa.array(mask)
    return pc.replace_with_mask(texts, where, by(texts.filter(where))) if mask.any() else texts


def _large(texts: pa.Array) -> pa.Array:
    """``1e+10``, ``12345678.9``, ``nan`` or ``-inf`` → ``1.0E10``, ``1.23456789E7``, ``NaN``, ``-Infinity``."""
    texts = pc.replace_substring(pc.replace_substring(texts, "nan", "NaN"), "inf", "Infinity")
    return _with_exponents(
        texts, range(7, _FURTHEST), lambda n: (rf"^(-?[0-9])([0-9]{{{n}}})\.([0-9]+)$", rf"\1.\2\3E{n}")
    )


def _small(texts: pa.Array) -> pa.Array:
    """``1e-7`` or ``0.00012`` → ``1.0E-7``, ``1.2E-4``."""
    return _with_exponents(
        texts, range(4, _FURTHEST), lambda n: (rf"^(-?)0\.0{{{n - 1}}}([1-9])([0-9]*)$", rf"\1\2.\3E-{n}")
    )


def _with_exponents(texts: pa.Array, exponents: range, written_out: Callable[[int], tuple[str, str]]) -> pa.Array:
    """``written_out``: pattern and replacement for a number that Arrow writes without its exponent."""
    texts = pc.replace_substring_regex(texts, r"e\+?", "E")
    texts = pc.replace_substring_regex(texts, "^(-?[0-9])E", r"\1.0E")
    for exponent in exponents:
        if pc.all(pc.match_substring_regex(texts, "E|N|I")).as_py():
            break
        texts = pc.replace_substring_regex(texts, *written_out(exponent))
    texts = pc.replace_substring_regex(texts, r"(\.[0-9]*?)0+E", r"\1E")
    return pc.replace_substring(texts, ".E", ".0E")


# Below the smallest normal number the shortest text may have one digit, where Java chooses one with two digits.
def _one_by_one(numbers: pa.Array, kind: Kind) -> pa.Array:
    encoded = numbers.dictionary_encode()
    texts = [text_of_one(Value(kind, number)) for number in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)
