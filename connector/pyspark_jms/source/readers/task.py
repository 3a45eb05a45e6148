"""A task of a read: its register → the rows of its reader for this batch. On an executor."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.blocks.block import PartitionSlice
from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.outcomes import Answer
from pyspark_jms.delivery.register.reader import ReaderTask
from pyspark_jms.delivery.subscription_ledger import Recognition
from pyspark_jms.errors import BadMessageError, JMSError, SelectorIgnoredError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.source.links import Reading
from pyspark_jms.source.mailbox import answer as answer_where
from pyspark_jms.source.mailbox import report_dropped
from pyspark_jms.source.readers.attempt import Attempt
from pyspark_jms.source.readers.connecting import connect_register, require_broker, subscriptions_of
from pyspark_jms.source.readers.intake import TaskIntake
from pyspark_jms.source.readers.reader_input import ReaderInput, report_number
from pyspark_jms.source.readers.value import NewValue
from pyspark_jms.source.task_inputs import rows_of

__all__ = ["read_reader"]


def read_reader(task: ReaderInput, reading: Reading) -> Iterator[Any]:
    """L13: the lock is given back before the first one."""
    if task.question is not None:
        answer_where(task.question)
    moved = _MoveTime()
    attempt = _attempt(task, _share(reading, task.read.reader, task.readers), moved)
    answer = attempt.run(task.read)
    assert isinstance(answer, Answer)
    moved.note(answer.token.metrics)
    dropped = 0
    try:
        for rows, dropped_here in attempt.rows if answer.token.blocks else ():
            dropped += dropped_here
            yield rows
    except (BadMessageError, SelectorIgnoredError) as error:
        raise _staged(error, task) from None
    if dropped:
        number = report_number(task.read.batch, task.read.reader)
        report_dropped(task.drops, answer.token.first, dropped, number)


def _staged(error: JMSError, task: ReaderInput) -> JMSError:
    """Return rows of a batch that was stored with other options, whose messages other consumers do not get any more."""
    options = "onBadMessage=keep" if isinstance(error, BadMessageError) else "selectorInSpark=off"
    return type(error)(
        error.fact,
        f"The messages of batch {task.read.batch} are in the staging queue {task.base}.{task.read.reader}. Start again"
        f" with the same checkpoint and {options}; a new checkpoint would leave them there.",
    )


def _share(reading: Reading, reader: int, readers: int) -> Reading:
    """Set the limits of one reader. Those of all readers together are those of the batch."""
    most = reading.options.max_messages
    return reading.with_options(
        max_bytes=max(1, reading.options.max_bytes // readers),
        max_messages=None if most is None else max(1, most // readers + (reader < most % readers)),
    )


class _MoveTime:
    """When the messages of the value had been delivered. The token has it, so it is the same in each attempt."""

    ms: int | None = None

    def note(self, metrics: Iterable[tuple[str, int]]) -> None:
        self.ms = dict(metrics).get("movedMs")


def _attempt(task: ReaderInput, reading: Reading, moved: _MoveTime) -> Attempt:
    options, condition = reading.options, StateCondition()

    def connect() -> ReaderLink:
        return connect_register(options, condition, task.base, task.read.reader)

    def missing(link: ReaderLink) -> None:
        """Another broker of the list, which has a store of its own, does not have the token."""
        if task.broker is not None and options.fail_on_data_loss:
            require_broker(reading, link.address, task.broker)

    def receive(link: ReaderLink, command: steps.Receive) -> tuple[steps.Received, Sequence[PartitionSlice]]:
        link.subscribe(subscriptions_of(options, link, task.read.reader, task.readers))
        value = NewValue(link, task.read.stream, command.batch, command.first)
        intake = TaskIntake(reading, link, value, task.drain_since_ms, command.alone, turn=command.batch)
        intake.receive()
        recognition = reading.protocol.recognition(link.dialect.name)
        received, runs = _received(value, intake, ends=_digest(value.runs, recognition), lost=attempt.reconnects)
        moved.note(received.metrics)
        return received, runs

    def rows_of_runs(runs: Sequence[PartitionSlice]) -> tuple[Any, int]:
        delivered = [replace(run, delivered_ms=moved.ms) for run in runs]
        return rows_of(delivered, reading, run_ends=task.drain_since_ms is not None)

    attempt = Attempt(
        ReaderTask(fail_on_data_loss=options.fail_on_data_loss),
        connect,
        receive,
        rows_of_runs,
        missing=missing,
        timeout=options.connection.reconnect_timeout,
        rows_first=options.on_bad_message == "fail" or options.selector is not None,
    )
    return attempt


def _digest(runs: Sequence[PartitionSlice], recognition: Recognition | None) -> int:
    """Return what the ids and contents of the first and the last message make, or 0 if one of them has no id."""
    if not runs or recognition is None:
        return 0
    ends = [(runs[0].place.load(), 0), (runs[-1].place.load(), len(runs[-1]) - 1)]
    if not all(recognition.is_named(*end) for end in ends):
        return 0
    digest = hashlib.blake2b(b"".join(recognition.identity(*end) or b"" for end in ends), digest_size=6)
    return int.from_bytes(digest.digest())


def _received(
    value: NewValue, intake: TaskIntake, *, ends: int, lost: int
) -> tuple[steps.Received, Sequence[PartitionSlice]]:
    metrics = {
        "messages": len(value),
        "bytes": value.size,
        "redelivered": intake.redelivered,
        "deadLetters": intake.diverter.dead_letters,
        "droppedTooLarge": intake.diverter.skipped,
        "reconnects": lost,
        "ends": ends,
        "movedMs": int(time.time() * 1000),
    }
    received = steps.Received(
        messages=len(value),
        blocks=value.blocks,
        deliveries=intake.deliveries,
        suspect=intake.suspect,
        suspects=intake.suspects,
        drained=intake.is_drained,
        metrics=tuple((name, value) for name, value in metrics.items() if value),
    )
    return received, value.runs
