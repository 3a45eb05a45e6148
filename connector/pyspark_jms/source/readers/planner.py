"""A read whose tasks receive: Spark's calls on the driver → the number of a batch, and what its tasks get.

The planner receives nothing. It asks whether there is a message, and whether the tokens are where the log says.
"""

import json
import logging
import time
import uuid
from dataclasses import replace
from typing import Any

from pyspark_jms.delivery.register.keeper import TokenKeeper
from pyspark_jms.delivery.register.outcomes import Keep, Kept
from pyspark_jms.delivery.register.plan import keeps, planned, reads, require_place
from pyspark_jms.delivery.register.token import Offset, Sighting, Token
from pyspark_jms.errors import IllegalStateError, JMSError, UnsupportedError
from pyspark_jms.network.address import Address
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.commit_order import CommitOrder
from pyspark_jms.source.readers.attempt import Attempt
from pyspark_jms.source.readers.links import Probe, ReaderLink, ReaderProtocol
from pyspark_jms.source.readers.place import require_broker
from pyspark_jms.source.readers.task import ReaderInput
from pyspark_jms.source.staged.connecting import queue_of
from pyspark_jms.source.stopping import StopRequest

__all__ = ["ReaderSource"]

_log = logging.getLogger("pyspark_jms.source")
_IDLE_SECONDS = 0.5
"""Longest time of a call that finds no messages. Spark would call again every 10 ms."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.005, 0.3
"""Between two questions for a message: the longer nothing comes, the longer."""


class ReaderSource:
    """In the streaming runner. Offsets are the dictionaries that Spark logs (``delivery.register.token``)."""

    def __init__(self, options: SourceOptions, protocol: ReaderProtocol) -> None:
        self._options = options
        self._protocol = protocol
        self._readers = options.readers or 1
        self._stop = StopRequest()
        self._stop.install()
        self._probe: Probe | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self._new_stream = uuid.uuid4().hex
        self._drain_since_ms: float | None = None
        self._first_batch: int | None = None
        """Of this run."""
        self._tokens: dict[int, Token] = {}
        self._totals: dict[str, int] = {}
        self._start = Offset()
        """What was committed last."""
        self._broker: str | None = None
        """The identity of the broker that the planner is connected to, if it tells one."""
        self._order = CommitOrder(
            "A task of an exactly-once read deletes the value of the batch before.",
            "or leave deliveryGuarantee out (at-least-once)",
        )

    def initial_offset(self) -> dict[str, Any]:
        return _logged(Offset())

    def drain(self) -> None:
        self._drain_since_ms = time.time() * 1000

    # --- planning ------------------------------------------------------------------------------

    def latest_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        """Spark asks for what follows ``start`` only when the batch ``start`` is in its commit log."""
        begin = _parsed(start)
        self._order.requested(begin.batch)
        self._first_batch = begin.batch if self._first_batch is None else self._first_batch
        self._start = begin
        stream = begin.stream or self._new_stream
        base = queue_of(self._options, stream)
        self._require_address(begin, base)
        if not self._has_messages():
            return start
        kept = {keep.reader: self._kept(base, keep) for keep in keeps(begin, stream, self._readers)}
        self._note(begin, kept)
        if self._has_ended(begin, kept):
            return start
        names = {reader: each.token.name for reader, each in kept.items()}
        begin = replace(begin, address=base, broker=self._broker or begin.broker)
        return _logged(planned(begin, names, self._readers, stream=stream))

    def _require_address(self, offset: Offset, base: str) -> None:
        if self._options.fail_on_data_loss and (stop := require_place(offset, base, None)):
            raise stop.reason.error()

    def _has_messages(self) -> bool:
        """Asks for a while, less often the longer nothing has come. A broker that is away has no messages for now."""
        deadline = time.monotonic() + (0.0 if self._drain_since_ms is not None else _IDLE_SECONDS)
        while True:
            if self._ask():
                self._pause = _FIRST_PAUSE_SECONDS
                return True
            if time.monotonic() >= deadline:
                return False
            self._stop.pause(self._pause)
            self._pause = min(1.3 * self._pause, _LONGEST_PAUSE_SECONDS)

    def _ask(self) -> bool:
        is_new = self._probe is None
        try:
            return self._open_probe().has_messages()
        except JMSError as error:
            self._drop_probe()
            if is_new and (self._first_batch == self._start.batch or not error.transient):
                raise
            _log.warning("= the connection of the planner ended: %s", error.fact)
            return self._open_probe().has_messages()

    def _open_probe(self) -> Probe:
        """On each new connection the broker may be another one."""
        if self._probe is None:
            options = self._options
            self._probe = self._protocol.connect_probe(options.connection, options.destinations, options.selector_for)
            named = self._start.broker if options.fail_on_data_loss else None
            self._broker = self._require_broker(self._probe.address, named)
        return self._probe

    def _require_broker(self, address: Address, named: str | None) -> str | None:
        return require_broker(self._protocol, self._options.connection, address, named)

    def _drop_probe(self) -> None:
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.drop()

    def _peek(self, base: str, reader: int) -> tuple[Sighting, ...]:
        try:
            return tuple(self._open_probe().peek(base, reader))
        except JMSError:
            self._drop_probe()
            raise

    def _kept(self, base: str, keep: Keep) -> Kept:
        def connect() -> ReaderLink:
            return self._protocol.connect_reader(
                self._options.connection, self._protocol.arrivals(), base=base, reader=keep.reader, client_id=None
            )

        attempt = Attempt(
            TokenKeeper(lambda: uuid.uuid4().hex[:12], fail_on_data_loss=self._options.fail_on_data_loss),
            connect,
            peek=lambda: self._peek(base, keep.reader),
            missing=lambda link: self._require_broker(link.address, self._broker),
            pause=self._stop.pause,
            timeout=self._options.connection.reconnect_timeout if keep.batch else 0.0,
        )
        answer = attempt.run(keep)
        assert isinstance(answer, Kept)
        return answer

    def _note(self, begin: Offset, kept: dict[int, Kept]) -> None:
        for reader, each in kept.items():
            if reader in begin.readers and self._tokens.get(reader) != each.token:
                for name, value in each.token.figures:
                    self._totals[name] = self._totals.get(name, 0) + value
            self._tokens[reader] = each.token

    def _has_ended(self, begin: Offset, kept: dict[int, Kept]) -> bool:
        """AvailableNow: every reader of this run's last batch has shown that its sources have no more."""
        if self._drain_since_ms is None or begin.batch == self._first_batch:
            return False
        last = [kept[reader] for reader in begin.readers]
        if all(each.closed for each in last):
            raise UnsupportedError(
                f"No task has read batch {begin.batch}: Spark did not need its rows. Its messages stay in the queue.",
                "Use the rows of every batch, or trigger(processingTime=…).",
            )
        return all(each.token.drained for each in last)

    # --- the batch -----------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReaderInput]:
        begin, last = _parsed(start), _parsed(end)
        if begin.batch == last.batch or last.stream is None:
            return []
        self._order.require(begin.batch)
        base = queue_of(self._options, last.stream)
        self._require_address(last, base)
        count, broker, since = len(last.readers), last.broker, self._drain_since_ms
        return [ReaderInput(read, base, count, broker, since) for read in reads(begin, last)]

    def commit(self, end: dict[str, Any]) -> None:
        self._order.committed(_parsed(end).batch)

    def progress(self) -> dict[str, object]:
        return {
            "batch": self._start.batch,
            "readers": self._readers,
            "seq": sum(token.next for token in self._tokens.values()),
            "staged": sum(token.next - token.first for token in self._tokens.values() if token.blocks),
            "moved": self._totals.get("messages", 0),
            "movedBytes": self._totals.get("bytes", 0),
            "redelivered": self._totals.get("redelivered", 0),
            "deadLetters": self._totals.get("deadLetters", 0),
            "skippedTooLarge": self._totals.get("skippedTooLarge", 0),
            "guarantee": "exactly-once into Spark",
            "broker": None if self._probe is None else self._probe.server,
        }

    def stop(self) -> None:
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.close()


def _logged(offset: Offset) -> dict[str, Any]:
    logged: dict[str, Any] = json.loads(offset.text())
    return logged


def _parsed(offset: dict[str, Any]) -> Offset:
    try:
        return Offset.parse(json.dumps(offset))
    except ValueError:
        raise IllegalStateError(
            "The checkpoint holds an offset of another way to read.",
            "The guarantee and the kind of a read cannot be changed: use a checkpointLocation of its own.",
        ) from None
