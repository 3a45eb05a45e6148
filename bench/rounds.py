"""Runs interleaved rounds of every case, and returns the measurement of each case in each round.

Cases that are compared run next to each other in a round, so that a disturbance of the machine affects both.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Self

from bench import peers, raw, raw_amqp
from bench.child import in_child
from bench.java_side import JavaSide
from bench.job import Job, Measured
from bench.naive import NaiveSource
from bench.spark import Reading, SparkSide, Writing, rate_source
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis

__all__ = [
    "AXIS",
    "JOURNAL",
    "OURS",
    "PEERS",
    "QUICK",
    "TASKS",
    "Measurements",
    "Stage",
    "Variant",
    "base_job",
    "measure",
    "warm_up",
]

TASKS = 8
"""Transactions of a round: one for each task of the sink's batch, and the same number for the raw sender."""

OURS = (
    "write.amqp.raw", "write.amqp.jms", "write.jms", "write.raw", "read.raw", "read.jms", "read.amqp.core.jms",
    "read.amqp.core.raw", "read.amqp.raw", "read.amqp.jms", "read.amqp.once",
)  # fmt: skip
"""The connector's cases and the raw clients, each next to those that it is compared with."""
PEERS = (
    "read.naive", "read.java", "read.java_transacted", "read.stomp_py", "read.rate", "write.java",
    "read.amqp.java", "read.amqp.proton", "write.amqp.java",
)  # fmt: skip
QUICK = (*OURS, "read.journal", "read.naive")
AXIS = ("write.jms", "write.raw", "read.raw", "read.jms")
JOURNAL = ("write.raw", "read.raw", "read.jms", "read.journal")

_WARMED = {"write.jms", "read.jms", "write.amqp.jms", "read.amqp.jms", "read.amqp.core.jms", "read.amqp.once"}
_SLOWER = 4
"""The naive source reads so many times fewer messages, which then takes about as long as the other cases."""
_AMQP_QUEUE = "bench.amqp.clients"

Measurements = dict[str, list[Measured]]
"""Case → its measurements, one for each round."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Processes that run during the whole benchmark. If ``java`` is None, ``skipped`` has the reason."""

    broker: EmbeddedArtemis
    spark: SparkSide
    java: JavaSide | None
    qpid: JavaSide | None
    skipped: dict[str, str]

    @classmethod
    @contextmanager
    def built(cls, *, java: bool, paging_bytes: int | None = None) -> Iterator["Stage"]:
        """``paging_bytes``: the size in the broker's memory above which an address is paged."""
        addresses = [AddressSettings(match="bench.#", max_size_bytes=paging_bytes)] if paging_bytes else []
        with ExitStack() as stack:
            broker = stack.enter_context(EmbeddedArtemis(benchmark=True, heap="4g", address_settings=addresses))
            side = stack.enter_context(SparkSide(broker))
            side.spark.dataSource.register(NaiveSource)
            client, qpid, skipped = _java(stack, broker) if java else (None, None, {})
            yield cls(broker, side, client, qpid, skipped)

    def versions(self) -> dict[str, str]:
        return self.spark.versions() | {"artemis": str(self.broker.server.getVersion().getFullVersion())}


def _java(stack: ExitStack, broker: EmbeddedArtemis) -> tuple[JavaSide | None, JavaSide | None, dict[str, str]]:
    reason = JavaSide.missing()
    if reason is None:
        core, qpid = (stack.enter_context(JavaSide(broker, amqp=amqp)) for amqp in (False, True))
        return core, qpid, {}
    return None, None, dict.fromkeys((case for case in PEERS if ".java" in case), reason)


def base_job(broker: EmbeddedArtemis, messages: int) -> Job:
    return Job(
        host=broker.host,
        port=broker.port,
        user=broker.user,
        password=broker.password,
        broker_pid=broker.pid,
        queue="bench.clients",
        messages=messages,
        per_transaction=-(-messages // TASKS),
    )


class Variant:
    """One kind of message, and the queries that read and write it. ``measure`` runs one case."""

    def __init__(self, stage: Stage, job: Job, cases: Sequence[str]) -> None:
        self._stage, self.job = stage, job
        self.cases = [case for case in cases if case not in stage.skipped]
        self._open = ExitStack()
        self._count = 0

    def __enter__(self) -> Self:
        with self._open:
            if "read.jms" in self.cases:
                self._reading = self._open.enter_context(self._query("bench.read", {}))
            if "read.journal" in self.cases:
                location = str(self._stage.spark.folder / "journal")
                self._journal = self._open.enter_context(
                    self._query("bench.journal", {"deliveryGuarantee": "exactly-once", "journalLocation": location})
                )
            amqp = {"brokerUrl": self._stage.broker.amqp_url}
            if {"read.amqp.jms", "read.amqp.core.jms"} & set(self.cases):
                self._amqp_reading = self._open.enter_context(self._query("bench.amqp.read", amqp))
            if "read.amqp.once" in self.cases:
                once = amqp | {"deliveryGuarantee": "exactly-once"}
                self._once_reading = self._open.enter_context(self._query("bench.amqp.once", once))
            if "write.jms" in self.cases:
                self._writing = self._open.enter_context(self._writer("bench.write", {}))
            if "write.amqp.jms" in self.cases:
                self._amqp_writing = self._open.enter_context(self._writer("bench.amqp.write", amqp))
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _query(self, queue: str, options: dict[str, str]) -> Reading:
        return Reading(self._stage.spark, replace(self.job, queue=queue), options)

    def _writer(self, queue: str, options: dict[str, str]) -> Writing:
        return Writing(self._stage.spark, replace(self.job, queue=queue), options, tasks=TASKS)

    def measure(self, case: str) -> Measured:
        before = _collecting(self._stage.broker)
        measured = _CASES[case](self)
        measured.notes["broker_collecting_seconds"] = _collecting(self._stage.broker) - before
        return measured

    # --- cases -----------------------------------------------------------------------------------

    def _fill(self, queue: str | None = None) -> Job:
        job = replace(self.job, queue=queue or self.job.queue)
        in_child(raw.fill, job)
        return job

    def raw_write(self) -> Measured:
        return in_child(raw.send, self.job)

    def raw_read(self) -> Measured:
        """Drains the messages of ``raw_write``, which runs before it in a round."""
        if self._stage.broker.message_count(self.job.queue) < self.job.messages:
            self._fill()
        return in_child(raw.drain, self.job)

    def qpid_read(self) -> Measured:
        assert self._stage.qpid is not None
        return self._stage.qpid.drain(self._fill_over_amqp(_AMQP_QUEUE), "transacted")

    def qpid_write(self) -> Measured:
        assert self._stage.qpid is not None
        measured = self._stage.qpid.send(replace(self.job, queue=_AMQP_QUEUE))
        self._stage.broker.purge(_AMQP_QUEUE)
        return measured

    def proton(self) -> Measured:
        return in_child(peers.proton, self._fill_over_amqp("bench.proton"))

    def stomp_py(self) -> Measured:
        return in_child(peers.stomp_py, self._fill())

    def jms_read(self) -> Measured:
        return _drained(self._reading, self._fill)

    def journal(self) -> Measured:
        return _drained(self._journal, self._fill)

    # --- AMQP ------------------------------------------------------------------------------------

    def _fill_over_amqp(self, queue: str) -> Job:
        job = replace(self.job, queue=queue)
        in_child(raw_amqp.fill, job)
        return job

    def amqp_raw_write(self) -> Measured:
        """Leaves no messages in the broker's memory, which would slow its collector in the cases after it."""
        measured = in_child(raw_amqp.send, replace(self.job, queue=_AMQP_QUEUE))
        self._stage.broker.purge(_AMQP_QUEUE)
        return measured

    def amqp_raw_read(self) -> Measured:
        return in_child(raw_amqp.drain, self._fill_over_amqp(_AMQP_QUEUE))

    def amqp_read(self) -> Measured:
        return _drained(self._amqp_reading, self._fill_over_amqp)

    def amqp_raw_read_of_core(self) -> Measured:
        return in_child(raw_amqp.drain, self._fill("bench.core.clients"))

    def amqp_read_of_core(self) -> Measured:
        """Reads what was sent over STOMP, which the broker keeps as messages of its own protocol (CORE)."""
        return _drained(self._amqp_reading, self._fill)

    def amqp_once_read(self) -> Measured:
        return _drained(self._once_reading, self._fill_over_amqp)

    def amqp_write(self) -> Measured:
        return self._amqp_writing.measure()

    # --- other sources and clients ---------------------------------------------------------------

    def naive(self) -> Measured:
        """Starts the query in each round, because it polls without a pause and would disturb the other cases."""
        self._count += 1
        fewer = max(1, self.job.messages // _SLOWER)
        job = replace(self.job, queue=f"bench.naive.{self._count}", messages=fewer)
        with Reading(self._stage.spark, job, source="naive_stomp", acknowledges=False) as reading:
            in_child(raw.fill, job)
            return reading.measure()

    def rate(self) -> Measured:
        return rate_source(self._stage.spark, self.job)

    def jms_write(self) -> Measured:
        return self._writing.measure()

    def java_read(self, acknowledgement: str) -> Measured:
        assert self._stage.java is not None
        return self._stage.java.drain(self._fill(), acknowledgement)

    def java_write(self) -> Measured:
        assert self._stage.java is not None
        measured = self._stage.java.send(self.job)
        self._stage.broker.purge(self.job.queue)
        return measured


_CASES: dict[str, Callable[[Variant], Measured]] = {
    "write.jms": Variant.jms_write,
    "write.amqp.jms": Variant.amqp_write,
    "write.amqp.raw": Variant.amqp_raw_write,
    "read.amqp.raw": Variant.amqp_raw_read,
    "read.amqp.jms": Variant.amqp_read,
    "read.amqp.once": Variant.amqp_once_read,
    "read.amqp.core.raw": Variant.amqp_raw_read_of_core,
    "read.amqp.core.jms": Variant.amqp_read_of_core,
    "write.raw": Variant.raw_write,
    "write.java": Variant.java_write,
    "read.raw": Variant.raw_read,
    "read.jms": Variant.jms_read,
    "read.journal": Variant.journal,
    "read.naive": Variant.naive,
    "read.java": lambda variant: variant.java_read("individual"),
    "read.java_transacted": lambda variant: variant.java_read("transacted"),
    "read.stomp_py": Variant.stomp_py,
    "read.amqp.proton": Variant.proton,
    "read.amqp.java": Variant.qpid_read,
    "write.amqp.java": Variant.qpid_write,
    "read.rate": Variant.rate,
}


def _drained(reading: Reading, fill: Callable[[str], Job]) -> Measured:
    """Fills the queue of a query that is awake, and lets it read."""
    reading.wake()
    fill(reading.job.queue)
    return reading.measure()


def warm_up(variant: Variant, *, seconds: float) -> None:
    """Run the connector's cases while Spark's JVM compiles code, which takes minutes. A real query runs for longer."""
    ours = [case for case in variant.cases if case in _WARMED]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for case in ours:
            variant.measure(case)


def measure(variant: Variant, *, rounds: int) -> Measurements:
    """One round to warm up, the first in each list, and then ``rounds`` counted rounds."""
    measurements: Measurements = {case: [] for case in variant.cases}
    for _ in range(1 + rounds):
        for case in variant.cases:
            measurements[case].append(variant.measure(case))
    return measurements


def _collecting(broker: EmbeddedArtemis) -> float:
    """Seconds that the broker's JVM has spent in garbage collection: a long collection would distort a measurement."""
    beans = broker.jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    return sum(int(bean.getCollectionTime()) for bean in beans) / 1000
