"""Offset of a query ↔ what Spark logs: ``{"seq": n}``, a count of messages that goes on over restarts."""

from typing import Any

from pyspark_jms.errors import IllegalStateError

__all__ = ["offset", "sequence"]


def offset(sequence: int) -> dict[str, int]:
    """One key, so that the JSON text, by which Spark compares, has one form."""
    return {"seq": sequence}


def sequence(offset: dict[str, Any]) -> int:
    """The count in an offset of Spark's log; another's offset (a checkpoint of another source) is an error."""
    try:
        return int(offset["seq"])
    except (KeyError, TypeError, ValueError):
        raise IllegalStateError(
            "The checkpoint holds an offset that is not of this source.", "Use a checkpointLocation of its own."
        ) from None
