"""One write, a batch of a query or a ``df.write``: what each of its tasks does, and what the driver does at its end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.links import SinkProtocol
from pyspark_jms.sink.sending import Sent, log_dropped_rows, send_at_least_once
from pyspark_jms.sink.sending_held import send_held
from pyspark_jms.sink.sending_once import Outcome, send_exactly_once
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.sink.tidying import delete_outdated, ledger_of

__all__ = ["TaskResult", "finish_write", "write_task"]


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a task reports to the driver."""

    sent: Sent
    outcome: Outcome | None = None
    """Of a task that writes exactly once."""


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


def finish_write(
    protocol: SinkProtocol, options: SinkOptions, name: str, results: Sequence[TaskResult], *, tidy: bool = True
) -> None:
    """On the driver, after all tasks: send the rows that tasks held; all other rows are committed.

    ``name``: of the write, in the log. ``tidy``: also delete outdated entries of the ledger.
    """
    log_dropped_rows(name, [result.sent for result in results])
    outcomes = [result.outcome for result in results if result.outcome]
    send_held(protocol, options, outcomes)
    if outcomes and tidy:
        task = outcomes[0].task
        delete_outdated(ledger_of(protocol, options, task), task)
