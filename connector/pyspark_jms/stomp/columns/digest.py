"""The SEND frames of a task in, one short text out that is the same for the same rows in any order: version 1 of
``columns.rows_digest``, where a message is a frame without its NUL.

What a frame holds that is not the row's must be the same at every attempt: the transaction has a constant name,
and a frame that holds a time counted from now is digested as it would be at the epoch (``counts_from_now``).
"""

import pyarrow as pa

from pyspark_jms.columns import rows_digest
from pyspark_jms.columns.send_defaults import SendDefaults
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["RowsDigest", "counts_from_now"]

_VERSION, _NUL = "1", 1


class RowsDigest(rows_digest.RowsDigest):
    """``add`` what ``encode`` made of each batch; ``text`` is the digest of all of it so far."""

    def __init__(self) -> None:
        super().__init__(_VERSION, _NUL)


def counts_from_now(schema: pa.Schema, dialect: Dialect, defaults: SendDefaults) -> bool:
    """Whether frames of these columns and defaults may hold a time that was counted from the time of encoding."""
    columns = {name.lower() for name in schema.names}
    headers = dialect.send_headers
    delays = headers.delivery_delay is None and (defaults.delivery_delay_ms or "delivery_delay" in columns)
    times = headers.delivery_time is None and "jmsdeliverytime" in columns
    return bool(defaults.time_to_live_ms or "time_to_live" in columns or delays or times)
