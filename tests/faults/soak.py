"""Random kills for as long as you like: a random mode, a random fault, a random moment. The seed is the plan.

    python tests/faults/soak.py --kills 200 --seed 7

A *leg* is one mode with one stream of messages that goes on while its job is hit again and again; at its end the
job runs until nothing is left, and every message is counted. Ends with 1 when one was lost, or came twice where
that is not allowed.
"""

import argparse
import contextlib
import random
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "support")]

from cells import EXACTLY_ONCE, MODES, RABBITMQ_MODES, cells  # noqa: E402 - found by the line above
from drivers import JobError  # noqa: E402
from moments import Moment, await_moment, draw  # noqa: E402
from play import Result, count  # noqa: E402
from say import say  # noqa: E402
from stage import NotReachedError, Slot, Stage  # noqa: E402
from strikes import strike  # noqa: E402

_WEIGHTS = {
    "kill-driver": 3, "kill-runner": 4, "kill-worker": 4, "kill-broker": 2, "cut": 4, "stall": 1,
    "disk-full": 2, "stop": 2, "sigterm": 1, "broker-full": 1,
}  # fmt: skip
_MODES = [mode for mode in MODES if mode not in RABBITMQ_MODES]
_MAKE_SENSE = {(cell.mode, cell.fault) for cell in cells() if cell.reason is None}
_UNSENDABLE = {"kill-broker", "broker-full"}
_LONGEST_LEG = 16
_QUIET_SHARE, _QUIET_BEATS = 0.2, 10
_MOST_WAITING = 2000
"""Messages that the feeder leaves unread before it waits."""


@dataclass(frozen=True)
class Hit:
    mode: str
    fault: str
    moment: Moment
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


def plan(seed, kills, modes):
    """Legs, until there are so many hits. Another choice of modes is another plan."""
    rng = random.Random(seed)
    legs = []
    while kills:
        mode = rng.choice(sorted(modes))
        size = min(kills, rng.randint(4, _LONGEST_LEG))
        possible = [fault for fault in sorted(_WEIGHTS) if (mode, fault) in _MAKE_SENSE]
        weights = [_WEIGHTS[fault] for fault in possible]
        hits = [Hit(mode, rng.choices(possible, weights)[0], draw(rng, mode)) for _ in range(size)]
        options = {
            "maxMessagesPerTrigger": rng.choice((50, 200, 1000)),
            "windowBytes": rng.choice(("16k", "128k", "8m")),
        }
        legs.append(Leg(mode, options, hits, quiet=rng.random() < _QUIET_SHARE))
        kills -= size
    return legs


class Feeder(threading.Thread):
    """Sends in small portions, as long as the job keeps up."""

    def __init__(self, stage, rng):
        super().__init__(name="feeder")
        self._stage, self._rng = stage, rng
        self._over = threading.Event()
        self.quiet = threading.Lock()
        """Held while nothing is sent: what a broker had not confirmed when it was killed could not be counted, and a
        full broker takes nothing."""
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
    def __init__(self, seed, legs, options):
        self._options = options
        self._rng = random.Random(f"feeder {seed}")
        self._legs = legs
        self._hits = 0
        self._total = sum(len(leg.hits) for leg in legs)
        self._began = time.monotonic()

    def run(self):
        """The legs' results."""
        slot = Slot(self._options)
        try:
            return [self._play(slot, number, leg) for number, leg in enumerate(self._legs, 1)]
        finally:
            slot.close()

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
            f"--- leg {number}: {result.sent} sent, {result.seen} seen, {result.lost} lost, {result.duplicated} twice,"
            f" {result.queue} left, {result.dead} dead: {result.verdict}"
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
        began = time.monotonic()
        came = await_moment(stage, hit.moment)
        noted = len(stage.endings)
        missed = ""
        try:
            with feeder.quiet if hit.fault in _UNSENDABLE else contextlib.nullcontext():
                strike(stage, hit)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--mode", action="append", choices=_MODES)
    parser.add_argument(
        "--option", action="append", default=[], type=lambda given: given.split("=", 1), metavar="NAME=VALUE",
        help="an option of each source: connections=2",
    )  # fmt: skip
    options = parser.parse_args()
    modes = options.mode or _MODES
    say(f"make soak N={options.kills} SEED={options.seed} ARGS={' '.join(f'--mode {mode}' for mode in modes)!r}")
    results = Soak(options.seed, plan(options.seed, options.kills, modes), options.option).run()
    bad = [result for result in results if not result.ok]
    once = sum(result.duplicated for result in results if result.cell.mode in EXACTLY_ONCE)
    say(
        f"{options.kills} kills in {len(results)} legs: {sum(result.sent for result in results)} messages sent,"
        f" {sum(result.lost for result in results)} lost, {once} twice where exactly once is promised,"
        f" {sum(result.duplicated for result in results) - once} elsewhere;"
        f" seed {options.seed}: {'FAILED' if bad else 'ok'}"
    )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
