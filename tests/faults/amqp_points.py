"""Points inside the AMQP transactions: of acknowledgements, of a task that receives, and of a task's rows."""

from frames import ATTACH, CLOSE, DECLARE, DISCHARGE, DISPOSITION, LOCK, LOGIN, OUTCOME, READER_LOCK
from third_batch import BATCH, FIRST, MORE, go_on, hold_third, in_the_third_batch
from waiting import settled

_TASK = BATCH // 2
"""Rows of each of the two tasks of a batch."""


# --- of the source's acknowledgements ------------------------------------------------------------


def _hold_acknowledgement(stage, frame):
    """Hold this frame of an acknowledgement of the second batch. Returns how many messages the broker had before."""
    in_the_third_batch(stage)
    stage.input.send(MORE)
    before = _settled_count(stage)
    way = frame.hold(stage.source)
    go_on(stage)
    stage.held(way, f"a frame {frame.name} of the acknowledgements")
    return before


def _settled_count(stage):
    """How many messages the broker has. Its count follows a confirmation after a moment."""
    return settled(stage.input.left, 0.5)


def _accepting(stage):
    before = _hold_acknowledgement(stage, DISPOSITION)
    stage.require(stage.input.left() == before, "messages were acknowledged")
    return f"acknowledgements are held, {before} on the broker"


def _discharging(stage):
    before = _hold_acknowledgement(stage, DISCHARGE)
    stage.require(stage.input.left() == before, "messages were acknowledged without their discharge")
    return f"acknowledgements are in a transaction, its discharge held, {before} on the broker"


def _unconfirmed(stage):
    before = _hold_acknowledgement(stage, OUTCOME)
    stage.until(lambda: stage.input.left() < before, "the broker's count of what is acknowledged")
    return f"{before - stage.input.left()} acknowledged, the outcome of the discharge held"


def _declaring(stage):
    before = _hold_acknowledgement(stage, DECLARE)
    stage.until(lambda: stage.input.left() < before, "the discharge")
    return f"{before - stage.input.left()} acknowledged, no transaction for the next"


SOURCE = {
    "accepting": _accepting,
    "discharging": _discharging,
    "unconfirmed": _unconfirmed,
    "declaring": _declaring,
}


# --- of a task that receives -----------------------------------------------------------------------


def _hold_value(stage, frame, nth=1):
    """Hold this frame of a value of the third batch. Returns how many messages the source queue had before."""
    in_the_third_batch(stage)
    stage.input.send(MORE)
    before = _settled_count(stage)
    way = frame.hold(stage.source, nth=nth)
    go_on(stage)
    stage.held(way, f"a frame {frame.name} of the value")
    return before


def _planning(stage):
    _hold_value(stage, ATTACH, nth=2)  # the first one asks whether there is a message
    return "the driver looks at a token"


def _task(frame, what):
    """A point in a task of the batch that ``go_on`` lets Spark plan."""

    def reach(stage):
        before = _hold_value(stage, frame)
        batch = max(stage.logged("offsets"))
        stage.require(batch not in stage.logged("commits"), "the batch is done")
        return f"batch {batch}: {what}, {stage.input.in_delivery()} in delivery, {before} on the source queue before"

    return reach


def _task_unconfirmed(stage):
    before = _hold_value(stage, DISCHARGE)
    way = OUTCOME.hold(stage.source, link=stage.source.to_broker.held_link)
    stage.source.to_broker.release()
    stage.held(way, "the outcome of the discharge")
    stage.until(lambda: stage.input.left() < before, "the value of a task")
    return f"{before - stage.input.left()} received, the outcome of a discharge held"


def _value_not_replaced(stage):
    stage.start_until("latestOffset", 1, maxMessagesPerTrigger=FIRST)
    batch = max(stage.logged("commits"))
    stage.require(stage.offset(batch) == 1, "the batch is not in the commit log")
    before = stage.input.left()
    stage.input.send(MORE)
    stage.until(lambda: stage.input.left() == before + MORE, "the broker's count of new messages")
    return f"batch {batch} is in the commit log, its value is in the registers"


READERS = {
    "planning": _planning,
    "task-locking": _task(READER_LOCK, "a task has no lock"),
    "task-declaring": _task(DECLARE, "a task has the lock"),
    "task-taking": _task(DISPOSITION, "a task has taken the old value"),
    "task-discharging": _task(DISCHARGE, "a task has sent and accepted all"),
    "task-unconfirmed": _task_unconfirmed,
    "done": _value_not_replaced,
}


# --- of a task's rows ----------------------------------------------------------------------------


def _hold_task(stage, frame):
    """Hold a frame of one task of the third batch until the other task has ended. Returns the batch."""
    batch = hold_third(stage, frame)
    stage.until(lambda: stage.output.size() == batch * BATCH + _TASK, "the rows of the other task")
    stage.until(lambda: stage.driver.order("completed_tasks") == 1, "the end of the other task")
    return batch


def _offered(stage):
    batch = _hold_task(stage, LOGIN)
    return f"batch {batch}: one task is confirmed, the other has not connected"


def _sink_declaring(stage):
    batch = _hold_task(stage, DECLARE)
    return f"batch {batch}: one task is confirmed, the other has no transaction"


def _mid_transaction(stage):
    batch = _hold_task(stage, DISCHARGE)
    return f"batch {batch}: one task is confirmed, the other's rows are sent and not discharged"


def _commit_unconfirmed(stage):
    batch = _hold_task(stage, DISCHARGE)
    way = OUTCOME.hold(stage.sink, link=stage.sink.to_broker.held_link)
    stage.sink.to_broker.release()
    stage.held(way, "the outcome of the discharge")
    stage.until(lambda: stage.output.size() == (batch + 1) * BATCH, "the rows of the discharge")
    return f"batch {batch}: all rows are in the queue, the outcome of one discharge held"


def _all_committed(stage):
    batch = _hold_task(stage, DISCHARGE)
    way = CLOSE.hold(stage.sink)
    stage.sink.to_broker.release()
    stage.held(way, "a close")
    stage.until(lambda: stage.output.size() == (batch + 1) * BATCH, "the rows of all tasks")
    stage.require(batch not in stage.logged("commits"), "the batch is in the commit log")
    return f"all rows up to batch {batch} are confirmed, the commit log ends before it"


def _before_ttl(stage):
    stage.sink.leave_open()
    batch = _hold_task(stage, DISCHARGE)
    return f"rows of batch {batch} are sent, their discharge on the way; the broker will detect no lost client"


SINK = {
    "offered": _offered,
    "declaring": _sink_declaring,
    "mid-batch": _mid_transaction,
    "unconfirmed": _commit_unconfirmed,
    "sink-done": _all_committed,
    "before-ttl": _before_ttl,
}


# --- of a task's rows with a token ---------------------------------------------------------------


def _hold_once(frame, what):
    def reach(stage):
        before = stage.output.size()
        batch = hold_third(stage, frame)
        rows = _rows(batch)
        stage.require(before <= stage.output.size() < rows, "the batch is in the queue")
        return f"batch {batch}: {what}, {stage.output.size()} of {rows} rows in the queue"

    return reach


def _rows(batch):
    """How many rows the batches up to this one have."""
    return (batch + 1) * BATCH


def _once_unconfirmed(stage):
    batch = hold_third(stage, DISCHARGE)
    before = stage.output.size()
    way = OUTCOME.hold(stage.sink, link=stage.sink.to_broker.held_link)
    stage.sink.to_broker.release()
    stage.held(way, "the outcome of the discharge")
    stage.until(lambda: stage.output.size() > before, "the rows of the discharge")
    return f"batch {batch}: rows and token of a task are committed, the outcome held"


def _once_all_committed(stage):
    batch = hold_third(stage, DISCHARGE)
    way = CLOSE.hold(stage.sink)
    stage.sink.to_broker.release()
    stage.held(way, "a close")
    rows = _rows(batch)
    stage.until(lambda: stage.output.size() == rows, "the rows of all tasks")
    stage.require(batch not in stage.logged("commits"), "the batch is in the commit log")
    return f"all {rows} rows up to batch {batch} are confirmed, the commit log ends before it"


def _once_before_ttl(stage):
    stage.sink.leave_open()
    return _hold_once(DISCHARGE, "the discharge is on the way; the broker will detect no lost client")(stage)


def let_old_task_commit(stage):
    """Release the discharge of the old connection, then end that connection, while a new task waits for its lock."""
    sink = stage.sink
    stage.until(lambda: sink.connections > sink.left_open, "a new connection beside the old one")
    before = stage.output.size()
    sink.to_broker.release()
    stage.until(lambda: stage.output.size() > before, "the end of the old transaction")
    committed = stage.output.size() - before
    sink.let_expire()
    return f"the old transaction brought {committed} rows while a new connection stood beside it"


SINK_ONCE = {
    "offered": _hold_once(LOGIN, "a task has not connected"),
    "locking": _hold_once(LOCK, "a task has sent its rows and has no lock"),
    "locked": _hold_once(DISPOSITION, "a task has the lock and the token"),
    "mid-batch": _hold_once(DISCHARGE, "a task has replaced the token, its discharge held"),
    "unconfirmed": _once_unconfirmed,
    "sink-done": _once_all_committed,
    "before-ttl": _once_before_ttl,
}
BOTH_ONCE = READERS | {point: reach for point, reach in SINK_ONCE.items() if point != "offered"}
