"""One process of a job dies: the whole application, or one of its Python processes. Counted only if it was alive.

On a cluster most processes that die are Python processes, and the application goes on. A death of one costs a second,
a death of the application the start of another.
"""

import session
from stage import NotReachedError

WEIGHTS = {"worker-dies": 92, "daemon-dies": 2, "runner-dies": 4, "application-dies": 2}
_FOR_PROCESSES_SECONDS = 90
_DEATH_SECONDS = 10


def await_process(stage, fault):
    """A moment of a worker begins when there is one: the start of a query would hide most moments of its tasks."""
    if fault == "worker-dies":
        stage.until(lambda: _at_work(stage), "a worker with a connection", _FOR_PROCESSES_SECONDS)


def die(stage, fault, chance):
    """``chance`` (0 to 1) chooses among several. Raises NotReachedError if no process has died."""
    if fault == "application-dies":
        _kill_application(stage)
        return
    stage.until(lambda: _candidates(stage, fault), "a process", _FOR_PROCESSES_SECONDS)
    candidates = _candidates(stage, fault)
    stage.require(candidates, "no process is left")
    victim = _owner_of_held(stage, candidates) or candidates[int(chance * len(candidates))]
    _kill(stage, victim)
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
    """The workers that have a connection to the broker."""
    ports = {stage.source.port, stage.sink.port}
    return sorted(
        pid for pid in stage.driver.workers() if any(remote in ports for _, remote in session.connections(pid))
    )


def _owner_of_held(stage, candidates):
    """The process whose frame the proxies hold, or None."""
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
