"""Sizes and times as Spark users write them: ``64m``, ``10s``."""

import re

__all__ = ["parse_bytes", "parse_seconds"]

_SIZE = re.compile(r"(\d{1,18})\s*(b|k|kb|m|mb|g|gb|t|tb)?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*(ms|s|m|min|h|d)", re.IGNORECASE | re.ASCII)
_SIZES = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_TIMES = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_bytes(text: str) -> int:
    """``65536``, ``64k``, ``64m``, ``1gb``: powers of 1,024, as in Spark. Any other text is a ``ValueError``."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError("a size like 65536, 64k, 64m or 1g")
    return int(match[1]) << _SIZES[(match[2] or "")[:1].lower()]


def parse_seconds(text: str) -> float:
    """``500ms``, ``10s``, ``15m``, ``1h``. A number without a unit is a ``ValueError``."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise ValueError("a time with its unit, like 500ms, 10s, 15m or 1h")
    return float(match[1]) * _TIMES[match[2].lower()]
