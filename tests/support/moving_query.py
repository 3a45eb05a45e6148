"""A query whose driver moves: each driver runs on a new machine, and nothing goes with it but the checkpoint."""

import json
import signal
import time
from tempfile import TemporaryDirectory

from legs import Submission
from own_machine import Machine, mounts_of, with_mounts
from proxy import Proxy
from session import signal_session
from waiting import wait_until

_PATIENCE_SECONDS = 400
_QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class MovingQuery:
    """``leg(query)`` is what each driver runs: ``query.source`` and ``query.sink`` are its proxies to the broker."""

    def __init__(self, broker, cluster, python, folder, exits, leg):
        self._broker, self._cluster, self._python, self._folder, self._exits = broker, cluster, python, folder, exits
        self._leg = leg
        self.shared = folder / "shared"
        """The folder that all machines see."""
        self.shared.mkdir()
        self.checkpoint = self.shared / "checkpoint"
        self.drivers = self.submitted = 0
        self.job = self.source = self.sink = self._machine = self._running_leg = None

    # --- its drivers -----------------------------------------------------------------------------

    def start(self, **parts):
        """A driver on a new machine, until it is killed. ``parts`` are of the leg, in addition or instead."""
        self.drivers += 1
        self.source, self.sink = (
            self._exits.enter_context(Proxy(self._broker.host, self._broker.port, "amqp")) for _ in range(2)
        )
        self._running_leg = self._leg(self) | {"trigger": {"processingTime": "0 seconds"}} | parts
        self._submit()

    def _submit(self):
        self.submitted += 1
        self._machine = Machine(self._exits.enter_context(TemporaryDirectory(prefix="disk-")), self.shared)
        self.job = Submission(
            self._cluster,
            self._folder / f"job-{self.submitted}",
            [self._running_leg],
            python=self._python,
            machine=self._machine,
            conf={"spark.driver.extraJavaOptions": f"{_QUICK} {self._machine.java_options}"},
        )
        self._exits.callback(self.job.kill)

    def finish(self):
        """A driver on a new machine, which reads what there is and ends."""
        self.start(trigger={"availableNow": True})
        while self.job.wait(600) != 0:
            self._require_busy_machine()
            self._submit()

    def lose(self, *, silently=False):
        """Kill the driver and all that it started. ``silently``: the broker does not notice the end of the receiver.

        Returns the number of its files that are lost.
        """
        pid = self.job.session_id
        mounts, files = mounts_of(pid), len(self._machine.files(pid))
        assert mounts != mounts_of("self")
        assert not list(self._machine.disk.iterdir()), "others see the disk of the driver"
        if silently:
            self.source.leave_open(beats=0)
        self.job.kill()
        wait_until(lambda: not with_mounts(mounts), what="the end of the machine")
        for proxy in (self.sink,) if silently else (self.source, self.sink):
            proxy.cut()  # what is held goes nowhere
            proxy.to_broker.clear()
            proxy.to_client.clear()
        return files

    def until(self, true, what):
        def there():
            if self.job.ended():
                self._require_busy_machine()
                self._submit()
            return true()

        wait_until(there, _PATIENCE_SECONDS, what)

    def _require_busy_machine(self):
        """A driver may end by itself only because Spark waits ten seconds for a Python worker, not longer."""
        assert "Python worker failed to connect back" in self.job.output(), self.job.output()[-6000:]

    def held(self, way, what):
        self.until(way.held.is_set, what)

    def freeze_when(self, true):
        """Stop all processes of the driver at a moment when it is true."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            while not true():
                assert time.monotonic() < deadline, self.job.output()[-6000:]
                time.sleep(0.001)
            signal_session(self.job.session_id, signal.SIGSTOP)
            if true():
                return
            signal_session(self.job.session_id, signal.SIGCONT)

    # --- what the checkpoint shows ---------------------------------------------------------------

    def planned(self):
        """The last batch in the offset log; -1 without one."""
        return max(self._logged("offsets"), default=-1)

    def committed(self):
        """The last batch in the commit log; -1 without one."""
        return max(self._logged("commits"), default=-1)

    def number(self, batch):
        """That of the batch in the tokens of its readers."""
        return self._offset(batch)["batch"]

    @property
    def address(self):
        """Of the staging queues."""
        return self._offset(self.planned())["address"]

    def _offset(self, batch):
        return json.loads((self.checkpoint / "offsets" / str(batch)).read_text().splitlines()[2])

    def _logged(self, log):
        folder = self.checkpoint / log
        return {int(path.name) for path in folder.iterdir() if path.name.isdigit()} if folder.is_dir() else set()
