"""Texts of JMS values over whole columns: whether they fit their type, their numbers, and the forms that Java writes.

This is the vectorised form of ``jms.rules``, from the same table. Arrow's casts are used only where they read and write
what Java does: Arrow also reads hexadecimal numbers, and it writes exponents otherwise.
"""

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jms_selector.meaning.conversions import java_text as text_of_one
from jms_selector.syntax.kinds import Kind, Value
from pyspark_jms.columns.arrays import Ints, Mask, contents
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.model import BodyType
from pyspark_jms.jms.rules import AMQP_TYPES, TEXTS, TextRule

__all__ = ["BODY_TYPE_NAMES", "integers", "java_text", "jms_types", "misfits", "placed"]

# --- whole numbers ----------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?[0-9]+")
_INT64_DIGITS = 18
_MINUS, _ZERO, _NINE = ord("-"), ord("0"), ord("9")
# Typed scalars: with a plain Python value pyarrow looks for pandas in each call, which costs more than the call.
_NO_STRING, _NO_NUMBER = pa.scalar(None, pa.string()), pa.scalar(None, pa.int64())
_FALSE = pa.scalar(value=False, type=pa.bool_())


def integers(texts: pa.Array, least: int, most: int) -> tuple[pa.Array, list[int]]:
    """Decimal numbers as int64, null outside ``least`` to ``most``; and the rows whose text is not a number."""
    numbers, wrong = _parse(texts)
    low, high = pa.scalar(least, pa.int64()), pa.scalar(most, pa.int64())
    inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return pc.if_else(inside, numbers, _NO_NUMBER), wrong


def _parse(texts: pa.Array) -> tuple[pa.Array, list[int]]:
    if _only_digits(texts):
        try:
            return pc.cast(texts, pa.int64()), []
        except pa.ArrowInvalid:
            pass  # a lone minus, an empty text, or too many digits
    short = pc.match_substring_regex(texts, rf"^-?[0-9]{{1,{_INT64_DIGITS}}}$")
    numbers = pc.cast(pc.if_else(short, texts, _NO_STRING), pa.int64())
    odd = np.flatnonzero(pc.invert(short).fill_null(_FALSE).to_numpy(zero_copy_only=False))
    wrong = [row for row in odd.tolist() if not _NUMBER.fullmatch(texts[row].as_py())]
    fitting = {row: _int64(texts[row].as_py()) for row in sorted(set(odd.tolist()) - set(wrong))}
    return placed(numbers, list(fitting), pa.array(fitting.values(), pa.int64())), wrong


def _only_digits(texts: pa.Array) -> bool:
    """Return whether Arrow's own cast may be used: it accepts more than decimal numbers, such as hexadecimal ones."""
    buffer, limits = contents(texts)
    data = np.frombuffer(buffer, np.uint8)[: limits[-1]]
    return bool((((data >= _ZERO) & (data <= _NINE)) | (data == _MINUS)).all())


def _int64(text: str) -> int | None:
    """A number of any length; None where 64 bits cannot hold it, and so outside every range."""
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > _INT64_DIGITS + 1:
        return None
    number = -int(digits) if text.startswith("-") else int(digits)
    return number if -(1 << 63) <= number < 1 << 63 else None


def placed(values: pa.Array, rows: Ints | list[int], found: pa.Array) -> pa.Array:
    """The values with those that were ``found`` for these rows, which ascend."""
    mask = np.zeros(len(values), np.bool_)
    mask[rows] = True
    return pc.replace_with_mask(values, pa.array(mask), found)


# --- floating-point numbers -------------------------------------------------------------------------

# Arrow finds the digits: the shortest ones that are read as the same number, as in Java since version 19. This code
# places the point: a plain number from 1e-3 to 1e7, otherwise one digit before the point and an exponent.

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


# --- texts that are not valid for their type --------------------------------------------------------

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


# --- names of types ---------------------------------------------------------------------------------

_AMQP = pa.array(list(AMQP_TYPES), pa.string())
_AMQP_ONLY = pa.array([name for name in AMQP_TYPES if name not in set(ValueType)], pa.string())
"""An element of a map or stream may be a char of JMS. ``AMQP_TYPES`` begins with these names."""

_JMS = pa.array([kind.value for kind in AMQP_TYPES.values()], pa.string())


def jms_types(types: pa.Array, *, of_elements: bool) -> pa.Array:
    """Return these types, string or binary, with the JMS type in place of each type of AMQP."""
    places = pc.index_in(types, value_set=(_AMQP_ONLY if of_elements else _AMQP).view(types.type))
    if places.null_count == len(types):
        return types
    return pc.if_else(places.is_valid(), _JMS.view(types.type).take(places), types)


BODY_TYPE_NAMES = pa.array([kind.value for kind in BodyType], pa.string())
"""The code of a body type is its index."""
