"""A queue's messages received and given back: exact where a listing is not, at a price the user has to ask for.

While they are here other consumers do not see them, and a process killed meanwhile costs each a delivery attempt.
UNSUBSCRIBE gives them back as they were.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.check.census import Kind, census_finding, counted, kinds_of, lost
from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.check.queue import Queue
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.dialects.management import Management
from pyspark_jms.stomp.link.consumer import Consumer

__all__ = ["receive_findings"]

_WINDOW_BYTES = 64 << 20
_QUIET_SECONDS, _POLL_SECONDS = 2.0, 0.05


def receive_findings(settings: ConnectionSettings, queue: str, most: int, asked: Queue | None) -> Iterator[Finding]:
    """Ends at ``most`` messages, at 64 MB, or when nothing came for 2 s. ``asked``: tells what did not come."""
    destination = Destination(DestinationKind.QUEUE, queue)
    before = set() if asked is None else {m["messageID"] for held in asked.delivering().values() for m in held}
    with closing(Consumer(settings, Subscription(destination=destination, window_bytes=_WINDOW_BYTES))) as consumer:
        _until_quiet(consumer, most)
        delivering = {} if asked is None else asked.delivering()
        _until_quiet(consumer, None)  # what was on its way when the broker listed it
        blocks = consumer.take()
    yield _received(blocks, destination, consumer.dialect)
    if asked is not None:
        ids = [identifier.decode() for block in blocks for identifier in block.ids if identifier is not None]
        came = _Came(ids, consumer.dialect.stable_id_separator or ",")
        held = [message for message in came.ours(delivering) if message["messageID"] not in before]
        yield replace(
            census_finding(kinds_of(held, asked.words), len(held), asked.words),
            name="bodies delivered",
        )
        yield _withheld(kinds_of(came.missing(held, asked.words), asked.words))


def _until_quiet(consumer: Consumer, most: int | None) -> None:
    seen, since = consumer.waiting()[0], time.monotonic()
    while time.monotonic() - since < _QUIET_SECONDS and (most is None or seen < most):
        consumer.connection.changed.pause(_POLL_SECONDS)
        consumer.connection.check_messages()
        if consumer.waiting()[0] != seen:
            seen, since = consumer.waiting()[0], time.monotonic()


class _Came:
    """The messages that came, by the ids on the wire: ``CONSUMER,MESSAGE``."""

    def __init__(self, ids: list[str], separator: str) -> None:
        parts = [identifier.rpartition(separator) for identifier in ids]
        self._consumers = {consumer for consumer, _, _ in parts}
        self._messages = {int(message) for _, _, message in parts if message.isdigit()}

    def ours(self, delivering: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """What the broker delivers to us, in order; to everybody, where nothing came that tells who we are."""
        keys = [key for key in delivering if any(f":{consumer}," in key for consumer in self._consumers)]
        return [message for key in (keys or delivering) for message in delivering[key]]

    def missing(self, held: list[dict[str, Any]], words: Management) -> list[dict[str, Any]]:
        """What was passed over: a later one came, or its body is of a kind that may not come. Others may be late."""
        came = [message["messageID"] in self._messages for message in held]
        last = max((index for index, yes in enumerate(came) if yes), default=-1)
        return [
            message
            for index, message in enumerate(held)
            if not came[index] and (index < last or lost(kinds_of([message], words), words))
        ]


def _received(blocks: list[MessageBlock], destination: Destination, dialect: Dialect) -> Finding:
    kinds: Counter[str] = Counter()
    empty = 0
    for block in blocks:
        rows = decode(block, dialect=dialect, source=destination, first_sequence=0, body_type="auto")
        kinds.update(str(kind) for kind in rows.column("body_type").to_pylist())
        empty += rows.column("text").to_pylist().count("")
    total = kinds.total()
    shown = ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items())) or "nothing"
    return Finding(
        name="received",
        value=f"{total:,} messages, given back: {shown}" + (f"; {empty:,} texts are empty" if empty else ""),
        verdict=Verdict.NOTE if empty else Verdict.FINE,
        advice="An empty text may be the rest of a Map or Object message." if empty else "",
        figures={"received": total, "bodyTypes": dict(kinds), "emptyTexts": empty},
    )


def _withheld(kinds: Counter[Kind]) -> Finding:
    if not kinds:
        return Finding(name="not received", value="every message that the broker delivers came")
    return Finding(
        name="not received",
        value=f"{kinds.total():,} messages are never put on the wire: {counted(kinds)}",
        verdict=Verdict.PROBLEM,
        advice="They stay in delivery while a reader over STOMP is subscribed: only a JMS client can consume them.",
        figures={"bodyTypes": {str(kind): count for kind, count in kinds.items()}},
    )
