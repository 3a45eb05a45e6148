"""Messages that tasks receive: they wait for their batch in registers, queues of the broker (exactly once over AMQP).

The driver receives nothing. It asks whether there is a message, and whether the tokens are where the log says.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar

from pyspark_jms.amqp.reading import Probe, ReaderLink
from pyspark_jms.delivery.register.keeper import TokenKeeper
from pyspark_jms.delivery.register.outcomes import Keep, Kept
from pyspark_jms.delivery.register.plan import keeps, planned, reads, require_place
from pyspark_jms.delivery.register.token import Offset, StoredToken, Token
from pyspark_jms.errors import JMSError, OptionConflictError, UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.management.queue_facts import QueueFacts
from pyspark_jms.management.queue_rules import require_own
from pyspark_jms.network.connection import StateCondition, closed_on
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.source.admission import IDLE_SECONDS
from pyspark_jms.source.offsets import CHANGED_GUARANTEE, refused_as
from pyspark_jms.source.query import Run, Store
from pyspark_jms.source.queues import require_queues, require_removal
from pyspark_jms.source.readers.attempt import Attempt
from pyspark_jms.source.readers.connecting import (
    connect_register,
    place_of,
    queue_of,
    readers_of,
    register_queues,
    require_broker,
)
from pyspark_jms.source.readers.history import BatchHistory
from pyspark_jms.source.readers.reader_input import ReaderInput, report_number
from pyspark_jms.source.task_inputs import TaskReports
from pyspark_jms.source.unmatched import warn_of_unmatched

__all__ = ["RegisterStore"]

T = TypeVar("T")

_log = logging.getLogger("pyspark_jms.source")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.005, 0.3
"""Between two questions for a message: the longer nothing comes, the longer."""
_PAUSE_FACTORS, _MOST_PAUSE_SECONDS = (20, 60), 5.0
"""A question to a thousand queues takes a tenth of a second of CPU. The first pause is at least, a later one at most so
many times as long, up to a limit.
"""


class RegisterStore(Store):
    """Offsets are those of ``delivery.register.token``, and count batches. Only the tasks know what is in flight."""

    needs_commits = (
        "A task of an exactly-once read deletes the value of the batch before.",
        "or leave deliveryGuarantee out (at-least-once)",
    )
    passes_driver = False

    def __init__(self, run: Run) -> None:
        self._run = run
        self._reading, self._stop = run.reading, run.stop
        self._options = options = run.reading.options
        self._readers = readers_of(options)
        self._probe: Probe | None = None
        self._pause, self._next_question = _FIRST_PAUSE_SECONDS, 0.0
        self._spent = 0.0
        """CPU seconds of the last question, without those of the connection."""
        self._new_stream = uuid.uuid4().hex
        self._base = ""
        """The address of the registers."""
        self._first_batch: int | None = None
        """Of this run."""
        self._start = Offset()
        """What was committed last."""
        self._broker: str | None = None
        """The identity of the broker that the planner is connected to, if it tells one."""
        self._connections = 0
        """Of the planner."""
        self._has_asked = False
        """Whether all queues have been seen in this run."""
        self._history = BatchHistory(time.monotonic)
        self._found: Mapping[str, QueueFacts] = {}
        """What is known of the queues, until they are known to remove what is acknowledged."""
        self.reports = TaskReports(options)

    def first_offset(self) -> dict[str, Any]:
        return asdict(Offset())

    def count(self, offset: dict[str, Any]) -> int:
        return _parsed(offset).batch

    def open(self, start: dict[str, Any]) -> None:
        """The first question connects."""
        self._start = begin = _parsed(start)
        self._first_batch = begin.batch if self._first_batch is None else self._first_batch

    def release(self, through: int) -> None:
        """The tasks of the next batch do the rest."""
        self.reports.release(report_number(through + 1))

    # --- planning ------------------------------------------------------------------------------

    def next(self, start: dict[str, Any]) -> dict[str, Any]:
        begin = self._start
        stream = begin.stream or self._new_stream
        base = self._base = queue_of(self._options, stream)
        place = self._require_place(begin, stream)
        if not self._has_messages():
            self._note_idle(begin, base)
            if self._is_draining and not self._history.moved():
                warn_of_unmatched(self._reading)
            return start
        self._require_removal()
        if self._waits(begin):
            return start
        kept = {keep.reader: self._kept(base, keep) for keep in keeps(begin, stream, self._readers)}
        unread = frozenset(reader for reader, each in kept.items() if each.closed)
        self._history.note(begin, {reader: each.token for reader, each in kept.items()}, unread)
        if self._has_ended(begin, kept):
            self._history.warn_of_end()
            return start
        if self._waits(begin):
            return start
        tokens = {reader: each.token for reader, each in kept.items()}
        begin = replace(begin, address=place, broker=self._broker or begin.broker)
        return asdict(planned(begin, tokens, self._readers, stream=stream))

    @property
    def _is_draining(self) -> bool:
        return self._run.drain_since_ms is not None

    def _require_place(self, offset: Offset, stream: str) -> str:
        place = place_of(self._options, stream)
        if self._options.fail_on_data_loss and (stop := require_place(offset, place, None)):
            raise stop.reason.error()
        return place

    def _require_removal(self) -> None:
        """Once in a run: the first time that there is a message."""
        names, self._found = list(self._found), {}
        found = self._reading.look_up(names) if names else {}
        require_removal(self._reading, list(found.values()))

    def _has_messages(self) -> bool:
        """Asks for a while, less often the longer nothing has come. A broker that is away is waited for."""
        deadline = time.monotonic() + (0.0 if self._is_draining else IDLE_SECONDS)
        while True:
            now = time.monotonic()
            if not self._is_draining and self._next_question > now:
                self._stop.pause(min(self._next_question, deadline) - now)
                if self._next_question >= deadline:
                    return False
            if self._ask():
                self._pause, self._next_question = _FIRST_PAUSE_SECONDS, 0.0
                return True
            ended = time.monotonic()
            shortest, longest = (min(factor * self._spent, _MOST_PAUSE_SECONDS) for factor in _PAUSE_FACTORS)
            self._pause = min(max(1.3 * self._pause, shortest), max(longest, _LONGEST_PAUSE_SECONDS))
            self._next_question = ended + self._pause
            if ended >= deadline:
                return False

    def _ask(self) -> bool:
        """The first connection of a new query does not wait for a broker that is away."""
        has_begun = bool(self._start.batch or self._connections)
        return keep_trying(
            partial(self._on_probe, self._try_to_ask),
            "asking for messages",
            timeout=self._options.connection.reconnect_timeout if has_begun else 0.0,
            once_lost=self._options.connection.reconnect_timeout,
            pause=self._stop.pause,
        )

    def _try_to_ask(self, probe: Probe) -> bool:
        began = time.process_time()
        found = probe.has_messages()
        self._spent, self._has_asked = time.process_time() - began, True
        return found

    def _on_probe(self, ask: Callable[[Probe], T]) -> T:
        """Ask on the connection of the planner. After an error the next question has another connection."""
        try:
            return ask(self._open_probe())
        except JMSError as error:
            probe, self._probe = self._probe, None
            if probe is not None:
                if error.transient:
                    _log.warning("= the connection of the planner ended: %s", error.fact)
                probe.drop()
            raise

    def _waits(self, begin: Offset) -> bool:
        """Return whether the last batch took nothing, although there are messages: the next one would do the same.

        The first batch of a run does not wait, because a run may have one batch. AvailableNow waits here: a query whose
        source has no next batch would end.
        """
        seconds = 0.0 if begin.batch == self._first_batch else self._history.pause_seconds()
        if seconds and not self._is_draining:
            self._history.warn()
            self._stop.pause(min(seconds, IDLE_SECONDS))
            return True
        self._stop.pause(seconds)
        return False

    def _open_probe(self) -> Probe:
        """On each new connection the broker may be another one."""
        if self._probe is None:
            options = self._options
            if not self._connections and options.durable is not None:
                self._found = require_queues(self._reading)  # of a subscription that the probe would make
            self._probe = Probe(
                options.connection,
                options.destinations,
                options.selector_for,
                options.durable,
                base=self._base,
                was_seen=bool(self._start.batch) or self._has_asked,
            )
            named = self._start.broker if options.fail_on_data_loss else None
            self._broker = require_broker(self._reading, self._probe.address, named)
            self._connections += 1
            if self._connections == 1:
                self._found = self._found or require_queues(self._reading)
                own = dict.fromkeys(register_queues(options, self._base), Feature.STAGING_QUEUE)
                open_link, patience = self._reading.protocol.open_management, self._probe.patience_seconds
                require_own(open_link, options.connection, own, patience)
        return self._probe

    def _require_same_broker(self, link: ReaderLink) -> None:
        if self._broker is not None:
            require_broker(self._reading, link.address, self._broker)

    def _peek(self, base: str, reader: int) -> tuple[StoredToken[Token], ...]:
        return self._on_probe(lambda probe: probe.peek(base, reader))

    def _kept(self, base: str, keep: Keep) -> Kept:
        def connect() -> ReaderLink:
            link = connect_register(self._options, StateCondition(), base, keep.reader)
            if keep.name is None:
                with closed_on(JMSError, link.close):
                    link.require_same_topic(self._options.connection)
            return link

        attempt = Attempt(
            TokenKeeper(lambda: uuid.uuid4().hex[:12], fail_on_data_loss=self._options.fail_on_data_loss),
            connect,
            peek=lambda: self._peek(base, keep.reader),
            missing=self._require_same_broker,
            pause=self._stop.pause,
            timeout=self._options.connection.reconnect_timeout,
        )
        answer = attempt.run(keep)
        assert isinstance(answer, Kept)
        return answer

    def _note_idle(self, begin: Offset, base: str) -> None:
        """The metrics of the last batch, without waiting for the next one."""
        if self._history.has(begin.batch):
            return
        try:
            seen = {reader: _named(self._peek(base, reader), begin.names[reader]) for reader in begin.readers}
        except JMSError as error:
            _log.debug("= the metrics of batch %d are not known yet: %s", begin.batch, error.fact)
            return
        self._history.note(begin, {reader: token for reader, token in seen.items() if token is not None})

    def _has_ended(self, begin: Offset, kept: dict[int, Kept]) -> bool:
        """AvailableNow: each reader of this run's last batch that was read has shown that its sources have no more."""
        if not self._is_draining or begin.batch == self._first_batch:
            return False
        last = [kept[reader] for reader in begin.readers]
        if all(each.closed for each in last):
            raise UnsupportedError(
                f"No task has read batch {begin.batch}: Spark did not need its rows. Its messages stay in the queue.",
                "Use the rows of every batch, or trigger(processingTime=…). If the checkpoint is new, give Spark's file"
                " sink a new output folder: the sink drops a batch whose number its folder has.",
            )
        return all(each.token.drained for each in last if not each.closed)

    # --- the batch -----------------------------------------------------------------------------

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReaderInput]:
        begin, last = _parsed(start), _parsed(end)
        if last.stream is None:
            return []
        base = queue_of(self._options, last.stream)
        self._require_place(last, last.stream)
        self._history.began(last.batch)
        dialects = set() if self._probe is None else {self._probe.dialect.name}
        question, drops = self.reports.addresses(dialects)
        count, broker, since = len(last.readers), last.broker, self._run.drain_since_ms
        return [ReaderInput(read, base, count, broker, since, question, drops) for read in reads(begin, last)]

    def received(self) -> int:
        return self._history.moved()

    def watches(self) -> bool:
        return not self._is_draining

    def metrics(self, watched: Mapping[str, int | str]) -> dict[str, object]:
        """Return the metrics of batches that are in Spark's commit log."""
        del watched
        return {
            "batch": self._start.batch,
            "readers": self._readers,
            **self._history.metrics(),
            "reconnects": max(0, self._connections - 1) + self._history.reconnects(),
            "guarantee": "exactly-once into Spark",
            "broker": None if self._probe is None else self._probe.server,
        }

    def close(self) -> None:
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.close()


def _named(tokens: Iterable[StoredToken[Token]], name: str) -> Token | None:
    return max((each.token for each in tokens if each.token.name == name), key=lambda token: token.batch, default=None)


def _parsed(offset: dict[str, Any]) -> Offset:
    with refused_as(
        OptionConflictError,
        "deliveryGuarantee=exactly-once is given for a read over AMQP, and the checkpoint is of another read, usually"
        " an at-least-once one.",
        f"Remove the option. {CHANGED_GUARANTEE}",
    ):
        return Offset.parse(offset)
