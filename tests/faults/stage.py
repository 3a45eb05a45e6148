"""What one cell needs: a broker, proxies before it, input and output, and the job between them."""

import contextlib
import json
import re
import shutil
import tempfile
import time
import uuid
from pathlib import Path

from cells import EXACTLY_ONCE, FROM_FILES, RABBITMQ_MODES, READERS, STOMP_MODES, TO_QUEUE, WITH_JOURNAL
from drivers import Drivers, JobError
from proxy import Proxy
from rabbit4 import Rabbit4
from streams import FilesInput, FolderOutput, QueueInput, QueueOutput, RabbitInput, ReadersInput

from pyspark_jms.testing import EmbeddedArtemis

_PATIENCE_SECONDS = 180
_ASK_SECONDS = 1.0
"""Between two questions to the job whether it still runs."""
_AMQP_OPTIONS = {"amqpIdleTimeout": "5000"}
"""After so many ms the broker ends the connection of a lost client. Over AMQP ``heartbeat`` does not decide it."""
_NO_FIRST_OFFSET = "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
"""Spark 4.3 needs another checkpoint if it was killed while it wrote the first offset."""
_OURS, _SPARKS = re.compile(r"JMS_[A-Z_]+"), re.compile(r"[A-Z]+_[A-Z_]+")


_BROKERS = {
    "artemis": lambda: EmbeddedArtemis(heap="512m", acceptor_options=_AMQP_OPTIONS),
    "rabbitmq": lambda: Rabbit4("sid"),
}


class NotReachedError(Exception):
    """A cell did not get to its point: it proves nothing about the product."""


def _settings(cell):
    """Options of the connections: defaults, save where the fault or the point is a matter of time."""
    sink = {"reconnectTimeout": "7s"}  # the look-ups after a lost COMMIT
    if cell.fault == "stall":
        brisk = {"heartbeat": "1s", "connectTimeout": "3s"}
        return {"source": brisk, "sink": sink | brisk}
    if cell.point == "before-ttl":  # a broker detects a lost client after twice its heart-beat
        return {"source": {"heartbeat": "3s"}, "sink": sink | {"heartbeat": "3s"}}
    return {"source": {}, "sink": sink}


class Slot:
    """Brokers and drivers that are ready, for one cell after another."""

    def __init__(self, options=(), configuration=(), failures=4):
        """``configuration``: of Spark. ``failures``: how often Spark tries a task."""
        self.options = dict(options)
        """Options of each source, in addition to those of its mode."""
        self._brokers = {}
        self.drivers = Drivers(dict(configuration), failures)

    def broker_of(self, mode):
        """Started for the first cell that needs it."""
        kind = "rabbitmq" if mode in RABBITMQ_MODES else "artemis"
        if kind not in self._brokers:
            self._brokers[kind] = _BROKERS[kind]().start()
        return self._brokers[kind]

    def close(self):
        self.drivers.close()
        for broker in self._brokers.values():
            broker.close()


class Stage:
    """``with Stage(slot, cell) as stage``: what the modules ``points`` and ``injection`` use."""

    def __init__(self, slot, cell):
        self.broker, self.mode = slot.broker_of(cell.mode), cell.mode
        self.quiet_death = cell.point == "before-ttl"
        """Whether the broker does not see the end of a client."""
        self._settings = _settings(cell)
        self._options = slot.options
        self._drivers = slot.drivers
        self._exits = contextlib.ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self.checkpoint = self.folder / "checkpoint"
        self.driver = None
        self._running = False
        self.runs = 0
        self.endings = []
        """The codes of the errors that ended queries."""
        self.errors = []
        """Those errors in full."""

    def __enter__(self):
        self._exits.callback(shutil.rmtree, self.folder, ignore_errors=True)
        protocol = "stomp" if self.mode in STOMP_MODES else "amqp"
        port = self.broker.amqp_port if self.mode in RABBITMQ_MODES else self.broker.port
        self.source = self._exits.enter_context(Proxy(self.broker.host, port, protocol))
        self.sink = self._exits.enter_context(Proxy(self.broker.host, port, protocol))
        name = uuid.uuid4().hex[:12]
        if self.mode in FROM_FILES:
            self.input = FilesInput(self.folder / "files")
        elif self.mode in RABBITMQ_MODES:
            self.input = RabbitInput(self.broker, self.source, f"in.{name}")
        else:
            journal = self.folder / "journal" if self.mode in WITH_JOURNAL else None
            kind = ReadersInput if self.mode in READERS else QueueInput
            self.input = kind(self.broker, self.source, f"in.{name}", journal)
        if self.mode in TO_QUEUE:
            guarantee = "exactly-once" if self.mode in EXACTLY_ONCE else "at-least-once"
            self.output = QueueOutput(self.broker, self.sink, f"out.{name}", guarantee)
        else:
            self.output = FolderOutput(self.folder / "out")
        return self

    def __exit__(self, *_):
        self.release()
        self._let_driver_go()
        self._exits.close()

    # --- the job ---------------------------------------------------------------------------------

    def start(self, **options):
        """Start the query with a trigger that does not end, in the same driver as before if that lives."""
        self._need_driver()
        self._start({"processingTime": "0 seconds"}, options)

    def start_until(self, place, number, **options):
        """Set a breakpoint, start the query, and wait until it is there."""
        self._need_driver()
        self.driver.breakpoints.set(place, number)
        self.start(**options)
        self.until(lambda: self.driver.breakpoints.is_reached(place), f"the breakpoint {place} {number}")

    def _need_driver(self):
        if self.driver is None or not self.driver.alive:
            self._change_driver()

    def _start(self, trigger, options):
        self.runs += 1
        self._running = True
        sink = self.output.sink(self.input.columns, **self._settings["sink"])
        source = self.input.source(**self._settings["source"] | self._options | options)
        self.driver.order("start", source=source, sink=sink, trigger=trigger, checkpoint=str(self.checkpoint))

    def _change_driver(self):
        old, self.driver = self.driver, self._drivers.take()
        if old is not None:
            self._drivers.give(old)

    def ended(self):
        """Return whether the query has ended, and note its error."""
        if not self._running or not self.driver.alive:
            return True
        state = self.driver.order("state")
        self._running = state["active"]
        if state["error"]:
            self._note(state["error"])
        return not self._running

    def _note(self, error):
        self.errors.append(error)
        self.endings.append((_OURS.search(error) or _SPARKS.search(error) or [error])[0])
        if _NO_FIRST_OFFSET in error:  # a documented limit: docs/guarantees.md
            shutil.rmtree(self.checkpoint)
            self.endings[-1] = "new checkpoint"

    def _let_driver_go(self):
        driver, self.driver = self.driver, None
        if driver is None:
            return
        if driver.alive and driver.order("state")["active"]:
            driver.kill()
        self._drivers.give(driver)

    def release(self):
        """Let everything go on that waits: held bytes, stalled connections, the job at a breakpoint."""
        for proxy in (self.source, self.sink):
            for way in (proxy.to_broker, proxy.to_client):
                way.clear()
        if self.driver is not None:
            self.driver.breakpoints.release()

    # --- reaching a point ----------------------------------------------------------------------------

    def until(self, true, what, seconds=_PATIENCE_SECONDS):
        deadline = time.monotonic() + seconds
        checked = time.monotonic()
        while not true():
            if time.monotonic() > checked + _ASK_SECONDS:
                checked = time.monotonic()
                if self.ended():
                    raise NotReachedError(f"the query ended before {what}: {self.endings}")
            if time.monotonic() > deadline:
                raise NotReachedError(f"{what}: not within {seconds} s")
            time.sleep(0.01)

    def held(self, way, what):
        self.until(way.held.is_set, what)

    def logged(self, log):
        """Return the batches in the offset log or the commit log (``offsets``, ``commits``)."""
        folder = self.checkpoint / log
        return {int(path.name) for path in folder.iterdir() if path.name.isdigit()} if folder.is_dir() else set()

    def offset(self, batch):
        """Return the end of a batch by the offset log."""
        logged = json.loads((self.checkpoint / "offsets" / str(batch)).read_text().splitlines()[2])
        return logged["batch" if self.mode in READERS else "seq"]

    def require(self, true, what):
        if not true:
            raise NotReachedError(what)

    # --- afterwards ----------------------------------------------------------------------------------

    def go_on(self):
        """Wait until a query that has survived has read everything, and stop it. Returns whether it did."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.ended():
            if self._is_all_out():
                self.driver.order("stop")
                self._running = False
                return True
            if time.monotonic() > deadline:
                self.endings.append("did not go on")
                self.driver.kill()
                return False
            time.sleep(0.2)
        return False

    def _is_all_out(self):
        if self.mode in FROM_FILES and self.mode not in EXACTLY_ONCE:  # duplicates would count as the rest
            return self.input.read(self.checkpoint) == self.input.sent and self.logged("offsets") == self.logged(
                "commits"
            )
        return self.output.size() >= self.input.sent and not self.input.left()

    def recover(self, meanwhile=lambda: None):
        """Start the job again, as a user would, until nothing is left. In another driver: the old one may be dead."""
        self._change_driver()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            self._start({"availableNow": True}, {})
            meanwhile()
            meanwhile = lambda: None  # noqa: E731 - of the first run
            noted = len(self.endings)
            self.await_end()
            if len(self.endings) == noted and not self.input.left():
                return

    def await_end(self):
        """Wait until the query has ended."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.ended():
            if time.monotonic() > deadline:
                raise JobError(f"the job did not end:\n{self.driver.tail()}")
            time.sleep(0.1)
