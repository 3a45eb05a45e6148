"""Connections that management closes, as an operator does or a policy for slow consumers, at each step of a run."""

import contextlib
import json

import pytest
from numbered import fill
from streaming import access, left
from waiting import wait_until

from pyspark_jms.amqp.source import AmqpSource, AmqpSourceLink
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Reading
from pyspark_jms.source.task_inputs import read_task
from pyspark_jms.spark.protocols import query_of
from pyspark_jms.stomp.source import StompSource, StompSourceLink

STOMP, AMQP = (StompSource, StompSourceLink), (AmqpSource, AmqpSourceLink)
STEPS = ("subscribe", "waiting", "take", "check", "acknowledge", "ping", "probe", "has_receipt", "close")
MESSAGES = 60


def closing(protocol, step, nth, close):
    """A protocol whose links call ``close`` before the ``nth`` call of a link's ``step``, and before two later ones;
    and how many of them have been.
    """
    source, link = protocol
    method, calls, closed = getattr(link, step), [], []

    def closed_before(this, *args, **how):
        calls.append(step)
        if len(calls) >= nth and len(closed) < 3 and not this.is_down:
            closed.append(step)
            close(this)
        return method(this, *args, **how)

    connect = type("ClosedLink", (link,), {step: closed_before})
    return type("ClosedSource", (source,), {"connect": staticmethod(connect)})(), closed


def run(reading):
    """Read as Trigger.AvailableNow does; the texts of the rows."""
    source = query_of(reading)
    with contextlib.ExitStack() as stack:
        stack.callback(source.stop)
        source.drain()
        rows, start = [], source.initial_offset()
        while (end := source.latest_offset(start)) != start:
            for task in source.partitions(start, end):
                rows += [row["text"] for part in read_task(task, reading) for row in part.to_pylist()]
            source.commit(end)
            start = end
    return rows


@pytest.mark.parametrize("nth", [1, pytest.param(3, marks=pytest.mark.deep)])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("protocol", "more"),
    [
        pytest.param(STOMP, {}, id="stomp"),
        pytest.param(STOMP, {"connections": "2"}, id="stomp-2", marks=pytest.mark.deep),
        pytest.param(STOMP, {"deliveryGuarantee": "exactly-once"}, id="journal", marks=pytest.mark.deep),
        pytest.param(AMQP, {}, id="amqp", marks=pytest.mark.deep),
        pytest.param(AMQP, {"connections": "2"}, id="amqp-2", marks=pytest.mark.deep),
    ],
)
def test_a_run_goes_on(broker, queue, tmp_path, protocol, more, step, nth):
    fill(broker, queue, MESSAGES)
    if "deliveryGuarantee" in more:
        more = more | {"journalLocation": str(tmp_path)}
    url = broker.amqp_url if protocol is AMQP else broker.url
    given = access(broker) | {"brokerUrl": url, "queue": queue, "maxMessagesPerTrigger": "20", "idleTimeout": "100ms"}
    control = broker.server.getActiveMQServerControl()
    changed, closed = closing(protocol, step, nth, lambda link: close_connection(control, link))
    rows = run(Reading(SourceOptions.parse(given | more), changed))
    assert closed or nth > 1 or step == "ping", "the step is not part of a run"
    # Over AMQP these messages have no id: of equal ones a later one may be another message.
    assert sorted(set(rows) if protocol is AMQP else rows) == sorted(f"text {n}" for n in range(MESSAGES))
    assert left(broker, queue, 0) == 0


def close_connection(control, link):
    """As an operator does it, and Artemis with a slow consumer."""
    connection = link.connection
    end = connection._transport.socket if isinstance(link, StompSourceLink) else connection._stream._socket
    host, port = end.getsockname()
    (found,) = [one for one in json.loads(control.listConnectionsAsJSON()) if one["clientAddress"] == f"{host}:{port}"]
    assert control.closeConnectionWithID(found["connectionID"])
    wait_until(lambda: has_ended(link), what="the end of the connection")


def has_ended(link):
    """Return whether an ERROR is here, or the end: the link may not know of the second yet."""
    return link.is_down or (isinstance(link, StompSourceLink) and link.connection._replies._error is not None)
