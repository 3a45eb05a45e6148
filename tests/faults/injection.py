"""Fault injection: what each fault does to a job, to its broker or to their connections. Returns when it is over."""

import os
import resource
import signal
import time

import session
from cells import READERS, WITH_TOKEN
from full_disk import full_disk

FULL_SECONDS = 20
"""How long the broker takes no message. Meanwhile the query waits for credit, or tries again."""
FROZEN_SECONDS = 20
"""How long the broker's process is stopped (SIGSTOP, then SIGCONT). Its sockets stay open, and nothing answers."""
STALLED_SECONDS = 6
"""Longer than both ends wait for a peer if heart-beats have an interval of a second."""
_BEFORE_RELEASE_SECONDS = 0.3
_FOR_PROCESSES_SECONDS = 20


def inject_fault(stage, cell):
    _FAULTS[cell.fault](stage)


def _lost(stage, *proxies, links=None):
    """End the connections of a dead process, and lose their held bytes. A quiet death leaves both as they are.

    ``links``: for each proxy, the connections of the process; None for all.
    """
    if stage.quiet_death:
        stage.driver.breakpoints.release()
        return
    for number, proxy in enumerate(proxies):
        proxy.cut(None if links is None else links[number])
    stage.release()


def _kill_driver(stage):
    stage.driver.kill()
    _lost(stage, stage.source, stage.sink)
    stage.endings.append("killed")


def _kill_runner(stage):
    stage.until(stage.driver.runners, "a runner", _FOR_PROCESSES_SECONDS)
    session.kill(*stage.driver.runners())
    _lost(stage, stage.source)
    if not stage.quiet_death or stage.mode not in WITH_TOKEN:  # there, a task waits for the end of its old connection
        stage.await_end()


def _kill_worker(stage):
    stage.until(stage.driver.workers, "a worker", _FOR_PROCESSES_SECONDS)
    proxies = [stage.sink, *([stage.source] if stage.mode in READERS else [])]
    links = [proxy.links() for proxy in proxies]  # the next attempt may connect at once
    session.kill(*stage.driver.workers())
    _lost(stage, *proxies, links=links)


def _kill_broker(stage):
    stage.broker.kill()
    stage.source.cut()
    stage.sink.cut()
    stage.release()
    stage.broker.start()


def _freeze_broker(stage):
    os.kill(stage.broker.pid, signal.SIGSTOP)
    try:
        stage.release()
        time.sleep(FROZEN_SECONDS)
    finally:
        os.kill(stage.broker.pid, signal.SIGCONT)


def _fill_broker(stage):
    with full_disk(stage.broker):
        stage.release()
        time.sleep(FULL_SECONDS)


def _cut(stage):
    if stage.quiet_death:
        stage.source.cut_clients()
        stage.sink.cut_clients()
        stage.driver.breakpoints.release()
        return
    stage.source.cut()
    stage.sink.cut()
    stage.release()


def _stall(stage):
    ways = [way for proxy in (stage.source, stage.sink) for way in (proxy.to_broker, proxy.to_client)]
    for way in ways:
        way.stall()
        way.release()  # held bytes wait again, in the stall
    stage.driver.breakpoints.release()
    time.sleep(STALLED_SECONDS)
    stage.release()


def _disk_full(stage):
    """Limit the size of the runner's files to that of the log and some bytes: a segment or a line is cut short.

    The limit (RLIMIT_FSIZE) is of the running process. The next process has none, as after a clean-up of the disk.
    """
    stage.until(lambda: stage.driver.runners() and stage.input.started(), "a runner", _FOR_PROCESSES_SECONDS)
    limit = (stage.input.journal / "log").stat().st_size + 10
    for pid in stage.driver.runners():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, limit))
    stage.release()
    stage.await_end()


def _stop(stage):
    stage.driver.send("stop")
    time.sleep(_BEFORE_RELEASE_SECONDS)
    stage.release()
    stage.driver.answer()
    stage.endings.append("stopped")


def _sigterm(stage):
    stage.driver.signal(signal.SIGTERM)
    time.sleep(_BEFORE_RELEASE_SECONDS)
    stage.release()
    stage.driver.await_exit()
    stage.endings.append("terminated")


_FAULTS = {
    "kill-driver": _kill_driver,
    "kill-runner": _kill_runner,
    "kill-worker": _kill_worker,
    "kill-broker": _kill_broker,
    "freeze-broker": _freeze_broker,
    "broker-full": _fill_broker,
    "cut": _cut,
    "stall": _stall,
    "disk-full": _disk_full,
    "stop": _stop,
    "sigterm": _sigterm,
}
