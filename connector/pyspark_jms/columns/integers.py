"""Decimal text → numbers, over whole columns."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.cut import contents

__all__ = ["integers"]

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
    return _with(numbers, fitting), wrong


def _only_digits(texts: pa.Array) -> bool:
    """Whether Arrow's own cast may be used: it accepts more than decimal numbers, for example hexadecimal ones."""
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


def _with(numbers: pa.Array, at: dict[int, int | None]) -> pa.Array:
    if not at:
        return numbers
    mask = np.zeros(len(numbers), np.bool_)
    mask[list(at)] = True
    return pc.replace_with_mask(numbers, pa.array(mask), pa.array(at.values(), pa.int64()))
