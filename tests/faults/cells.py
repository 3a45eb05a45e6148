"""The cells of the matrix: mode x fault x point, each to be run or with the reason why it is not."""

from dataclasses import dataclass

STOMP_MODES = {
    "journal": "source with journal",
    "plain": "source without journal",
}
AMQP_MODES = {
    "amqp": "source over AMQP",
    "amqp-once": "source over AMQP, exactly-once (readers=2)",
    "amqp-sink": "sink over AMQP, at-least-once",
    "amqp-sink-once": "sink over AMQP, exactly-once",
    "amqp-both-once": "source → sink over AMQP, both exactly-once (readers=2)",
}
RABBITMQ_MODES = {"rabbitmq": "source over AMQP from RabbitMQ 4"}
"""RabbitMQ has no transactions over AMQP, and does not confirm an acknowledgement durably."""
MODES = STOMP_MODES | AMQP_MODES | RABBITMQ_MODES
EXACTLY_ONCE = {"journal", "amqp-once", "amqp-sink-once", "amqp-both-once"}
WITH_JOURNAL = {"journal"}
FROM_FILES = {"amqp-sink", "amqp-sink-once"}
TO_QUEUE = {"amqp-sink", "amqp-sink-once", "amqp-both-once"}
WITH_TOKEN = {"amqp-sink-once", "amqp-both-once"}
"""Their sink replaces a token in the transaction of its rows."""
IN_DOUBT = {"amqp"}
"""They read a message without an id again if the confirmation of its acknowledgement is lost (docs/reading.md)."""
READERS = {"amqp-once", "amqp-both-once"}
"""Their tasks receive, and their offsets are numbers of batches."""
FAULTS = {
    "kill-driver": "kill -9 driver",
    "kill-runner": "kill -9 runner",
    "kill-worker": "kill -9 executor worker",
    "kill-broker": "kill -9 broker",
    "freeze-broker": "broker stopped 20 s",
    "cut": "connection cut",
    "stall": "connection stalled both ways",
    "disk-full": "disk full in the journal",
    "stop": "query.stop()",
    "sigterm": "spark-submit SIGTERM",
    "broker-full": "broker takes nothing (its disk is full) 20 s",
}
STOMP_POINTS = {
    "received": "before durable",
    "durable": "durable, not acknowledged",
    "unconfirmed": "confirmed by the broker, its receipt lost",
    "acknowledged": "acknowledged, not offered",
    "offered": "offered, not planned",
    "mid-batch": "mid-batch",
    "sink-done": "sink done, batch not in the commit log",
    "done": "done, not deleted",
    "before-ttl": "restart before the old connection's time to live ends",
}
_TOKEN_POINTS = {
    "locking": "rows sent, before the lock",
    "locked": "lock taken and token read",
    "mid-batch": "token replaced, before the discharge",
    "unconfirmed": "discharged, its confirmation lost",
    "sink-done": "all tasks confirmed, batch not in the commit log",
}
_RECEIVING = {
    "planning": "the driver looks for messages and tokens",
    "offered": "offered, not planned",
    "task-locking": "a task connects, before the lock",
    "task-declaring": "a task has the lock, before its transaction is declared",
    "task-taking": "a task has taken the old value, before it accepts that",
    "task-discharging": "all of the value sent and accepted, before the discharge",
    "task-unconfirmed": "value discharged, its confirmation lost",
}
_AT_LEAST_ONCE = {
    "received": "received, not offered",
    "offered": "offered, not planned",
    "mid-batch": "mid-batch",
    "sink-done": "sink done, batch not in the commit log",
    "done": "done, not acknowledged",
    "accepting": "before the dispositions of the acknowledgements",
}
AMQP_POINTS = {
    "amqp": _AT_LEAST_ONCE
    | {
        "discharging": "acknowledged in a transaction, before its discharge",
        "unconfirmed": "discharged, its confirmation lost",
        "declaring": "discharge confirmed, before the next transaction is declared",
        "before-ttl": "restart before the old connection's time to live ends",
    },
    "amqp-once": _RECEIVING
    | {
        "mid-batch": "mid-batch",
        "sink-done": "sink done, batch not in the commit log",
        "done": "done, its value not replaced",
    },
    "amqp-sink": {
        "offered": "planned, before the first connection",
        "declaring": "connected, before the transaction is declared",
        "mid-batch": "rows sent, before the discharge",
        "unconfirmed": "discharged, its confirmation lost",
        "sink-done": "all tasks confirmed, batch not in the commit log",
        "before-ttl": "restart before the old connection's time to live ends",
    },
    "amqp-sink-once": {
        "offered": "planned, before the first connection",
        **_TOKEN_POINTS,
        "before-ttl": "restart before the old connection's time to live ends",
    },
    "amqp-both-once": _RECEIVING
    | _TOKEN_POINTS
    | {
        "done": "done, its value not replaced",
        "before-ttl": "restart before the old connection's time to live ends",
    },
    "rabbitmq": _AT_LEAST_ONCE,
}
POINTS = {point: words for points in (*AMQP_POINTS.values(), STOMP_POINTS) for point, words in points.items()}

_BATCH = 200
_BROKER_FAULTS = {"kill-broker", "freeze-broker", "broker-full", "cut", "stall", "kill-worker"}
"""These kill neither the driver nor the runner."""
_LOSE_CONFIRMATION = {("kill-worker", "sink-done"), ("freeze-broker", "mid-batch"), ("stall", "mid-batch")}
"""The held frame goes to the stopped broker or into the stall. It may arrive after the task has given up."""
_IN_RUNNER = {
    "received", "durable", "acknowledged", "offered", "done", "accepting", "discharging", "declaring", "planning",
}  # fmt: skip


def points_of(mode):
    return AMQP_POINTS.get(mode, STOMP_POINTS)


def faults_of(mode):
    if mode in RABBITMQ_MODES:
        return {fault: words for fault, words in FAULTS.items() if fault not in {"disk-full", "broker-full"}}
    return {fault: words for fault, words in FAULTS.items() if fault != "disk-full" or mode in STOMP_MODES}


@dataclass(frozen=True)
class Cell:
    mode: str
    fault: str
    point: str
    reason: str | None = None
    """Why the cell is not run."""

    @property
    def name(self):
        return f"{self.mode}/{self.fault}/{self.point}"

    def most_duplicates(self, endings):
        """How many duplicates the guarantee allows after these ends of queries, beside messages whose acknowledgement
        is in doubt. Returns None if it allows any number.

        An at-least-once source duplicates messages if its process dies, and not if it loses a connection. A task of an
        at-least-once sink duplicates its rows if their confirmation is lost, and a query repeats its last batch.
        """
        if self.mode in {"plain", "amqp"}:
            return 0 if self.fault in _BROKER_FAULTS else None
        if self.mode == "rabbitmq":
            return 0 if self.fault == "kill-worker" else None
        if self.mode == "amqp-sink":
            unconfirmed = self.point in {"unconfirmed", "before-ttl"} or (self.fault, self.point) in _LOSE_CONFIRMATION
            return _BATCH * len(endings) + _BATCH // 2 * unconfirmed
        return 0


def cells():
    return [Cell(m, f, p, _reason(m, f, p)) for m in MODES for f in faults_of(m) for p in points_of(m)]


def _reason(mode, fault, point):
    """The first rule that applies, or None."""
    return next((why for applies, why in _rules(mode, fault, point) if applies), None)


def _rules(mode, fault, point):
    yield mode in FROM_FILES and fault == "kill-runner", "a source of files has no Python process (runner)"
    yield (
        fault == "disk-full" and mode not in WITH_JOURNAL,
        "this mode has no journal",
    )
    yield (
        mode == "plain" and point in {"durable", "acknowledged"},
        "without a journal no message is durable, and none is acknowledged before its batch is done",
    )
    yield (
        fault == "kill-worker" and point in _IN_RUNNER and mode not in FROM_FILES,
        "no worker runs a task of the query at this point",
    )
    yield (
        fault == "kill-worker" and mode not in TO_QUEUE and point in {"unconfirmed", "sink-done", "before-ttl"},
        "the runner owns the connection, and the batch is collected: no worker runs a task of the query at this point",
    )
    yield from _of_disk(mode, fault, point)
    yield from _of_time_to_live(mode, fault, point)


def _of_disk(mode, fault, point):
    yield (
        fault == "broker-full" and mode in READERS,
        "not promised: the staging queue, which takes each message that is read, is on the same full broker",
    )
    yield (
        fault == "disk-full" and point in {"offered", "mid-batch", "sink-done"},
        "the journal writes nothing while a batch runs; its next write is at 'done, not deleted'",
    )


def _of_time_to_live(mode, fault, point):
    late = point == "before-ttl"
    yield (
        late and fault in {"stop", "sigterm", "disk-full"},
        "the connection is closed cleanly, so the broker does not wait for its time to live",
    )
    yield late and fault == "broker-full", "a full disk ends no connection"
    yield late and fault == "kill-broker", "the old connection ends with the broker"
    yield (
        late and fault == "freeze-broker",
        "the broker's clock continues: the broker ends the old connection as soon as it runs again",
    )
    yield (
        late and fault == "stall",
        "both ends give up at about the same time; 'connection cut' tests the same without chance",
    )
