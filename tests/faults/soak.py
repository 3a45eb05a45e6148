"""Random kills for as long as you like: a random mode, a random fault, a random moment. The seed is the plan.

    python tests/faults/soak.py --kills 200 --seed 7
    python tests/faults/soak.py --kills 200 --seed 7 --deaths --mode amqp-once --option readers=3

``--deaths``: only deaths of a single process, most of them of Spark's Python workers (``deaths.py``).

A *leg* is one mode with one stream of messages that goes on while its job is hit again and again; at its end the
job runs until nothing is left, and every message is counted. Ends with 1 if one was lost, or duplicated where
exactly-once is promised.
"""

import argparse
import contextlib
import random
import shlex
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "support")]

from cells import EXACTLY_ONCE, FROM_FILES, MODES, RABBITMQ_MODES, cells  # noqa: E402 - found by the line above
from deaths import WEIGHTS as DEATHS  # noqa: E402
from deaths import await_process, kill_process  # noqa: E402
from drivers import JobError  # noqa: E402
from injection import inject_fault  # noqa: E402
from moments import LONGEST_SECONDS, Moment, await_moment, draw  # noqa: E402
from play import Result, count  # noqa: E402
from say import say  # noqa: E402
from stage import NotReachedError, Slot, Stage  # noqa: E402

_WEIGHTS = {
    "kill-driver": 3, "kill-runner": 4, "kill-worker": 4, "kill-broker": 2, "cut": 4, "stall": 1,
    "disk-full": 2, "stop": 2, "sigterm": 1, "broker-full": 1,
}  # fmt: skip
_MODES = [mode for mode in MODES if mode not in RABBITMQ_MODES]
_MAKE_SENSE = {(cell.mode, cell.fault) for cell in cells() if cell.reason is None}
_UNSENDABLE = {"kill-broker", "broker-full"}
_QUIET_BEATS = 10
_MOST_WAITING = 2000
"""The feeder waits while so many messages are unread."""


@dataclass(frozen=True)
class Kind:
    """What plans of a kind have in common."""

    hits: tuple
    """Of a leg, at least and at most."""
    quiet_share: float
    longest: float
    """Seconds that a moment is waited for."""
    counts: tuple
    """Which one of the frames a moment is at."""
    batches: tuple
    """Messages of a batch, at most."""
    slot: dict
    """How its drivers are started."""


RANDOM_FAULTS = Kind(
    hits=(4, 16), quiet_share=0.2, longest=LONGEST_SECONDS, counts=(1, 1, 2, 3, 50), batches=(50, 200, 1000), slot={}
)
SINGLE_DEATHS = Kind(
    hits=(60, 80), quiet_share=0.1, longest=1.0, counts=(1, 1, 2, 3), batches=(100, 300, 1000),
    slot={"configuration": {"spark.python.daemon.module": "pyspark_jms.spark.daemon"}, "failures": 100},
)  # fmt: skip
"""Spark tries a task again more often than a leg has hits, so the query goes on."""


@dataclass(frozen=True)
class Hit:
    mode: str
    fault: str
    moment: Moment
    chance: float = 0
    """Which of several processes dies."""
    point: str = "random"


@dataclass(frozen=True)
class Leg:
    mode: str
    options: dict
    hits: list
    quiet: bool
    """The broker does not see the end of a client, and detects it only when its time to live ends."""
    fault: str = "random"

    @property
    def point(self):
        return "before-ttl" if self.quiet else "random"

    def most_duplicates(self, endings):
        return 0 if self.mode in EXACTLY_ONCE else None


def plan(seed, kills, modes, kind):
    """Legs, until there are so many hits. Another choice of modes is another plan."""
    rng = random.Random(seed)
    legs = []
    while kills:
        mode = rng.choice(sorted(modes))
        size = min(kills, rng.randint(*kind.hits))
        hits = [_hit(rng, mode, kind) for _ in range(size)]
        options = {
            "maxMessagesPerTrigger": rng.choice(kind.batches),
            "windowBytes": rng.choice(("16k", "128k", "8m")),
        }
        legs.append(Leg(mode, options, hits, quiet=rng.random() < kind.quiet_share))
        kills -= size
    return legs


def _hit(rng, mode, kind):
    weights = _weights(mode, kind)
    fault = rng.choices(list(weights), list(weights.values()))[0]
    moment = draw(rng, mode, kind.longest, kind.counts)
    return Hit(mode, fault, moment, rng.random() if kind is SINGLE_DEATHS else 0)


def _weights(mode, kind):
    if kind is SINGLE_DEATHS:
        return {fault: weight for fault, weight in DEATHS.items() if fault != "runner-dies" or mode not in FROM_FILES}
    return {fault: _WEIGHTS[fault] for fault in sorted(_WEIGHTS) if (mode, fault) in _MAKE_SENSE}


class Feeder(threading.Thread):
    """Sends in small portions, as long as the job keeps up."""

    def __init__(self, stage, rng):
        super().__init__(name="feeder")
        self._stage, self._rng = stage, rng
        self._over = threading.Event()
        self.quiet = threading.Lock()
        """While it is held, nothing is sent: messages that a killed broker has not confirmed cannot be counted, and a
        full broker takes none."""
        self._failure = None

    def run(self):
        try:
            self._feed()
        except Exception as failure:  # noqa: BLE001 - raised where the feeder is ended
            self._failure = failure

    def _feed(self):
        while not self._over.wait(self._rng.uniform(0.02, 0.3)):
            with self.quiet:
                if self._stage.input.sent - self._stage.output.size() < _MOST_WAITING:
                    self._stage.input.send(100 * self._rng.randint(1, 4))

    def end(self):
        self._over.set()
        self.join()
        if self._failure is not None:
            raise self._failure


class Soak:
    def __init__(self, seed, legs, kind, options):
        self._options, self._kind = options, kind
        self.deaths = Counter()
        """By fault: processes that were alive and died."""
        self._rng = random.Random(f"feeder {seed}")
        self._legs = legs
        self._hits = 0
        self._total = sum(len(leg.hits) for leg in legs)
        self._began = time.monotonic()

    def run(self):
        """The legs' results."""
        with contextlib.closing(Slot(self._options, **self._kind.slot)) as slot:
            return [self._play(slot, number, leg) for number, leg in enumerate(self._legs, 1)]

    def _play(self, slot, number, leg):
        say(f"--- leg {number}: {MODES[leg.mode]}, {leg.options}{', quiet deaths' if leg.quiet else ''}")
        result = Result(leg)
        try:
            with Stage(slot, leg) as stage:
                try:
                    self._hit_and_count(stage, leg, result)
                finally:
                    result.endings, result.errors = stage.endings, stage.errors
        except (NotReachedError, JobError, AssertionError, OSError) as error:
            result.problem = f"{type(error).__name__}: {error}"
        say(
            f"--- leg {number}: {result.sent} sent, {result.seen} seen, {result.lost} lost,"
            f" {result.duplicated} duplicated, {result.queue} left, {result.dead} dead: {result.verdict}"
        )
        if not result.ok:
            say(*result.errors)
        return result

    def _hit_and_count(self, stage, leg, result):
        dead = stage.broker.message_count("DLQ")
        if leg.quiet:
            stage.source.leave_open(_QUIET_BEATS)
            stage.sink.leave_open(_QUIET_BEATS)
        feeder = Feeder(stage, self._rng)
        feeder.start()
        try:
            for hit in leg.hits:
                self._hit(stage, leg, hit, feeder)
        finally:
            feeder.end()
            stage.release()
        if not stage.ended():
            stage.go_on()
        stage.recover()
        count(stage, result)
        result.dead = stage.broker.message_count("DLQ") - dead

    def _hit(self, stage, leg, hit, feeder):
        if stage.ended():
            stage.start(**leg.options)
        began, noted = time.monotonic(), len(stage.endings)
        came, missed = False, ""
        try:
            await_process(stage, hit.mode, hit.fault)
            came = await_moment(stage, hit.moment, self._kind.longest)
            self._cause(stage, hit, feeder)
        except NotReachedError as error:
            missed = f", missed: {str(error).splitlines()[0]}"
            stage.release()
        self._hits += 1
        endings = ", ".join(stage.endings[noted:]) or "goes on"
        say(
            f"{self._hits:>4}/{self._total} {time.monotonic() - self._began:>5.0f}s {leg.mode:<14} {hit.fault:<12}"
            f" {hit.moment}{'' if came else ' (did not come)'}: {endings}{missed};"
            f" {time.monotonic() - began:.1f} s, {stage.input.sent} sent, {stage.output.size()} out"
        )

    def _cause(self, stage, hit, feeder):
        if hit.fault in DEATHS:
            kill_process(stage, hit.fault, hit.chance)
            self.deaths[hit.fault] += 1
            return
        with feeder.quiet if hit.fault in _UNSENDABLE else contextlib.nullcontext():
            inject_fault(stage, hit)


def parser():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--deaths", action="store_true", help="only deaths of single processes")
    parser.add_argument("--mode", action="append", choices=_MODES)
    parser.add_argument(
        "--option", action="append", default=[], type=lambda given: given.split("=", 1), metavar="NAME=VALUE",
        help="an option of each source: connections=2",
    )  # fmt: skip
    return parser


def main():
    options = parser().parse_args()
    modes = options.mode or _MODES
    say(f"make soak N={options.kills} SEED={options.seed} ARGS={shlex.quote(' '.join(arguments(options, modes)))}")
    kind = SINGLE_DEATHS if options.deaths else RANDOM_FAULTS
    soak = Soak(options.seed, plan(options.seed, options.kills, modes, kind), kind, options.option)
    results = soak.run()
    bad = [result for result in results if not result.ok]
    once = sum(result.duplicated for result in results if result.cell.mode in EXACTLY_ONCE)
    say(
        f"{options.kills} kills in {len(results)} legs: {sum(result.sent for result in results)} messages sent,"
        f" {sum(result.lost for result in results)} lost, {once} duplicated where exactly-once is promised,"
        f" {sum(result.duplicated for result in results) - once} elsewhere;"
        f" seed {options.seed}: {'FAILED' if bad else 'ok'}"
    )
    if options.deaths:
        counts = ", ".join(f"{count} {fault}" for fault, count in sorted(soak.deaths.items()))
        say(f"{soak.deaths.total()} processes were alive and died: {counts}")
    return bool(bad)


def arguments(options, modes):
    """All but the number of kills and the seed, as words of a command."""
    yield from ["--deaths"] if options.deaths else []
    for mode in modes:
        yield f"--mode {mode}"
    for pair in options.option:
        yield f"--option {'='.join(pair)}"


if __name__ == "__main__":
    sys.exit(main())
