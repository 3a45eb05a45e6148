"""Brings a job to the point of a cell. A point returns the evidence that the job is there, or raises NotReachedError.

Some messages are sent before the query starts, MORE at the point, and LATE after the fault. The point is in the third
batch, when the messages of earlier batches are acknowledged.
"""

import amqp_points
from cells import AMQP_POINTS, FROM_FILES, READERS, STOMP_MODES, TO_QUEUE, WITH_TOKEN
from frames import ACK, RECEIPT
from third_batch import BATCH, FIRST, LEAST_MESSAGE_BYTES, MORE, THIRD, go_on, in_the_third_batch
from waiting import wait_until

LATE = 300


def reach(stage, cell):
    stage.input.send(THIRD * BATCH if stage.mode in FROM_FILES else FIRST)
    return _POINTS[cell.point](stage) if cell.mode in STOMP_MODES else _AMQP[cell.mode][cell.point](stage)


def meanwhile(stage, cell):
    """What happens while the new run works. Returns the evidence that the old connection is still open, or None."""
    if cell.point != "before-ttl":
        return None
    if stage.mode in WITH_TOKEN:
        return amqp_points.let_old_task_commit(stage)
    if stage.mode not in FROM_FILES and cell.fault != "kill-worker":
        stage.until(lambda: stage.input.consumers() == 2, "a new subscription beside the old one")
        stage.source.let_expire()
        return "the old subscription stands beside the new one"
    return None


def afterwards(stage, cell):
    """After the last run, the held frame of the old connection reaches the broker. Returns the evidence, or None."""
    if cell.point == "before-ttl" and stage.mode in TO_QUEUE - WITH_TOKEN:
        sink = stage.sink
        wait_until(lambda: sink.connections == sink.left_open, what="the end of all connections but the old ones")
        stage.require(sink.left_open, "the broker has ended the old connection")
        before = stage.sink.to_broker.size
        stage.sink.to_broker.release()
        wait_until(lambda: stage.sink.to_broker.size > before, what="the end of the old transaction")
        stage.sink.let_expire()
        wait_until(lambda: not stage.sink.connections, what="the end of the old connection")
        return "the end of the old transaction arrived late"
    return None


# --- of the source -------------------------------------------------------------------------------


def _received(stage):
    in_the_third_batch(stage)
    segments = stage.input.segments() if stage.input.journal else None
    before = stage.source.to_client.size
    stage.input.send(MORE)
    stage.until(
        lambda: stage.source.to_client.size > before + MORE * LEAST_MESSAGE_BYTES, "the arrival of the messages"
    )
    stage.require(stage.input.left() >= MORE, "messages were acknowledged")
    stage.require(segments is None or stage.input.segments() == segments, "messages were made durable")
    return f"{stage.input.in_delivery()} in delivery, in memory only"


def _durable(stage):
    in_the_third_batch(stage)
    segments = stage.input.segments()
    ACK.hold(stage.source)
    stage.input.send(MORE)
    go_on(stage)
    stage.held(stage.source.to_broker, "an ACK")
    new = set(stage.input.segments()) - set(segments)
    stage.require(new, "no segment was written before the ACK")
    stage.until(lambda: stage.input.left() == MORE, "the broker's count of what is not acknowledged")
    return f"segments {sorted(new)} written, their ACKs held: {stage.input.left()} on the broker"


def _unconfirmed(stage):
    """The ACKs of a batch (without a journal) or of the durable messages (with one)."""
    in_the_third_batch(stage)
    before = stage.input.left()
    RECEIPT.hold(stage.source)
    stage.input.send(MORE)
    go_on(stage)
    stage.held(stage.source.to_client, "the receipt of ACKs")
    stage.until(lambda: stage.input.left() < before + MORE, "the broker's count of what is acknowledged")
    if stage.input.journal:
        stage.require(set(stage.input.segments()) - stage.input.confirmed(), "every receipt was written down")
    return f"{before + MORE - stage.input.left()} acknowledged, their receipt held"


def _acknowledged(stage):
    in_the_third_batch(stage)
    stage.driver.breakpoints.set("latestOffset", (THIRD + 2) * BATCH)
    stage.input.send(MORE)
    stage.until(lambda: stage.driver.breakpoints.is_reached("latestOffset"), "the fifth batch")
    end = stage.offset(max(stage.logged("offsets")))
    acknowledged = stage.input.sent - stage.input.left()
    stage.require(end < acknowledged, "everything acknowledged is offered")
    unconfirmed = set(stage.input.segments()) - stage.input.confirmed()
    return f"{acknowledged} acknowledged, {end} offered; {len(unconfirmed)} segments wait for their receipt"


def _offered(stage):
    stage.start_until("partitions", THIRD if stage.mode in READERS else THIRD * BATCH, maxMessagesPerTrigger=BATCH)
    stage.input.send(MORE)
    batch = max(stage.logged("offsets"))
    stage.require(batch not in stage.logged("commits"), "the batch is done")
    return f"batch {batch} is in the offset log and was not planned"


def _done(stage):
    stage.start_until("latestOffset", FIRST, maxMessagesPerTrigger=FIRST)
    batch = max(stage.logged("commits"))
    stage.require(stage.offset(batch) == FIRST, "the batch is not in the commit log")
    stage.input.send(MORE)
    if stage.input.journal:
        held = stage.input.segments()
        stage.require(held, "the journal is empty")
        return f"batch {batch} is in the commit log, segments {held} in the journal"
    stage.until(lambda: stage.input.left() > MORE, "the broker's count of what is not acknowledged")
    return f"batch {batch} is in the commit log, {stage.input.left() - MORE} of its messages are not acknowledged"


# --- of a batch ----------------------------------------------------------------------------------


def _mid_batch(stage):
    stage.start_until("task", THIRD, maxMessagesPerTrigger=BATCH)
    stage.input.send(MORE)
    stage.require(not stage.output.has(THIRD), "the batch is in the sink")
    return f"a task of batch {THIRD} has read a part"


def _sink_done(stage):
    stage.start_until("sink done", THIRD, maxMessagesPerTrigger=BATCH)
    stage.input.send(MORE)
    stage.require(stage.output.has(THIRD), "the batch is not in the sink")
    stage.require(THIRD not in stage.logged("commits"), "the batch is in the commit log")
    return f"batch {THIRD} is in the sink and not in the commit log"


# --- after a batch ---------------------------------------------------------------------------------


def _before_ttl(stage):
    stage.source.leave_open()
    if stage.input.journal:
        return _durable(stage)
    return _received(stage)


_POINTS = {
    "received": _received,
    "durable": _durable,
    "unconfirmed": _unconfirmed,
    "acknowledged": _acknowledged,
    "offered": _offered,
    "mid-batch": _mid_batch,
    "sink-done": _sink_done,
    "done": _done,
    "before-ttl": _before_ttl,
}
_AT_LEAST_ONCE = amqp_points.SOURCE | {
    point: _POINTS[point] for point in ("received", "offered", "mid-batch", "sink-done", "done", "before-ttl")
}

_AMQP = {
    "amqp": _AT_LEAST_ONCE,
    "rabbitmq": {point: _AT_LEAST_ONCE[point] for point in AMQP_POINTS["rabbitmq"]},
    "amqp-once": amqp_points.READERS | {point: _POINTS[point] for point in ("offered", "mid-batch", "sink-done")},
    "amqp-sink": amqp_points.SINK,
    "amqp-sink-once": amqp_points.SINK_ONCE,
    "amqp-both-once": amqp_points.BOTH_ONCE | {"offered": _POINTS["offered"]},
}
