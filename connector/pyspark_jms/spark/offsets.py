"""Offset of a query ↔ what Spark logs: ``{"seq": n}``, a count of messages that goes on over restarts.

Of a durable subscription with its selector, as a digest: by it a restarted query knows that it was changed.
"""

import hashlib
from typing import Any

from pyspark_jms.errors import IllegalStateError

__all__ = ["offset", "selector_digest", "selector_of", "sequence"]


def offset(sequence: int, selector: str | None = None) -> dict[str, Any]:
    """In one order, so that the JSON text, by which Spark compares, has one form."""
    return {"seq": sequence} | ({} if selector is None else {"selector": selector})


def selector_of(offset: dict[str, Any]) -> str | None:
    """The digest, where the offset has one."""
    return offset.get("selector")


def selector_digest(selector: str | None) -> str:
    """Of what the broker was given; short, and the same in every process."""
    return hashlib.blake2b((selector or "").encode(), digest_size=8).hexdigest()


def sequence(offset: dict[str, Any]) -> int:
    """The count in an offset of Spark's log; another's offset (a checkpoint of another source) is an error."""
    try:
        return int(offset["seq"])
    except (KeyError, TypeError, ValueError):
        raise IllegalStateError(
            "The checkpoint holds an offset that is not of this source.", "Use a checkpointLocation of its own."
        ) from None
