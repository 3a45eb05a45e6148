"""Runs interleaved rounds of every case, and returns the measurement of each case in each round.

Cases that are compared run next to each other in a round, so that a disturbance of the machine affects both.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

from bench import peers, raw, raw_amqp
from bench.child import in_child
from bench.java_side import JavaSide, JetSide
from bench.job import Job, Measured
from bench.naive import NaiveSource
from bench.spark import Reading, SparkSide, Writing, rate_source
from bench.toy import ToySource
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis

__all__ = ["AXIS", "JOURNAL", "OURS", "PEERS", "QUICK", "Stage", "Variant", "base_job", "measure", "warm_up"]

TASKS = 8
"""Transactions of a round: one for each task of the sink's batch, and the same number for the raw sender."""

OURS = (
    "write.amqp.raw", "write.amqp.jms", "write.jms", "write.raw", "read.raw", "read.jms", "read.amqp.core.jms",
    "read.amqp.core.raw", "read.amqp.raw", "read.amqp.jms", "read.amqp.once",
)  # fmt: skip
"""The connector's cases and the raw clients, each next to those that it is compared with."""
PEERS = (
    "read.naive", "read.java", "read.java_transacted", "read.stomp_py", "read.rate", "write.java",
    "read.amqp.java", "read.amqp.proton", "write.amqp.java", "read.jet_none", "read.jet_at_least_once",
    "read.amqp.core.sent_by_java", "read.jet_exactly_once", "read.amqp.core.sent_by_java_once",
)  # fmt: skip
QUICK = (*OURS, "read.journal", "read.naive")
AXIS = ("write.jms", "write.raw", "read.raw", "read.jms")
JOURNAL = ("write.raw", "read.raw", "read.jms", "read.journal")

_WARMED = {"write.jms", "read.jms", "write.amqp.jms", "read.amqp.jms", "read.amqp.core.jms", "read.amqp.once"}
_SLOWER = 4
"""The naive source reads so many times fewer messages, which then takes about as long as the other cases."""
_CLIENTS, _AMQP = "bench.clients", "bench.amqp.clients"
"""The queues of clients without Spark."""

_Client: TypeAlias = Callable[[Job], Measured]
_Case: TypeAlias = Callable[["Variant"], Measured]


@dataclass(frozen=True, slots=True)
class Stage:
    """Processes that run during the whole benchmark. ``skipped``: case → the reason why it cannot run."""

    broker: EmbeddedArtemis
    spark: SparkSide
    java: dict[str, JavaSide]
    jet: JetSide | None
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
            side.spark.dataSource.register(ToySource)
            reason = JavaSide.missing() if java else None
            in_java = (case for case in PEERS if "java" in case or ".jet" in case)
            skipped = dict.fromkeys(in_java, reason) if reason else {}
            clients = {"core": JavaSide(broker), "qpid": JavaSide(broker, amqp=True)} if java and not reason else {}
            for client in clients.values():
                stack.enter_context(client)
            jet = stack.enter_context(JetSide(broker)) if clients else None
            yield cls(broker, side, clients, jet, skipped)

    def versions(self) -> dict[str, str]:
        return self.spark.versions() | {"artemis": str(self.broker.server.getVersion().getFullVersion())}


def base_job(broker: EmbeddedArtemis, messages: int) -> Job:
    return Job(
        host=broker.host,
        port=broker.port,
        user=broker.user,
        password=broker.password,
        broker_pid=broker.pid,
        queue=_CLIENTS,
        messages=messages,
        per_transaction=-(-messages // TASKS),
    )


class Variant:
    """One kind of message, and the queries that read and write it. ``measure`` runs one case."""

    def __init__(self, stage: Stage, job: Job, cases: Sequence[str]) -> None:
        self.stage, self.job = stage, job
        self.cases = [case for case in cases if case not in stage.skipped]
        self.readings: dict[str, Reading] = {}
        self.writings: dict[str, Writing] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        side = self.stage.spark
        amqp, once = {"brokerUrl": self.stage.broker.amqp_url}, {"deliveryGuarantee": "exactly-once"}
        journal = once | {"journalLocation": str(side.folder / "journal")}
        readings = {"read.jms": {}, "read.journal": journal, "read.amqp.jms": amqp, "read.amqp.once": amqp | once}
        two = amqp | once | {"readers": "2"}
        readings |= {"read.amqp.core.sent_by_java": amqp, "read.amqp.core.sent_by_java_once": two}
        with self._open:
            for case, options in readings.items():
                if case in self.cases:
                    reading = Reading(side, self.on(f"bench.{case}"), options)
                    self.readings[case] = self._open.enter_context(reading)
            for case, options in {"write.jms": {}, "write.amqp.jms": amqp}.items():
                if case in self.cases:
                    writing = Writing(side, self.on(f"bench.{case}"), options, tasks=TASKS)
                    self.writings[case] = self._open.enter_context(writing)
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def measure(self, case: str) -> Measured:
        before = _collecting(self.stage.broker)
        measured = _CASES[case](self)
        measured.notes["broker_collecting_seconds"] = _collecting(self.stage.broker) - before
        return measured

    def on(self, queue: str) -> Job:
        return replace(self.job, queue=queue)

    def filled(self, queue: str, fill: _Client = raw.fill) -> Job:
        self.stage.broker.create_queue(queue)
        self.stage.broker.purge(queue)  # what the case before has left would be read, too
        in_child(fill, job := self.on(queue))
        return job


# --- cases ---------------------------------------------------------------------------------------


def _query_reads(name: str, fill: _Client = raw.fill, *, of_java: bool = False) -> _Case:
    """Fills the queue of a query that is awake, and lets it read. ``of_java``: with the messages that Jet reads."""

    def case(variant: Variant) -> Measured:
        reading = variant.readings[name]
        reading.wake()
        _send_by_java(variant, reading.job) if of_java else in_child(fill, reading.job)
        return reading.measure()

    return case


def _query_writes(name: str) -> _Case:
    return lambda variant: variant.writings[name].measure()


def _client_reads(client: _Client, queue: str, fill: _Client = raw.fill) -> _Case:
    return lambda variant: in_child(client, variant.filled(queue, fill))


def _java_reads(client: str, acknowledgement: str, queue: str = _CLIENTS, fill: _Client = raw.fill) -> _Case:
    return lambda variant: variant.stage.java[client].drain(variant.filled(queue, fill), acknowledgement)


def _jet_reads(guarantee: str, parallelism: int = 1) -> _Case:
    def case(variant: Variant) -> Measured:
        jet = variant.stage.jet
        assert jet is not None
        queue = f"bench.jet.{time.time_ns()}"  # messages of the round before may come back
        variant.stage.broker.create_queue(queue)
        _send_by_java(variant, job := variant.on(queue))
        return _purged(variant, queue, jet.read(job, guarantee, parallelism=parallelism))

    return case


def _send_by_java(variant: Variant, job: Job) -> None:
    """Give each message an id, without which Jet's exactly-once source drops it."""
    variant.stage.java["core"].send(job)


def _java_writes(client: str, queue: str) -> _Case:
    return lambda variant: _purged(variant, queue, variant.stage.java[client].send(variant.on(queue)))


def _purged(variant: Variant, queue: str, measured: Measured) -> Measured:
    """Leaves no messages in the broker's memory, which would slow its collector in the cases after it."""
    variant.stage.broker.purge(queue)
    return measured


def _raw_read(variant: Variant) -> Measured:
    """Drains the messages of ``write.raw``, which runs before it in a round."""
    if variant.stage.broker.message_count(_CLIENTS) < variant.job.messages:
        variant.filled(_CLIENTS)
    return in_child(raw.drain, variant.on(_CLIENTS))


def _naive_read(variant: Variant) -> Measured:
    """Starts the query in each round, because it polls without a pause and would disturb the other cases."""
    job = replace(variant.on(f"bench.naive.{time.time_ns()}"), messages=max(1, variant.job.messages // _SLOWER))
    with Reading(variant.stage.spark, job, source="naive_stomp", acknowledges=False) as reading:
        in_child(raw.fill, job)
        return reading.measure()


_CASES: dict[str, _Case] = {
    "write.raw": lambda variant: in_child(raw.send, variant.on(_CLIENTS)),
    "write.jms": _query_writes("write.jms"),
    "write.java": _java_writes("core", _CLIENTS),
    "write.amqp.raw": lambda variant: _purged(variant, _AMQP, in_child(raw_amqp.send, variant.on(_AMQP))),
    "write.amqp.jms": _query_writes("write.amqp.jms"),
    "write.amqp.java": _java_writes("qpid", _AMQP),
    "read.raw": _raw_read,
    "read.jms": _query_reads("read.jms"),
    "read.journal": _query_reads("read.journal"),
    "read.naive": _naive_read,
    "read.stomp_py": _client_reads(peers.stomp_py, _CLIENTS),
    "read.java": _java_reads("core", "individual"),
    "read.java_transacted": _java_reads("core", "transacted"),
    "read.rate": lambda variant: rate_source(variant.stage.spark, variant.job),
    "read.amqp.raw": _client_reads(raw_amqp.drain, _AMQP, raw_amqp.fill),
    "read.amqp.jms": _query_reads("read.amqp.jms", raw_amqp.fill),
    "read.amqp.once": _query_reads("read.amqp.once", raw_amqp.fill),
    # Sent over STOMP: the broker keeps it as messages of its own protocol (CORE).
    "read.amqp.core.raw": _client_reads(raw_amqp.drain, "bench.core.clients"),
    "read.amqp.core.jms": _query_reads("read.amqp.jms"),
    "read.jet_none": _jet_reads("NONE"),
    "read.jet_at_least_once": _jet_reads("AT_LEAST_ONCE"),
    "read.jet_exactly_once": _jet_reads("EXACTLY_ONCE", parallelism=2),
    "read.amqp.core.sent_by_java": _query_reads("read.amqp.core.sent_by_java", of_java=True),
    "read.amqp.core.sent_by_java_once": _query_reads("read.amqp.core.sent_by_java_once", of_java=True),
    "read.amqp.java": _java_reads("qpid", "transacted", _AMQP, raw_amqp.fill),
    "read.amqp.proton": _client_reads(peers.proton, "bench.proton", raw_amqp.fill),
}


def warm_up(variant: Variant, *, seconds: float) -> None:
    """Run the connector's cases while Spark's JVM compiles code, which takes minutes. A real query runs for longer."""
    ours = [case for case in variant.cases if case in _WARMED]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for case in ours:
            variant.measure(case)


def measure(variant: Variant, *, rounds: int) -> dict[str, list[Measured]]:
    """Case → its measurements. One round to warm up, the first in each list, and then ``rounds`` counted rounds."""
    measurements: dict[str, list[Measured]] = {case: [] for case in variant.cases}
    for _ in range(1 + rounds):
        for case in variant.cases:
            measurements[case].append(variant.measure(case))
    return measurements


def _collecting(broker: EmbeddedArtemis) -> float:
    """Seconds that the broker's JVM has spent in garbage collection: a long collection would distort a measurement."""
    beans = broker.jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    return sum(int(bean.getCollectionTime()) for bean in beans) / 1000
