"""Kills one process of a job, or the whole application. A death counts only if the process was alive before.

Most deaths are of Python processes: Spark replaces one in a second, and the application goes on.
"""

import session
from cells import READERS, TO_QUEUE
from stage import NotReachedError

WEIGHTS = {"worker-dies": 92, "daemon-dies": 2, "runner-dies": 4, "application-dies": 2}
_FOR_PROCESSES_SECONDS = 90
_DEATH_SECONDS = 10


def await_process(stage, mode, fault):
    """Wait for a worker, if one is to die: most moments would else be in the query's start.

    It has a connection where tasks connect to the broker.
    """
    if fault == "worker-dies":
        found = _at_work if mode in READERS | TO_QUEUE else lambda stage: stage.driver.workers()
        stage.until(lambda: found(stage), "a worker", _FOR_PROCESSES_SECONDS)


def kill_process(stage, fault, chance):
    """Kill a process. ``chance`` (0 to 1) chooses among several. Raises NotReachedError if none has died."""
    if fault == "application-dies":
        _kill_application(stage)
        return
    stage.until(lambda: _candidates(stage, fault), "a process", _FOR_PROCESSES_SECONDS)
    candidates = _candidates(stage, fault)
    stage.require(candidates, "no process is left")
    process = _owner_of_held(stage, candidates) or candidates[int(chance * len(candidates))]
    _kill(stage, process)
    stage.release()
    if fault == "runner-dies":
        stage.await_end()


def _candidates(stage, fault):
    if fault == "runner-dies":
        return stage.driver.runners()
    if fault == "daemon-dies":
        return session.daemons(stage.driver.session_id)
    return _at_work(stage) or stage.driver.workers()


def _at_work(stage):
    """The workers that have connections to the broker."""
    ports = {stage.source.port, stage.sink.port}
    return sorted(
        pid for pid in stage.driver.workers() if any(remote in ports for _, remote in session.connections(pid))
    )


def _owner_of_held(stage, candidates):
    """The process whose frame a proxy holds, or None."""
    ways = [way for proxy in (stage.source, stage.sink) for way in (proxy.to_broker, proxy.to_client)]
    links = [way.held_link for way in ways if way.held.is_set() and way.held_link is not None]
    ports = {link.client_port for link in links}
    owners = (pid for pid in candidates if any(local in ports for local, _ in session.connections(pid)))
    return next(owners, None)


def _kill(stage, pid):
    if not session.kill_and_await(pid, _DEATH_SECONDS):
        raise NotReachedError(f"process {pid} had ended, or did not die")


def _kill_application(stage):
    stage.require(stage.driver.alive, "the application had ended")
    stage.driver.kill()
    stage.source.cut()
    stage.sink.cut()
    stage.release()
    stage.endings.append("killed")
