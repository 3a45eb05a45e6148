"""What the tasks of a write left to the driver → messages at the broker, when every earlier entry is accounted for.

A task holds its rows when an earlier execution of its write sent some, and it cannot know whether its own are among
them (``sink.replay``). The driver has the outcomes of all tasks, so it can.
"""

import logging
from collections.abc import Sequence

from pyspark_jms.errors import ReplayMismatchError
from pyspark_jms.options.parsing import SinkOptions
from pyspark_jms.sink.committing import SAME_PARTITIONS, commit_with_entry, look_up_all
from pyspark_jms.sink.replay import strangers
from pyspark_jms.sink.sending_once import Outcome
from pyspark_jms.stomp.link.ledger_entries import LedgerEntry
from pyspark_jms.stomp.link.producer import Producer

__all__ = ["send_held"]

_log = logging.getLogger("pyspark_jms.spark")
_SHOWN = 5
"""Entries that an error names."""


def send_held(options: SinkOptions, outcomes: Sequence[Outcome]) -> None:
    """``outcomes``: of all tasks of one execution. Each partition that was held is a transaction with its own entry.

    A crash between two of them is like one between two tasks: the next execution finds the entries that are there.
    """
    held = [(outcome, outcome.entry) for outcome in outcomes if outcome.held]
    if not held:
        return
    _require_no_strangers(options, outcomes)
    for outcome, entry in held:
        assert entry is not None, "rows are held with the entry that speaks of them"
        with Producer(options.connection, patience=options.connection.reconnect_timeout) as producer:
            for buffer in outcome.held:
                producer.send(buffer)
            commit_with_entry(options, outcome.task, producer, entry)
    _log.info("= the driver sent the rows of %d tasks, after a run that had sent some", len(held))


def _require_no_strangers(options: SinkOptions, outcomes: Sequence[Outcome]) -> None:
    known = look_up_all(options, outcomes[0].task, options.connection.reconnect_timeout)
    partitions = [outcome.entry for outcome in outcomes if outcome.entry is not None]
    found = strangers(known, partitions)
    if found:
        raise ReplayMismatchError(
            f"{outcomes[0].task.write} is repeated in other partitions. An earlier run sent {_several(known)}; the"
            f" {_several(partitions)} of this run do not have the rows of {_shown(found)}. None of these was sent.",
            SAME_PARTITIONS,
        )


def _several(entries: Sequence[LedgerEntry]) -> str:
    return f"{len(entries)} partition{'' if len(entries) == 1 else 's'}"


def _shown(entries: Sequence[LedgerEntry]) -> str:
    named = sorted((entry.task.rpartition("/")[2], entry.rows) for entry in entries)
    more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    return ", ".join(f"partition {number} ({rows} rows)" for number, rows in named[:_SHOWN]) + more
