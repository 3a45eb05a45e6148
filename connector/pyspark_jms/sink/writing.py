"""One write, a batch of a query or a ``df.write``: what each of its tasks does, and what the driver does at its end."""

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa

from pyspark_jms.errors import JMSError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.committing import ledger_of
from pyspark_jms.sink.links import CommitLedger, SinkProtocol
from pyspark_jms.sink.results import Outcome, TaskResult
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.sink.sending_held import send_held
from pyspark_jms.sink.sending_once import send_exactly_once
from pyspark_jms.sink.tasks import LedgerTask

__all__ = ["finish_write", "write_task"]

_log = logging.getLogger("pyspark_jms.spark")


def write_task(
    protocol: SinkProtocol,
    options: SinkOptions,
    rows: Iterator[pa.RecordBatch],
    task: LedgerTask | None,
    *,
    patience: float,
) -> TaskResult:
    """Send every row or, unless option ``transaction`` allows otherwise, none. ``task``: for exactly-once writes."""
    if task is None:
        return TaskResult(send_at_least_once(protocol, options, rows, patience=patience))
    outcome = send_exactly_once(protocol, options, task, rows, patience=patience)
    return TaskResult(outcome.sent, outcome)


def finish_write(protocol: SinkProtocol, options: SinkOptions, outcomes: Sequence[Outcome]) -> None:
    """On the driver, after all tasks of an exactly-once write: send the rows that tasks held."""
    send_held(protocol, options, outcomes)
    task = outcomes[0].task
    ledger = ledger_of(protocol, options, task)
    if task.batch == 0 and not any(outcome.entry for outcome in outcomes):
        ledger.establish()
    _shorten(ledger, task)


def _shorten(ledger: CommitLedger, task: LedgerTask) -> None:
    """Never raises: entries are small, and the rows are sent."""
    try:
        ledger.finish(task.write)
    except JMSError as error:
        _log.warning("= the entries of %s stay in %s one by one: %s", task.write, ledger.queue, error.fact)
