"""What Spark carries from the tasks of a write to the driver, and the end of the write there."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import TaskResult, log_dropped_rows

__all__ = ["TaskReport", "finish"]


@dataclass
class TaskReport(WriterCommitMessage):
    """What Spark carries from a task to the driver."""

    result: TaskResult


def finish(options: SinkOptions, name: str, reports: Iterable[TaskReport | None]) -> None:
    """On the driver, after all tasks. ``name``: of the write, in the log.

    The process that Spark runs this in needs the code of a broker only after exactly-once writes. Its import takes
    0.6 s of CPU, and Spark ends the process after an idle minute.
    """
    results = [report.result for report in reports if report is not None]
    log_dropped_rows(name, [result.sent for result in results])
    outcomes = [result.outcome for result in results if result.outcome]
    if outcomes:
        from pyspark_jms.amqp.sink import CommitLedger
        from pyspark_jms.sink.writing import finish_write

        finish_write(CommitLedger(options.connection, outcomes[0].task.owner), options, outcomes)
