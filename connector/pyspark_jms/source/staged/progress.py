"""Figures of a staged read for ``StreamingQueryProgress``. Never raises, and asks the broker nothing."""

import time
from collections.abc import Mapping

from pyspark_jms.source.progress import Counts
from pyspark_jms.source.staged.intake import Intake
from pyspark_jms.source.staged.owner import StreamOwner

__all__ = ["figures"]


def figures(
    owner: StreamOwner,
    intake: Intake,
    counts: Counts,
    watched: Mapping[str, int | str],
    *,
    reached: int,
    dropped: int | str,
) -> dict[str, object]:
    """``staged``: messages in the staging queue, ``backlog``: those of them that ``reached`` does not include.
    ``moved``, ``retired``: of this run, into the queue and out of it.
    """
    token, link, oldest = owner.token, owner.link, owner.memory.oldest_ms
    return {
        "seq": 0 if token is None else token.next,
        "staged": 0 if token is None else token.next - token.floor,
        "backlog": 0 if token is None else token.next - max(token.floor, reached),
        "moved": owner.moved,
        "retired": owner.retired,
        "oldestStagedSeconds": None if oldest is None else round(max(0.0, time.time() - oldest / 1000), 1),
        "redelivered": counts.redelivered,
        "reconnects": max(0, owner.connections - 1),
        "selectorDropped": dropped,
        "deadLetters": intake.dead_letters,
        "skippedTooLarge": intake.skipped,
        "guarantee": "exactly-once into Spark",
        "broker": None if link is None else link.server,
        **watched,
    }
